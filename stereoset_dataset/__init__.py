"""StereoSet in five languages, and CrowS-Pairs."""

from stereoset_dataset.stereoset_dataset import Stereoset, StereosetConfig, load_stereoset

__all__ = ["Stereoset", "StereosetConfig", "load_stereoset"]
