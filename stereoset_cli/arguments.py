"""What `stereoset score` is asked on the command line, and what makes no sense there; no torch."""

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stereoset_dataset.quality import FLAGS
from stereoset_scoring.baselines import is_baseline, sentiment_model
from stereoset_scoring.methods.registry import METHODS, PRESETS, read_option
from stereoset_scoring.questions.configs import CONTEXT_TASKS, ENGLISH, LANGUAGES, LANGUAGES_OF, TASKS, asked_as
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.runs import asked
from stereoset_scoring.runs.asked import DEFAULTS, OWN_FILE, SAMPLE
from stereoset_scoring.served.server import KEY, Server

if TYPE_CHECKING:
    from stereoset_report.selection import Selection

BREAKDOWNS = ("agreement", "target")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help with the defaults, where there are some."""

    def _get_help_string(self, action):
        text = action.help or ""
        if action.default in (None, False, argparse.SUPPRESS) or "%(default)s" in text:
            return text
        return f"{text} (default: {_words(action.default)})"


def _words(default):
    return " ".join(default) if isinstance(default, list | tuple) else str(default)


def parse_args(description: str) -> argparse.Namespace:
    """The command line.

    Args:
        description: what the command says of itself.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=Formatter)
    _add_questions(parser.add_argument_group("what is scored"))
    _add_manner(parser.add_argument_group("how it is asked"))
    _add_placement(parser.add_argument_group("how it is computed"))
    _add_files(parser.add_argument_group("files"))
    args = parser.parse_args()
    mistake = None if args.list_methods else _mistake(args)
    if mistake:
        parser.error(mistake)
    return args


def _add_questions(group):
    group.add_argument(
        "--model",
        help="hub id or folder of a language model; or a baseline: baseline:ideal, "
        "baseline:stereotyped, baseline:random, baseline:sentiment=MODEL (hub id or folder of a classifier), "
        "baseline:ensemble=FILE,FILE,FILE (prediction files of gpt2-large, bert-large-cased, gpt2-medium)",
    )
    group.add_argument("--revision", help="branch, tag or commit of the model")
    group.add_argument(
        "--revisions",
        nargs="+",
        metavar="NAME",
        help="several of them, or folders of checkpoints: one after the other, each in a folder of its own in "
        "--output-dir, and the curve over all",
    )
    group.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    group.add_argument(
        "--server",
        metavar="URL",
        help="ask a model that is served there under the name --model, such as http://localhost:8000/v1, over the "
        f"OpenAI completions protocol; the key is what {KEY} holds",
    )
    group.add_argument("--tokenizer", metavar="NAME", help="hub id or folder of a served model's; default: --model")
    group.add_argument("--seed", type=int, default=0, help="of baseline:random")
    group.add_argument(
        "--next-sentence-head",
        type=Path,
        metavar="PATH",
        help="a trained head for the intersentence task: a folder of train_next_sentence.py, or a .pth or .safetensors",
    )
    group.add_argument(
        "--tasks",
        nargs="+",
        choices=TASKS,
        metavar="TASK",
        help=f"of {', '.join(TASKS)}; default: {' '.join(CONTEXT_TASKS)}",
    )
    group.add_argument(
        "--languages", nargs="+", choices=LANGUAGES, metavar="XX", help=f"of {', '.join(LANGUAGES)}; default: {ENGLISH}"
    )
    group.add_argument("--split", choices=("validation", "test"), default="validation", help="of English StereoSet")
    group.add_argument(
        "--sample",
        action="store_true",
        help="score the built-in examples; without --model, a model built on the spot",
    )
    add_own_data(group)
    add_selection(group)
    add_breakdown(group)
    group.add_argument("--limit", type=int, help="only the first examples of each task: a PARTIAL result")


def add_own_data(group: argparse._ArgumentGroup) -> None:
    """The options for examples of one's own."""
    group.add_argument(
        "--data-file", type=Path, metavar="FILE", help="examples of your own, in the layout of StereoSet's dev.json"
    )
    group.add_argument("--language", type=read_language, metavar="XX", help=f"of --data-file; default: {ENGLISH}")


def add_selection(group: argparse._ArgumentGroup) -> None:
    """The options that say which examples count, and by what they are told apart."""
    group.add_argument(
        "--without",
        nargs="+",
        default=[],
        metavar="FLAG",
        help=f"leave out examples with one of these flags: {', '.join(FLAGS)}, or one of --flags",
    )
    group.add_argument("--flags", type=Path, metavar="FILE", help="flags of your own: a CSV with the columns id, flag")
    group.add_argument(
        "--min-agreement",
        type=int,
        metavar="N",
        help="leave out examples on which fewer of the five annotators agree: 3 to 5 do",
    )


