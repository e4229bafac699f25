"""The one error by which this package refuses."""


class Refusal(ValueError):
    """What cannot be loaded, and the mend, in one sentence."""
