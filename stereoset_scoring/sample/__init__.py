"""A trial of the machinery: a few dozen examples written for this project, and a tiny model that learns them.

The model has seen the examples, so its figures say that everything works and nothing else.
"""

from stereoset_scoring.sample.examples import load_sample

__all__ = ["build_model", "load_sample"]


def __getattr__(name):
    # On demand: reading the examples needs no torch.
    if name == "build_model":
        from stereoset_scoring.sample.model import build_model

        return build_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
