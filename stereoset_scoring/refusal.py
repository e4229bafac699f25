"""The one error by which this package refuses."""


class Refusal(ValueError):
    """What cannot be asked or answered, and the mend, in one sentence."""