def selection_of(args: argparse.Namespace) -> "Selection":
    """Which examples count, as the options of `add_selection` say.

    Raises:
        OSError: if there is no such file of flags.
        Refusal: if there is no such flag, or the file is laid out otherwise.
    """
    from stereoset_report.selection import Selection, read_own_flags

    return Selection(args.without, args.min_agreement, read_own_flags(args.flags))


def add_breakdown(group: argparse._ArgumentGroup) -> None:
    """The option for figures of more groups of examples."""
    group.add_argument(
        "--breakdown",
        nargs="+",
        choices=BREAKDOWNS,
        default=[],
        help="figures also for each value of this, beside the bias types",
    )


def _add_manner(group):
    group.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        help="a method for every task, or TASK=NAME for one: "
        + ", ".join(sorted({one.name for some in METHODS.values() for one in some})),
    )
    group.add_argument("--preset", choices=sorted(PRESETS), help="the options of somebody's released code")
    group.add_argument("--option", nargs="+", metavar="NAME=VALUE", help="options of the methods: see --list-methods")
    group.add_argument("--follows", type=int, choices=(0, 1), help="a trained head's class that means: it follows")
    group.add_argument(
        "--compare-presets",
        nargs=2,
        choices=[DEFAULTS, *sorted(PRESETS)],
        metavar="PRESET",
        help=f"two presets, or {DEFAULTS}, and the difference",
    )
    group.add_argument("--list-methods", action="store_true", help="every method with its source, and nothing else")


def _add_placement(group):
    group.add_argument(
        "--dtype", default="auto", help="auto (the checkpoint's own), float32, bfloat16, float16 or float64"
    )
    group.add_argument("--attention", help="eager, sdpa, flash_attention_2, …; default: transformers' own choice")
    group.add_argument("--compile", action="store_true", help="compile the model, its heads left out")
    group.add_argument("--tf32", action="store_true", help="multiply float32 matrices in TensorFloat-32, on a GPU")
    group.add_argument("--device-map", choices=("auto",), help="spread one model over all devices of the machine")
    group.add_argument(
        "--gpus-per-model", type=int, metavar="K", help="each process spreads its model over K of its machine's GPUs"
    )
    group.add_argument(
        "--quantization",
        type=read_quantization,
        metavar="JSON",
        help="how weights are quantized as they are loaded: a JSON object such as "
        '{"quant_method": "bitsandbytes", "load_in_4bit": true}, or a file that holds one',
    )
    group.add_argument(
        "--max-tokens",
        type=int,
        help="tokens, padding included, in one forward pass; default: 16384 on a GPU; elsewhere 2048, or 4096 for a "
        "narrow model",
    )
    group.add_argument("--concurrency", type=int, default=8, help="requests to a --server that are under way at once")
    group.add_argument("--timeout", type=float, default=120, help="seconds without a word, for a request to a --server")
    group.add_argument(
        "--keep-going",
        action="store_true",
        help="leave out and list examples that cannot be scored, instead of refusing all: a PARTIAL result",
    )


def _add_files(group):
    group.add_argument("--output-dir", type=Path, help="where the files go: scores.json, results.json, run.json")
    group.add_argument("--name", type=read_label, metavar="LABEL", help="what tables call the run; default: the model")
    group.add_argument("--scale", choices=("log", "probability"), default="log", help="what scores.json holds")
    group.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    group.add_argument(
        "--restart", action="store_true", help="set aside what the output folder holds of earlier runs, and begin anew"
    )


def _mistake(args):
    """What makes no sense in a command line, in words; None where all does."""
    tasks, baseline = args.tasks or CONTEXT_TASKS, is_baseline(args.model)
    english, pairs = (args.languages or [ENGLISH]) == [ENGLISH], not set(tasks) <= set(CONTEXT_TASKS)
    languages = args.languages or [ENGLISH]
    nowhere = [(task, language) for task in tasks for language in languages if language not in LANGUAGES_OF[task]]
    mistakes = {
        "give an --output-dir for the files": not args.output_dir,
        "give a --model, or --sample to try the machinery": not args.model and not args.sample and not args.revisions,
        **_mistakes_of_revisions(args, baseline),
        "give the --model that the server serves": args.server and not args.model,
        "a baseline is served nowhere: leave --server out": args.server and baseline,
        "a server has one state of a model: leave --revisions out": args.server and args.revisions,
        "--tokenizer is that of a served model: give --server": args.tokenizer and not args.server,
        "the sample is English: leave --languages out": args.sample and not english,
        "a baseline's scores are no logarithms of probabilities: leave --scale out": baseline
        and not sentiment_model(args.model)
        and args.scale == "probability",
        "a baseline has no presets: leave --compare-presets out": baseline and args.compare_presets,
        "--limit counts examples: give 1 or more": args.limit is not None and args.limit < 1,
        **{f"there is no {task} in {one}: it is in {', '.join(LANGUAGES_OF[task])}": True for task, one in nowhere},
        "the sample has no pairs: leave them out of --tasks": args.sample and pairs,
        "the sample is examples too: leave --sample or --data-file out": args.sample and args.data_file,
        "a file of examples has one language: give --language instead of --languages": args.data_file
        and args.languages,
        "--language is that of a --data-file: give --languages": args.language and not args.data_file,
        "a file of examples has no pairs: leave them out of --tasks": args.data_file and pairs,
    }
    return next((words for words, holds in mistakes.items() if holds), None)


