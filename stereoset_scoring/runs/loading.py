"""The scorers of a run: those of a checkpoint, of a baseline, or of the sample's tiny model."""

import os
from collections.abc import Mapping
from pathlib import Path

import torch
from transformers.utils import logging

from stereoset_scoring.baselines import is_baseline, load_baseline, sentiment_model
from stereoset_scoring.processes.team import Team
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.roles import Scores
from stereoset_scoring.runs.asked import DEFAULTS, Asked, Placement
from stereoset_scoring.sample.kept import keep_model
from stereoset_scoring.scorer import Scorer, load_scorer

SAMPLE_MODEL = "sample-model"  # in the output folder


def import_loaders(asked: Asked) -> None:
    """Import what loads a checkpoint, which takes seconds, if it will be needed."""
    if asked.model.server is None and not _is_plain_baseline(asked.model.name):
        import stereoset_scoring.checkpoints.checkpoint  # noqa: F401


def load_scorers(asked: Asked, team: Team) -> Mapping[str | None, Scores]:
    """{None: the scorer that is asked for}, or one of the same weights for each preset that is compared.

    Raises:
        OSError: if there is no such model within reach.
        Refusal: if it cannot be scored as it is asked.
    """
    scorer = _load(asked, team)
    presets = asked.manner.compared
    if not presets:
        return {None: scorer}
    if not isinstance(scorer, Scorer):
        raise Refusal(f"{asked.model.name} is a baseline, and has no presets to compare: score it as it is.")
    return {name: scorer.with_preset(None if name == DEFAULTS else name) for name in presets}


def _load(asked: Asked, team: Team) -> Scores:
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    name, sentiment = asked.model.name, sentiment_model(asked.model.name)
    if name is not None and _is_plain_baseline(name):
        return load_baseline(name, asked.model.seed)
    _check_placement(asked.placement)
    spread = asked.placement.device_map or asked.placement.gpus_per_model
    return load_scorer(
        sentiment or name or _sample_model(asked, team),
        method="sentiment" if sentiment else asked.manner.method,
        preset=asked.manner.preset,
        device=None if spread else team.state.device,
        revision=asked.model.revision,
        trust_remote_code=asked.model.trust_remote_code,
        next_sentence_head=asked.model.next_sentence_head,
        server=asked.model.server,
        tokenizer=asked.model.tokenizer,
        **vars(asked.placement),
        **asked.manner.options,
    )


def _is_plain_baseline(name: object) -> bool:
    """Whether a name is that of a baseline that asks no model."""
    return is_baseline(name) and not sentiment_model(name)


def _check_placement(placement: Placement) -> None:
    """See that several processes do not spread their models over the same GPUs."""
    together = int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > 1
    if placement.device_map and not placement.gpus_per_model and together and torch.cuda.is_available():
        raise Refusal("Every process would spread its model over the same GPUs: give --gpus-per-model.")


def _sample_model(asked: Asked, team: Team) -> Path:
    """The folder of the tiny model, built by the first process of each machine if no earlier run has."""
    folder = asked.output.folder / SAMPLE_MODEL
    with team.first_of_machine_first():
        if team.is_first_of_machine:
            keep_model(folder)
    return folder
