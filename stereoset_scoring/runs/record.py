"""The record of a run: what was scored, with what, and how; plain data, ready for JSON."""

import hashlib
import json
import math
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations, starmap
from pathlib import Path
from typing import Any, NamedTuple

import stereoset_scoring
from stereoset_scoring import __version__
from stereoset_scoring.methods.causal import CausalMethod
from stereoset_scoring.methods.registry import changed_options
from stereoset_scoring.planning.job import Job
from stereoset_scoring.questions.configs import split_config
from stereoset_scoring.questions.examples import options_of
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.roles import Named, Origin, Rows

Record = Mapping[str, Any]
Scores = Sequence[Sequence[float]]  # scores[i][j] of option j of row i

NEAR = 1e-4  # nats: what batch, padding or machine may move a float32 score by
SETTINGS = ("configuration", "trained_head", "code_sha256", "attention", "compiled", "quantization")  # of a head
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "accelerate", "peft")


def model_record(source: Origin, heads: Iterable[str]) -> dict[str, Any]:
    """What was asked: name, commit, kind, and of each head the weights' fingerprint, settings and loading report.

    Args:
        source: where scores come from.
        heads: names of the heads that were asked.
    """
    return {
        "name": source.name,
        "revision": source.revision,
        "commit": source.commit,
        "base": source.base,  # of an adapter
        "family": source.family,
        "next_sentence_head": source.next_sentence_head,
        "chat_template": source.family == "causal" and _has_chat_template(source.tokenizer),  # there, and never used
        "heads": {name: source.head(name).record for name in heads},
    }


def _has_chat_template(tokenizer: Tokenizer | None) -> bool:
    return tokenizer is not None and tokenizer.has_chat_template


def beginning_record(method: Named, source: Origin) -> dict[str, Any] | None:
    """What a causal method conditions the first token on: where it comes from, its text and how; None for others."""
    tokenizer = source.tokenizer
    if not isinstance(method, CausalMethod) or tokenizer is None:
        return None
    ids, bos = method.beginning(tokenizer)
    origin = tokenizer.beginning.origin if method.bos_text is None else "bos_text"
    return {"origin": origin, "text": tokenizer.decode(ids) if ids else "", "bos": bos}


def counts_of(job: Job) -> dict[str, int]:
    """How much a job asks, to be added up over the jobs of a data set."""
    return {
        "forward_rows": len(job.rows),
        "batches": len(job.batches),
        "forward_tokens": job.forward_tokens,
        "padding_tokens": job.padded_tokens - job.forward_tokens,
        "straddling_tokens": job.straddling,
        "truncated": job.truncated,  # given context only: what is scored is never cut
        "equal_options": job.equal_options,
    }


def task_record(
    method: Named, data_sha256: str, scores: Scores, counts: Mapping[str, int], fallback: str | None = None
) -> dict[str, Any]:
    """What was computed for one data set: method, data, counts.

    Args:
        method: the method that scored it.
        data_sha256: of the rows that were scored.
        scores: scores[i][j] of option j of row i.
        counts: of its jobs, with text_tokens and unknown_tokens, of the options' sentences, where any could be unknown.
        fallback: why the method is not the usual default, in words; None where it is.
    """
    return {
        "method": method.name,
        "fallback": fallback,
        "options": changed_options(method),
        "data_sha256": data_sha256,
        "examples": len(scores),
        "scored_options": sum(map(len, scores)),
        **counts,
        "ties": _count(scores, lambda a, b: a == b),
        "near_ties": _count(scores, lambda a, b: a != b and math.isclose(a, b, rel_tol=0, abs_tol=NEAR)),
    }


class TokenCounts(NamedTuple):
    """How many tokens texts have, and how many of them stand for anything unknown."""

    text_tokens: int = 0
    unknown_tokens: int = 0


def tokens_of(rows: Rows, tokenizer: Tokenizer | None) -> list[TokenCounts]:
    """The TokenCounts of the sentences of each row's options; none where no text is unknown, or none becomes tokens."""
    if tokenizer is None or tokenizer.knows_every_text:
        return []
    return [_tokens_of_one(row, tokenizer) for row in rows]


