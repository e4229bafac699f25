"""StereoSet in five languages, and CrowS-Pairs, as rows of `datasets`."""

from stereoset_dataset.refusal import Refusal
from stereoset_dataset.stereoset_dataset import Stereoset, load_stereoset

__all__ = ["Refusal", "Stereoset", "load_stereoset"]
