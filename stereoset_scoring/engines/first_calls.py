"""Functions of MKL that one thread has to call before several do.

On a CPU, torch leaves them to MKL 2024, which chooses a function's code at its first call: where several threads make
that call at once, one of them may compute its share to three digits, now and then and without a word
(pytorch/pytorch#188792). Scores would differ by 1e-4 nats from one run to the next.
"""

from functools import cache

import torch

FUNCTIONS = (
    *(torch.exp, torch.expm1, torch.log, torch.log1p, torch.log2, torch.sqrt),
    *(torch.erf, torch.tanh, torch.sin, torch.cos, torch.tan, torch.atan),
)


@cache
def make_first_calls() -> None:
    """Call each once, in this thread; later, nothing."""
    for dtype in (torch.float32, torch.float64):
        for function in FUNCTIONS:
            function(torch.ones(1, dtype=dtype))