def _tokens_of_one(row: Mapping[str, Any], tokenizer: Tokenizer) -> TokenCounts:
    ids = [token for option in options_of(row) for token in tokenizer.encode_bare(option["sentence"])]
    return TokenCounts(len(ids), ids.count(tokenizer.hub.unk_token_id))


def identity(
    record: Record, method: Named, rows: Rows, probes: Job, tokenizer: Tokenizer | None = None
) -> dict[str, Any]:
    """All that the values of a data set depend on, beside the machine: what may go on with them must have it all.

    Left out is what moves the last digits and may be otherwise on the next machine: devices, threads, processes, the
    budget of tokens, and the shortcuts that trials have earned there.

    Args:
        record: a run's, with "model", "float32_matmul_precision" and "versions".
        method: the method that scores it.
        rows: its rows.
        probes: the Job of some of them.
        tokenizer: the model's Tokenizer; None where no text becomes tokens.
    """
    model = record["model"]
    heads = {name: model["heads"][name] for name in sorted(probes.heads)}
    asked = f"{tokenizer.sha256 if tokenizer else ''} {probes.digest}"
    return {
        "model": model["name"] if model["commit"] else None,  # a folder may be elsewhere on another machine
        "revision": model["commit"],
        "dtype": ", ".join(head["dtype"] for head in heads.values()),
        "float32": record["float32_matmul_precision"],
        "weights": ", ".join(head["weights_sha256"] for head in heads.values()),
        **{f"{name} head": _chosen(head, SETTINGS) for name, head in heads.items()},
        "method": method.name,
        "options": changed_options(method),
        "data": data_sha256(rows),
        "tokens": hashlib.sha256(asked.encode()).hexdigest(),
        "scoring code": code_sha256(),
        "transformers": record["versions"]["transformers"],
    }


@cache
def code_sha256() -> str:
    """sha256, as hex, over the source of this package."""
    digest = hashlib.sha256()
    package = Path(stereoset_scoring.__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()


def data_sha256(rows: Rows) -> str:
    """sha256, as hex, over ids and texts of the rows: equal for equal questions, whatever file they came from."""
    digest = hashlib.sha256()
    for row in rows:
        options = ([one.get("id"), one.get("sentence"), one.get("word")] for one in options_of(row))
        digest.update(json.dumps([row.get("id"), row.get("context"), *options]).encode())
    return digest.hexdigest()


def versions() -> dict[str, str | None]:
    """Versions of Python and of the packages that the numbers may depend on."""
    found: dict[str, str | None] = {"python": platform.python_version(), "stereoset": __version__}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def signature(record: Record) -> str:
    """What to print beside the numbers, in sacreBLEU's manner.

    Args:
        record: a run's record with "model", "tasks", "preset", "split", "partial" and "versions".
    """
    methods = {}
    for config, task in record["tasks"].items():
        options = ",".join(f"{name}={value}" for name, value in task["options"].items())
        name, _ = split_config(config)
        methods[name] = task["method"] + (f"({options})" if options else "")
    heads = record["model"]["heads"].values()
    parts = {
        **methods,
        "preset": record["preset"] or "none",
        "split": record["split"],
        "data": (record.get("data_file") or {}).get("sha256", "")[:8] or None,
        "partial": record["partial"],
        "dtype": "+".join(sorted({head["dtype"] for head in heads})) or None,  # a baseline asks no head
        "weights": "+".join(head["weights_sha256"][:8] for head in heads) or None,
        "n": sum(task["examples"] for task in record["tasks"].values()),
        "version": record["versions"]["stereoset"],
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)


def _chosen(mapping: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: mapping[name] for name in names}


def _count(scores: Scores, condition: Callable[[float, float], bool]) -> int:
    """How many examples have two options whose scores meet a condition."""
    return sum(any(starmap(condition, combinations(options, 2))) for options in scores)
