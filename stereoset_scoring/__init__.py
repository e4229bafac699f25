"""Option scores of context association tests, from any language model of the Hugging Face hub."""

__version__ = "1.0.0"
__all__ = ["Scorer", "StereosetCallback", "load_scorer"]


def __getattr__(name):
    # On demand: reading saved scores needs none of what scoring needs.
    if name == "StereosetCallback":
        from stereoset_scoring.callback import StereosetCallback

        return StereosetCallback
    if name in __all__:
        from stereoset_scoring import scorer

        return getattr(scorer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