def _mistakes_of_revisions(args, baseline):
    """{words: whether they hold} of --revisions."""
    given = args.revisions or []
    return {
        "--revisions go without --revision": given and args.revision,
        "--revisions go without --compare-presets: compare the presets of each in a run of its own": given
        and args.compare_presets,
        "a baseline has no revisions: leave --revisions out": given and baseline,
        "give the --model whose revisions they are, or folders": not args.model
        and not all(Path(one).is_dir() for one in given),
        "two of the --revisions have one name, and would go to one folder": len(set(map(asked.name_of, given)))
        < len(given),
    }


def asked_for(
    args: argparse.Namespace, data_file: Mapping[str, str] | None = None, selection: str | None = None
) -> asked.Asked:
    """The command line as a run takes it.

    Args:
        args: as `parse_args` returns them.
        data_file: {"path": …, "sha256": …} of the file of examples; None where there is none.
        selection: which examples count, in words; None for all.
    """
    split = SAMPLE if args.sample else OWN_FILE if data_file else args.split
    follows = {} if args.follows is None else {"follows": args.follows}
    return asked.Asked(
        asked.Model(
            args.model,
            args.revision,
            args.trust_remote_code,
            args.next_sentence_head,
            args.seed,
            tuple(args.revisions or ()),
            Server(args.server, args.concurrency, args.timeout) if args.server else None,
            args.tokenizer,
        ),
        asked.Questions(split, args.limit, data_file, selection),
        asked.Manner(
            methods_by_task(args.method),
            args.preset,
            options(args.option) | follows,
            tuple(args.compare_presets or ()),
        ),
        asked.Placement(
            args.dtype,
            args.attention,
            args.compile,
            args.tf32,
            args.device_map,
            args.gpus_per_model,
            args.quantization,
            args.max_tokens,
        ),
        asked.Output(args.output_dir, args.name or _label_of_run(args), args.scale, args.keep_going, args.restart),
    )


def _label_of_run(args):
    return "" if args.revisions and not args.model else label_of(args.model)


def label_of(model: str | None) -> str:
    """What tables call a model by default: its hub id, or the name of its folder.

    >>> label_of("EleutherAI/pythia-70m"), label_of("runs/bert/best/"), label_of("baseline:ensemble=a.json,b.json")
    ('EleutherAI/pythia-70m', 'best', 'baseline:ensemble')
    """
    if model is None:
        return "sample model"
    if is_baseline(model):
        inner = sentiment_model(model)
        return f"baseline:sentiment={label_of(inner)}" if inner else model.partition("=")[0]
    return Path(model).resolve().name if Path(model).exists() or model.count("/") != 1 else model


def read_label(text: str) -> str:
    """--name: a line that a terminal shows."""
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is no label: give one line of text")
    return text


def read_language(text: str) -> str:
    """--language: two letters."""
    if not re.fullmatch("[a-z]{2}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no language: give two letters, such as it")
    return text


def read_quantization(text: str) -> dict[str, Any]:
    """--quantization as load_scorer takes it: a JSON object, or what a file holds."""
    try:
        found = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a JSON object nor a file with one ({error})") from error
    if not isinstance(found, dict) or "quant_method" not in found:
        raise argparse.ArgumentTypeError(f"{text!r} names no quant_method: give one, such as bitsandbytes")
    return found


def options(words: Iterable[str] | None) -> dict[str, Any]:
    """--option as a Scorer takes it: {name: value}."""
    pairs = dict(word.partition("=")[::2] for word in words or ())
    return {name: read_option(name, value) for name, value in pairs.items()}


def methods_by_task(words: Sequence[str] | None) -> str | dict[str, str] | None:
    """--method as load_scorer takes it: None, a name, or {task: name}."""
    if not words or (len(words) == 1 and "=" not in words[0]):
        return words[0] if words else None
    pairs = dict(word.partition("=")[::2] for word in words)
    if not set(pairs) <= set(TASKS) or not all(pairs.values()):
        raise Refusal(f"--method {' '.join(words)} is neither a name nor TASK=NAME for the tasks {', '.join(TASKS)}.")
    methods: dict[str, str] = {}
    for task, name in pairs.items():
        if methods.setdefault(asked_as(task), name) != name:
            raise Refusal(f"--method {' '.join(words)} gives pairs two methods: score each in a run of its own.")
    return methods
