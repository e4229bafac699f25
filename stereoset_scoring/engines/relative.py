"""XLNet's attention by relative positions, in fewer steps over memory than its own."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

HIDDEN = 1e30  # what its own subtracts from the score of what is not seen


def shifted(scores: torch.Tensor, klen: int) -> torch.Tensor:
    """Scores (B, heads, T, length) by relative positions, each row shifted to its own: a view of klen columns."""
    batch, heads, rows, length = scores.shape
    turned = scores.reshape(batch, heads, length, rows)[:, :, 1:]
    return turned.reshape(batch, heads, rows, length - 1)[..., :klen]


def positions_of(model: Any) -> Callable[..., torch.Tensor]:
    """The encoding of relative positions of an XLNet, (length, 1, H): for one row, since it is the same for all."""
    whole = model.relative_positional_encoding

    def encoding(qlen: int, klen: int, bsz: int | None = None, **more: Any) -> torch.Tensor:
        # Half of the rows are read backwards where data are bidirectional.
        return whole(qlen, klen, bsz=bsz if model.bi_data else None, **more)

    return encoding


def attention_of(attention: Any) -> Callable[..., Any]:
    """The core of an XLNet's attention: what the positions and segments of tokens say is a bias of one kernel's."""
    spelled_out = attention.rel_attn_core

    def core(
        queries: torch.Tensor,  # (T, B, heads, D), as keys and values
        keys: torch.Tensor,
        values: torch.Tensor,
        positions: torch.Tensor,  # (length, 1, heads, D)
        seg_mat: torch.Tensor | None = None,  # (T, T, B, 2): in one segment, or in two
        attn_mask: torch.Tensor | None = None,  # (T or 1, T, B, 1): 1 where a token is not seen
        output_attentions: bool = False,
    ) -> Any:
        if output_attentions or positions.shape[1] != 1:
            return spelled_out(queries, keys, values, positions, seg_mat, attn_mask, output_attentions)
        scale = attention.scale
        bias = _of_positions((queries + attention.r_r_bias) * scale, positions[:, 0], len(keys))
        if seg_mat is not None:
            # What all that a token sees have in common, a softmax leaves out.
            same, other = attention.seg_embed
            gains = ((queries + attention.r_s_bias) * (other - same) * scale).sum(-1)  # (T, B, heads)
            bias = torch.addcmul(bias, gains.permute(1, 2, 0)[..., None], seg_mat[..., 1].permute(2, 0, 1)[:, None])
        if attn_mask is not None:
            bias = bias - HIDDEN * attn_mask.permute(2, 3, 0, 1)
        asking, asked, given = (one.permute(1, 2, 0, 3) for one in (queries + attention.r_w_bias, keys, values))
        return scaled_dot_product_attention(asking, asked, given, attn_mask=bias, scale=scale).permute(2, 0, 1, 3)

    return core


def _of_positions(queries: torch.Tensor, positions: torch.Tensor, klen: int) -> torch.Tensor:
    """(B, heads, T, klen) scores of queries (T, B, heads, D) by relative positions (length, heads, D)."""
    rows, batch, heads, width = queries.shape
    by_head = queries.permute(2, 1, 0, 3).reshape(heads, batch * rows, width)
    scores = torch.bmm(by_head, positions.permute(1, 2, 0))  # (heads, B * T, length)
    return shifted(scores.view(heads, batch, rows, -1), klen).transpose(0, 1)
