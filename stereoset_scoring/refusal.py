"""The one error by which this package refuses."""


class Refusal(ValueError):
    """What cannot be asked or answered, and the mend, in one sentence."""


class MissingHead(Refusal):
    """A head that a model's architecture, or its checkpoint, does not hold; another method may do without."""
