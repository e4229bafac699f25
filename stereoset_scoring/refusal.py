"""The one error by which this package refuses."""


class Refusal(ValueError):
    """What cannot be asked or answered, and the mend, in one sentence."""


class MissingHead(Refusal):
    """A head that a model's architecture, or its checkpoint, does not hold; another method may do without."""


class MissingAttribute(Refusal):
    """What stands at BLANK cannot be told; methods that read whole sentences do without."""


def in_short(error: BaseException, longest: int = 160) -> str:
    """What an error says, on one line and no longer than that."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= longest else f"{said[:longest].rsplit(' ', 1)[0]} …"


# What an installation may lack, and which of its extras brings it.
EXTRAS = {
    "accelerate": "scoring",
    "gradio": "space",
    "httpx2": "server",
    "jinja2": "report",
    "matplotlib": "report",
    "peft": "peft",
    "sentencex": "training",
    "torch": "scoring",
    "transformers": "scoring",
}


def name_extra(missing: ModuleNotFoundError) -> str:
    """The sentence that says what to install.

    Raises:
        ModuleNotFoundError: the one given, if no extra would bring the module.
    """
    package = (missing.name or "").partition(".")[0]
    if package not in EXTRAS:
        raise missing
    return f"{package} is missing: pip install 'stereoset[{EXTRAS[package]}]'."
