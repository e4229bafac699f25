"""StereoSet in six languages, and CrowS-Pairs in eleven, as rows of `datasets`."""

from typing import TYPE_CHECKING, Any

from stereoset_dataset.quality import FLAGS
from stereoset_dataset.refusal import Refusal

if TYPE_CHECKING:
    from stereoset_dataset.stereoset_dataset import Stereoset, load_parallel, load_stereoset

__all__ = ["FLAGS", "Refusal", "Stereoset", "load_parallel", "load_stereoset"]


def __getattr__(name: str) -> Any:
    # On demand: what the flags mean, which the command line prints, needs no `datasets`.
    if name in __all__:
        from stereoset_dataset import stereoset_dataset

        return getattr(stereoset_dataset, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
