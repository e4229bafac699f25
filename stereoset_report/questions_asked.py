"""What was asked of a model, as far as its run says it, and in what two questions differ."""

from collections.abc import Mapping
from typing import Any, Protocol

from stereoset_report.judged import Judged, method_of
from stereoset_report.saved import Saved


class Asked(Protocol):
    """What is looked at: the examples, and the scores they come from."""

    @property
    def judged(self) -> Judged:
        """The examples."""

    @property
    def parts(self) -> Mapping[str, Saved]:
        """{config: the scores it is from}."""


def differences_asked(ours: Asked, theirs: Asked) -> str:
    """In what two questions differ, in words: method, options, preset, split, part, examples; empty where in nothing.

    What one of the two does not say, as a prediction file does not say its method, is no difference.
    """
    return "; ".join([*differing_facts(facts(ours), facts(theirs)), *_examples(ours, theirs)])


def differing_facts(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """What `facts` of two questions both say, and not alike, in words."""
    return [f"{name} {ours[name]} / {theirs[name]}" for name in _differing(ours, theirs)]


def asked_alike(ours: Asked, theirs: Asked) -> bool:
    """Whether nothing says that two models were asked by different methods, or with different options."""
    return not {"method", "options"} & set(_differing(facts(ours), facts(theirs)))


def facts(asked: Asked) -> dict[str, Any]:
    """What is known of a question; of both tasks together, of the first."""
    config, saved = next(iter(asked.parts.items()))
    return facts_of(saved, config)


def facts_of(saved: Saved, config: str) -> dict[str, Any]:
    """What is known of how saved scores of a config were asked for."""
    found = {"split": saved.split, "partial": saved.partial or "all"}
    task = saved.record.get("tasks", {}).get(config)
    if not task:
        return found
    options = ", ".join(f"{name}={value}" for name, value in task.get("options", {}).items())
    return {
        "method": method_of(saved, config),
        "options": options or "none",
        "preset": saved.record.get("preset") or "none",
        **found,
    }


def _differing(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    return [name for name in ours if name in theirs and ours[name] != theirs[name]]


def _examples(ours: Asked, theirs: Asked) -> list[str]:
    """That the examples are not the same ones, and how many are."""
    one, other = set(ours.judged.keys), set(theirs.judged.keys)
    if one == other:
        return []
    return [f"examples {len(one)} / {len(other)}, of which {len(one & other)} are the same and are set side by side"]
