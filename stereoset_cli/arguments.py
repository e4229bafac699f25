"""What score.py is asked on the command line, and what makes no sense there."""

import argparse
import json
import os
from pathlib import Path

import torch

from stereoset_scoring.baselines import is_baseline, sentiment_model
from stereoset_scoring.methods.registry import METHODS, PRESETS, read_option
from stereoset_scoring.questions.configs import CONTEXT_TASKS, LANGUAGES, TASKS, asked_as
from stereoset_scoring.refusal import Refusal

DEFAULTS = "defaults"


def parse_args(description):
    """The command line.

    Args:
        description: what the script says of itself.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model",
        help="hub id or folder of a language model; or a baseline: baseline:ideal, "
        "baseline:stereotyped, baseline:random, baseline:sentiment=MODEL (hub id or folder of a classifier), "
        "baseline:ensemble=FILE,FILE,FILE (prediction files of gpt2-large, bert-large-cased, gpt2-medium)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of baseline:random")
    parser.add_argument(
        "--sample",
        action="store_true",
        help="score the built-in examples; without --model, a model built on the spot",
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=CONTEXT_TASKS)
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=["en"])
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        help="a method for every task, or TASK=NAME for one: "
        + ", ".join(sorted({one.name for some in METHODS.values() for one in some})),
    )
    parser.add_argument("--preset", choices=sorted(PRESETS), help="the options of somebody's released code")
    parser.add_argument("--option", nargs="+", metavar="NAME=VALUE", help="options of the methods: see --list-methods")
    parser.add_argument(
        "--compare-presets", nargs=2, choices=[DEFAULTS, *sorted(PRESETS)], help="both, and the difference"
    )
    parser.add_argument("--list-methods", action="store_true", help="every method with its source, and nothing else")
    parser.add_argument(
        "--next-sentence-head",
        type=Path,
        metavar="PATH",
        help="a trained head for the intersentence task: a folder of train_next_sentence.py, or a .pth or .safetensors",
    )
    parser.add_argument("--follows", type=int, choices=(0, 1), help="that head's class that means: the option follows")
    parser.add_argument("--scale", choices=("log", "probability"), default="log", help="what scores.json holds")
    parser.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    parser.add_argument(
        "--dtype", default="auto", help="auto (the checkpoint's own), float32, bfloat16, float16 or float64"
    )
    parser.add_argument("--attention", help="eager, sdpa, flash_attention_2, …; default: transformers' own choice")
    parser.add_argument("--compile", action="store_true", help="compile the model, its heads left out")
    parser.add_argument("--tf32", action="store_true", help="multiply float32 matrices in TensorFloat-32, on a GPU")
    parser.add_argument("--device-map", choices=("auto",), help="spread one model over all devices of the machine")
    parser.add_argument(
        "--gpus-per-model", type=int, metavar="K", help="each process spreads its model over K of its machine's GPUs"
    )
    parser.add_argument(
        "--quantization",
        type=read_quantization,
        metavar="JSON",
        help="how weights are quantized as they are loaded: a JSON object such as "
        '{"quant_method": "bitsandbytes", "load_in_4bit": true}, or a file that holds one',
    )
    parser.add_argument("--revision", help="branch, tag or commit of the model")
    parser.add_argument("--max-tokens", type=int, help="tokens, padding included, in one forward pass")
    parser.add_argument("--limit", type=int, help="only the first examples of each task: a PARTIAL result")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="leave out and list examples that cannot be scored, instead of refusing all: a PARTIAL result",
    )
    parser.add_argument(
        "--restart", action="store_true", help="set aside what an interrupted run has computed, and begin anew"
    )
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--output-dir", type=Path, help="where the files go")
    args = parser.parse_args()
    if args.list_methods:
        return args
    if not args.output_dir:
        parser.error("give an --output-dir for the files")
    if not args.model and not args.sample:
        parser.error("give a --model, or --sample to try the machinery")
    if args.sample and list(args.languages) != ["en"]:
        parser.error("the sample is English: leave --languages out")
    if is_baseline(args.model) and not sentiment_model(args.model) and args.scale == "probability":
        parser.error("a baseline's scores are no logarithms of probabilities: leave --scale out")
    if (
        args.device_map
        and torch.cuda.is_available()
        and int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > 1
        and not args.gpus_per_model
    ):
        parser.error("every process would spread its model over the same GPUs: give --gpus-per-model")
    if is_baseline(args.model) and args.compare_presets:
        parser.error("a baseline has no presets: leave --compare-presets out")
    if args.limit is not None and args.limit < 1:
        parser.error("--limit counts examples: give 1 or more")
    if set(args.languages) != {"en"} and not set(args.tasks) <= set(CONTEXT_TASKS):
        parser.error("pairs are English only: score them without --languages")
    if args.sample and not set(args.tasks) <= set(CONTEXT_TASKS):
        parser.error("the sample has no pairs: leave them out of --tasks")
    return args


def read_quantization(text):
    """--quantization as load_scorer takes it: a JSON object, or what a file holds."""
    try:
        found = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a JSON object nor a file with one ({error})") from error
    if not isinstance(found, dict) or "quant_method" not in found:
        raise argparse.ArgumentTypeError(f"{text!r} names no quant_method: give one, such as bitsandbytes")
    return found


def options(words):
    """--option as a Scorer takes it: {name: value}."""
    pairs = dict(word.partition("=")[::2] for word in words or ())
    return {name: read_option(name, value) for name, value in pairs.items()}


def methods_by_task(words):
    """--method as load_scorer takes it: None, a name, or {task: name}."""
    if not words or (len(words) == 1 and "=" not in words[0]):
        return words[0] if words else None
    pairs = dict(word.partition("=")[::2] for word in words)
    if not set(pairs) <= set(TASKS) or not all(pairs.values()):
        raise Refusal(f"--method {' '.join(words)} is neither a name nor TASK=NAME for the tasks {', '.join(TASKS)}.")
    methods = {}
    for task, name in pairs.items():
        if methods.setdefault(asked_as(task), name) != name:
            raise Refusal(f"--method {' '.join(words)} gives pairs two methods: score each in a run of its own.")
    return methods
