"""Option scores of context association tests, from any language model of the Hugging Face hub."""

from stereoset_scoring.refusal import name_extra

__version__ = "1.0.0"
__all__ = ["Scorer", "load_scorer"]


def __getattr__(name):
    # On demand: reading saved scores needs none of what scoring needs.
    if name in __all__:
        try:
            from stereoset_scoring import scorer
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(f"{name} cannot be had: {name_extra(missing)}", name=missing.name) from missing
        return getattr(scorer, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
