"""Trained next-sentence heads: a core model and three linear layers, in the layout of Nadeem et al. 2021 (A.4)."""

import copy
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import nn
from transformers import AutoModel, PreTrainedModel
from transformers.modeling_outputs import NextSentencePredictorOutput
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES

from stereoset_scoring.checkpoints.head_spec import HeadSpec
from stereoset_scoring.checkpoints.precision import Dtype, cast
from stereoset_scoring.checkpoints.repository import find_file, read_json_object
from stereoset_scoring.checkpoints.weight_files import read_weights
from stereoset_scoring.refusal import Refusal

SPEC_FILE = "next_sentence.json"
WEIGHTS_FILE = "model.safetensors"
WIDTH = 300  # of the head's two inner layers
# Buffers that transformers 2 to 4 saved with the weights; today's models compute them.
_BUFFERS = re.compile(r"core_model\.(.*\.)?(attn\.bias|attn\.masked_bias|position_ids)")


@dataclass(frozen=True)
class TrainedHead:
    """Where a trained head lies, and how it was trained.

    Attributes:
        path: the file of its weights, which hold the core model too.
        spec: how it was trained.
    """

    path: str
    spec: HeadSpec

    def load(
        self,
        config: Any,
        dtype: Dtype = "auto",
        trust_remote_code: bool = False,
        attention: str | None = None,
    ) -> tuple["NextSentenceModel", list[str]]:
        """(NextSentenceModel, names of weights that were left out); its core has the given configuration and attention.

        Raises:
            Refusal: if the file is no file of weights, or they do not fit.
        """
        weights = {name.removeprefix("module."): tensor for name, tensor in read_weights(self.path).items()}
        how = {} if attention is None else {"attn_implementation": attention}
        core = AutoModel.from_config(copy.deepcopy(config), trust_remote_code=trust_remote_code, **how)
        _make_room_for_padding(core, weights)
        model = NextSentenceModel(core, self.spec)
        needed = model.state_dict()
        dropped = {name for name in weights.keys() - needed.keys() if _BUFFERS.fullmatch(name)}
        faults = {
            "missing": sorted(needed.keys() - weights.keys()),
            "unexpected": sorted(weights.keys() - needed.keys() - dropped),
            "of another shape": sorted(n for n in needed.keys() & weights if needed[n].shape != weights[n].shape),
        }
        for fault, names in faults.items():
            if names:
                raise Refusal(
                    f"{self.path} does not fit a {config.model_type} with a next-sentence head ({len(names)} weights "
                    f"{fault}, first {names[0]!r}): give the weights and the model that belong together."
                )
        model.load_state_dict({name: weights[name] for name in needed})
        if dtype == "auto":
            dtype = weights["nsp_head.0.weight"].dtype
        cast(model, dtype)
        return model, sorted(dropped)


class NextSentenceModel(nn.Module):
    """A core model whose output, pooled, goes through three linear layers to two classes.

    Args:
        core_model: a transformers model without a language-model head.
        spec: how its head is, or was, trained.

    Attributes:
        spec: the same, its pooling decided.

    Raises:
        Refusal: if the core does not have what the head shall read.
    """

    def __init__(self, core_model: PreTrainedModel, spec: HeadSpec = HeadSpec()):
        super().__init__()
        config = core_model.config
        if config.is_encoder_decoder:
            raise Refusal(
                f"A {config.model_type} model is an encoder-decoder, and reads next sentences from text to text: "
                "give an encoder or a decoder."
            )
        self.core_model = core_model
        # No activation between them, as released.
        self.nsp_head = nn.Sequential(
            nn.Linear(config.hidden_size, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2)
        )
        self.spec = replace(spec, pooling=spec.pooling or released_pooling(core_model))
        if self.spec.pooling == "pooler" and not _has_pooler(core_model):
            raise Refusal(f"A {config.model_type} model has no pooler: choose pooling first, last or mean.")
        accepts = inspect.signature(core_model.forward).parameters
        self._fixed = {"use_cache": False} if "use_cache" in accepts else {}
        # Not by the signature alone: GPT-2 takes token types too, and adds the embeddings of words 0 and 1.
        self.reads_segments = getattr(config, "type_vocab_size", 0) > 1 or config.model_type == "xlnet"

    @property
    def config(self) -> Any:
        """The core's configuration."""
        return self.core_model.config

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.core_model.dtype

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.core_model.device

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        return_dict: bool = True,
    ) -> NextSentencePredictorOutput:
        """Logits (B, 2) of a batch; padding, where attention_mask is 0, is never read. Never a tuple."""
        segments = {"token_type_ids": token_type_ids} if self.reads_segments and token_type_ids is not None else {}
        output = self.core_model(input_ids=input_ids, attention_mask=attention_mask, **segments, **self._fixed)
        return NextSentencePredictorOutput(logits=self.nsp_head(self._pool(output, attention_mask)))

    def _pool(self, output: Any, mask: torch.Tensor) -> torch.Tensor:
        """(B, H) from the core's output and the (B, T) mask."""
        if self.spec.pooling == "pooler":
            return output.pooler_output
        hidden = output.last_hidden_state  # (B, T, H)
        if self.spec.pooling == "first":
            return hidden[:, 0]
        if self.spec.pooling == "last":
            last = (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(1)  # (B,)
            return hidden[torch.arange(len(last), device=last.device), last]
        wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))  # a sum may be too large for half precision
        weights = mask[:, :, None].to(wide.dtype)
        return ((wide * weights).sum(1) / weights.sum(1)).to(hidden.dtype)


