"""Several models' scores, over those examples alone that all of them have: languages differ in which they have."""

from collections.abc import Sequence
from dataclasses import replace

from stereoset_report.saved import Saved
from stereoset_scoring.questions.configs import split_config
from stereoset_scoring.refusal import Refusal


def common_only(several: Sequence[Saved]) -> list[Saved]:
    """The same scores, of each split and task those of the examples that every one of its parts has, by id.

    Raises:
        Refusal: if two have none in common.
    """
    ids: dict[tuple[str, str], set[str]] = {}
    for saved in several:
        for config, (rows, _) in saved.parts.items():
            own, key = {row["id"] for row in rows}, _key(saved, config)
            ids[key] = ids.get(key, own) & own
    for (split, task), some in ids.items():
        if not some:
            raise Refusal(f"The scores of {task} ({split}) have no example in common: leave --common out.")
    return [_limited(saved, ids) for saved in several]


def _key(saved, config):
    task, _ = split_config(config)
    return saved.split, task


def _limited(saved, ids):
    """Scores of the examples with some ids, stamped as a part where that is not all."""
    parts, fewer = {}, []
    for config, (rows, scores) in saved.parts.items():
        common = ids[_key(saved, config)]
        kept = [i for i, row in enumerate(rows) if row["id"] in common]
        parts[config] = [rows[i] for i in kept], [scores[i] for i in kept]
        fewer += [f"{len(kept)} of {len(rows)} of {config} in common"] if len(kept) < len(rows) else []
    partial = ", ".join([*filter(None, [saved.partial]), *fewer]) or None
    return replace(saved, parts=parts, partial=partial)
