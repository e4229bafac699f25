"""How a trained next-sentence head was trained: what can be said of it without torch."""

from dataclasses import dataclass
from typing import Any

from stereoset_scoring.refusal import Refusal

POOLINGS = ("pooler", "first", "last", "mean")


@dataclass(frozen=True)
class HeadSpec:
    """How a head was trained, and so how it has to be asked.

    Attributes:
        follows: the class that means "the second sentence follows the first".
        pooling: what the head reads: "pooler", the core's own; "first" or "last", the output at that position;
            "mean", over all positions; None for what the released code reads of such a core.
        join: what stands between two texts that the tokenizer joins without a separator: "none" or "space".
    """

    follows: int = 1
    pooling: str | None = None
    join: str = "none"

    def __post_init__(self):
        if self.follows not in (0, 1) or self.join not in ("none", "space"):
            raise Refusal(
                f"A next-sentence head cannot have follows={self.follows!r} and join={self.join!r}: "
                "follows is 0 or 1, join is none or space."
            )
        if self.pooling not in (None, *POOLINGS):
            raise Refusal(
                f"A next-sentence head cannot read {self.pooling!r}: choose one of {', '.join(POOLINGS)} as pooling."
            )

    @property
    def options(self) -> dict[str, Any]:
        """The options of the method that asks such a head."""
        return {"follows": self.follows, "join": self.join}