def released_pooling(core_model: PreTrainedModel) -> str:
    """What the released code reads of a core: the pooler where there is one, the mean of causal cores, else the first.

    Whether it is there decides, not the model's name.
    """
    if _has_pooler(core_model):
        return "pooler"
    model_type = core_model.config.model_type
    causal = model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return "mean" if causal and model_type != "xlnet" else "first"


def find_trained_head(
    name: str, path: str | Path | None = None, pooling: str | None = None, revision: str | None = None
) -> TrainedHead | None:
    """The TrainedHead at a path, or, without a path, in the checkpoint of that name; None where there is none.

    Args:
        name: hub id or folder of a checkpoint.
        path: a folder that `save_trained_head` wrote, or a state dict of the released code (.pth or .safetensors).
        pooling: what the head reads, where the files do not say so.
        revision: branch, tag or commit of the checkpoint.

    Raises:
        Refusal: if the path holds no head, or its description is none.
    """
    if path is not None and not Path(path).exists():
        raise Refusal(f"There is no next-sentence head at {path}: give a folder, or a .pth or .safetensors file.")
    if path is not None and Path(path).is_file():
        return TrainedHead(str(path), HeadSpec(pooling=pooling))
    described = find_file(name if path is None else path, SPEC_FILE, revision)
    if described is None:
        if path is not None:
            raise Refusal(f"{path} has no {SPEC_FILE}, so it holds no trained next-sentence head: train one first.")
        return None
    weights = find_file(name if path is None else path, WEIGHTS_FILE, revision)
    if weights is None:
        raise Refusal(f"{path or name} has a {SPEC_FILE} and no {WEIGHTS_FILE}: copy the whole folder.")
    description = read_json_object(described)
    known = {field.name for field in fields(HeadSpec)}
    if description.keys() != known:
        raise Refusal(f"{described} must hold {', '.join(sorted(known))} and nothing else: restore the file.")
    try:
        return TrainedHead(weights, HeadSpec(**description))
    except Refusal as reason:
        raise Refusal(f"{described} describes no head that there is: restore the file ({reason})") from reason


def save_trained_head(folder: str | Path, model: NextSentenceModel, tokenizer: Any) -> None:
    """Write a NextSentenceModel as a folder that `load_scorer` reads.

    Args:
        folder: where it goes; made if need be.
        model: the core and its head.
        tokenizer: its hub tokenizer.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    config = copy.deepcopy(model.config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    (folder / SPEC_FILE).write_text(json.dumps(asdict(model.spec), indent=1) + "\n", encoding="utf-8")


def _make_room_for_padding(core: Any, weights: Mapping[str, torch.Tensor]) -> None:
    """Give the core one row of embeddings more where the weights have it: the released code appended <PAD>."""
    embeddings = core.get_input_embeddings()
    (name,) = (name for name, parameter in core.named_parameters() if parameter is embeddings.weight)
    saved = weights.get(f"core_model.{name}")
    if saved is not None and len(saved) == len(embeddings.weight) + 1:
        core.resize_token_embeddings(len(saved), mean_resizing=False)


def _has_pooler(core: PreTrainedModel) -> bool:
    return getattr(core, "pooler", None) is not None
