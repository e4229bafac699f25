"""StereoSet in six languages, and CrowS-Pairs in eleven, as rows of `datasets`."""

from stereoset_dataset.quality import FLAGS
from stereoset_dataset.refusal import Refusal
from stereoset_dataset.stereoset_dataset import Stereoset, load_parallel, load_stereoset

__all__ = ["FLAGS", "Refusal", "Stereoset", "load_parallel", "load_stereoset"]
