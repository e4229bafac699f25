"""The table of methods by kind of model and task, and the presets that bundle their options."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_args

from stereoset_scoring.methods.causal import (
    CausalLikelihood,
    Conditional,
    ConditionalShare,
    Gain,
    Joint,
    JointGain,
    PairJoint,
    Quotient,
    Ratio,
)
from stereoset_scoring.methods.choice import Choice
from stereoset_scoring.methods.masked import MaskedLikelihood, WordL2R
from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.next_sentence import NextSentence
from stereoset_scoring.methods.permutation import PermutationConditional, PermutationLikelihood
from stereoset_scoring.methods.pseudo_likelihood import (
    AUL,
    AULA,
    PLL,
    DifferingTokens,
    MaskedConditional,
    PairPseudoLikelihood,
    PLLWordL2R,
    PseudoLikelihood,
)
from stereoset_scoring.methods.sentiment import Sentiment
from stereoset_scoring.methods.seq2seq import (
    DenoisingConditional,
    DenoisingLikelihood,
    PrefixConditional,
    PrefixLikelihood,
    SpanConditional,
    SpanLikelihood,
    TextToTextNextSentence,
)
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal

_WHOLE_SENTENCE = (PLL, PLLWordL2R, AUL, AULA)
# (family, task) -> its methods; the default is the first one that fits how the model was trained, where methods say so,
# and whose head the checkpoint holds.
METHODS: dict[tuple[str, str], tuple[type[Method], ...]] = {
    ("masked", "intrasentence"): (MaskedLikelihood, PseudoLikelihood, WordL2R, *_WHOLE_SENTENCE),
    ("masked", "intersentence"): (NextSentence, PseudoLikelihood, MaskedConditional, *_WHOLE_SENTENCE),
    ("masked", "pairs"): (PairPseudoLikelihood, DifferingTokens, *_WHOLE_SENTENCE),
    ("permutation", "intrasentence"): (PermutationLikelihood,),
    ("permutation", "intersentence"): (NextSentence, PermutationConditional),
    ("causal", "intrasentence"): (CausalLikelihood, Choice),
    ("causal", "intersentence"): (
        *(Conditional, Joint, ConditionalShare, Gain, JointGain, Ratio, Quotient),
        *(NextSentence, Choice),
    ),
    ("causal", "pairs"): (PairJoint,),
    ("seq2seq", "intrasentence"): (SpanLikelihood, DenoisingLikelihood, PrefixLikelihood),
    ("seq2seq", "intersentence"): (SpanConditional, DenoisingConditional, PrefixConditional, TextToTextNextSentence),
    ("next_sentence", "intersentence"): (NextSentence,),
    ("sentiment", "intrasentence"): (Sentiment,),
    ("sentiment", "intersentence"): (Sentiment,),
}

_PASTED = {"text": "pasted"}
_RELEASED_BOS = {"bos": "released"}
_MULTILINGUAL_BOS = {"bos": "released", "bos_text": "<|endoftext|>"}
_MULTILINGUAL_PAIR = {**_MULTILINGUAL_BOS, "border": "length"}
# preset -> method -> the options that reproduce somebody's released code; of a task's methods, in the order of METHODS,
# the first one that the preset holds is its default.
PRESETS: dict[str, dict[type[Method], dict[str, Any]]] = {
    "stereoset": {
        MaskedLikelihood: {**_PASTED, "sentence_space": True},
        PermutationLikelihood: _PASTED,
        NextSentence: {"segments": "two"},
        CausalLikelihood: _RELEASED_BOS,
        Quotient: {**_RELEASED_BOS, "border": "length"},
    },
    "multilingual": {
        MaskedLikelihood: _PASTED,
        NextSentence: {},
        CausalLikelihood: _MULTILINGUAL_BOS,
        **dict.fromkeys((Conditional, Joint, ConditionalShare, Gain, JointGain, Ratio), _MULTILINGUAL_PAIR),
        SpanLikelihood: {**_PASTED, "first": "greedy"},
        SpanConditional: {"end": True},
        TextToTextNextSentence: {"before": "greedy"},
    },
    "bias-bench": {
        MaskedLikelihood: {**_PASTED, "attribute_space": True},
        CausalLikelihood: _RELEASED_BOS,
        DifferingTokens: {"decimals": 3},
        PairJoint: _RELEASED_BOS,
    },
    "crows-pairs": {
        PairPseudoLikelihood: {"lowercase": True, "sentence_space": True, "decimals": 3},
    },
}


def choose_method(
    family: str,
    task: str,
    name: str | None = None,
    preset: str | None = None,
    options: Mapping[str, Any] | None = None,
    tokenizer: Tokenizer | None = None,
) -> Method:
    """The method for a kind of model and a task, with its options set.

    Args:
        family: "masked", "permutation", "causal", "seq2seq" or "sentiment"; "next_sentence" for a trained head
            without a language model.
        task: "intrasentence", "intersentence" or "pairs".
        name: a method's name; None for the default.
        preset: a name in PRESETS, whose options come before the method's own defaults.
        options: options by name, which come before the preset's; those that the method does not have are left
            to the methods of the other tasks, see `check_options`.
        tokenizer: the model's, by which the default is chosen among methods that say what they fit.

    Raises:
        Refusal: if family and task have no such method or preset, or an option's value is unknown.
    """
    methods = METHODS.get((family, task), ())
    if not methods:
        raise Refusal(f"There is no method for a {family} model on {task}: score another task.")
    bundles = _bundles(methods, preset)
    if name is None:
        method = next((one for one in methods if one in bundles and _fits(one, tokenizer)), None)
    else:
        method = _named(name, methods, family, task)
    if preset is None and method not in bundles:
        raise Refusal(f"Method {name!r} only repeats a released code: ask for the preset that it belongs to.")
    if method is None or method not in bundles:
        raise Refusal(
            f"Preset {preset!r} has no {name or 'method'} for a {family} model on {task}: leave the preset out."
        )
    return method(**{**bundles[method], **_own_options(method, options or {})})


def _bundles(methods: Sequence[type[Method]], preset: str | None) -> Mapping[type[Method], Mapping[str, Any]]:
    """The methods that may be chosen, with the options that a preset gives them; none where there is no preset."""
    if preset is not None:
        return preset_named(preset)
    return {method: {} for method in methods if not method.preset_only}


def _named(name: str, methods: Sequence[type[Method]], family: str, task: str) -> type[Method]:
    """The method of a name, among those of a task."""
    by_name = {method.name: method for method in methods}
    if name not in by_name:
        raise Refusal(f"Method {name!r} is not defined for a {family} model on {task}: choose {_one_of(by_name)}.")
    return by_name[name]


def _own_options(method: type[Method], options: Mapping[str, Any]) -> dict[str, Any]:
    """Of some options, those that a method has."""
    return {name: options[name] for name in _option_types(method) if name in options}


def _option_types(method: type[Method]) -> dict[str, Any]:
    """{name of an option: what its values may be}, as a method declares them."""
    return {field.name: field.type for field in fields(method)}  # type: ignore[arg-type]  # a dataclass, as all are


def _fits(method: type[Method], tokenizer: Tokenizer | None) -> bool:
    """Whether a model was trained for a method, as far as its tokenizer tells; so it is where nothing is known."""
    return tokenizer is None or method.fits(tokenizer)


def heads_of(family: str, task: str, tokenizer: Tokenizer | None = None) -> dict[str, str]:
    """The head that each method of a task asks, the usual default's first: {method's name: head's name}.

    Those that only repeat a released code, or fit another model's training, are left out: they are nobody's default.
    """
    return {
        method.name: method.head or family
        for method in METHODS.get((family, task), ())
        if not method.preset_only and _fits(method, tokenizer)
    }


def preset_named(name: str) -> Mapping[type[Method], Mapping[str, Any]]:
    """The options of a preset, by method class.

    Raises:
        Refusal: if there is no such preset.
    """
    if name not in PRESETS:
        raise Refusal(f"There is no preset {name!r}: choose {_one_of(PRESETS)}.")
    return PRESETS[name]


def check_names(family: str, methods: str | Mapping[str, str] | None) -> None:
    """Refuse a method's name, or a task's, that no method of a family knows.

    Args:
        family: a kind of model.
        methods: None, a name, or a mapping of task to name.

    Raises:
        Refusal: if a name is unknown.
    """
    tasks = _names_by_task(family)
    if isinstance(methods, str):
        if not any(methods in names for names in tasks.values()):
            raise _undefined(methods, f"a {family} model", set().union(*tasks.values()))
        return
    for task, name in (methods or {}).items():
        if task not in tasks:
            raise Refusal(f"A {family} model has no task {task!r}: choose {_one_of(tasks)}.")
        if name not in tasks[task]:
            raise _undefined(name, f"a {family} model on {task}", tasks[task])


def _names_by_task(family: str) -> dict[str, set[str]]:
    """{task: the names of the methods that a family has for it}."""
    found = {}
    for (one, task), methods in METHODS.items():
        if one == family:
            found[task] = {method.name for method in methods}
    return found


def _undefined(name: str, what: str, known: Iterable[str]) -> Refusal:
    return Refusal(f"Method {name!r} is not defined for {what}: choose {_one_of(sorted(known))}.")


def check_options(family: str, options: Mapping[str, Any]) -> None:
    """Refuse what no method of a family knows.

    Raises:
        Refusal: if an option is unknown to every method of the family, or its value to those that have it.
    """
    known: dict[str, Any] = {}
    for (one, _), methods in METHODS.items():
        if one == family:
            for method in methods:
                known |= _option_types(method)
    for name, value in options.items():
        if name not in known:
            raise Refusal(f"No method for a {family} model has an option {name!r}: choose {_one_of(sorted(known))}.")
        choices = _choices(known[name])
        if not any(isinstance(value, one) if isinstance(one, type) else value == one for one in choices):
            names = [one.__name__ if isinstance(one, type) else one for one in choices]
            raise Refusal(f"Option {name} cannot be {value!r}: choose {_one_of(names)}.")


def read_option(name: str, word: str) -> Any:
    """The value that a word of the command line gives an option, by the type that its methods declare.

    "7" is a text where a text is wanted and a number where a number is; what fits none is left to `check_options`.
    """
    methods = {method for some in METHODS.values() for method in some}
    types = {_option_types(method)[name] for method in methods if name in _option_types(method)}
    choices = [choice for one in types for choice in _choices(one)]
    if word in choices:
        return word
    for choice in choices:
        if not isinstance(choice, type) and str(choice).lower() == word.lower():
            return choice
    return int(word) if int in choices and str not in choices and word.removeprefix("-").isdigit() else word


def methods_table() -> str:
    """All methods as a Markdown table; a task's default is starred, of several the first that fits the model."""
    lines = ["| kind of model | task | method | score | options | source |", "|---|---|---|---|---|---|"]
    for (family, task), methods in METHODS.items():
        for method in methods:
            star = " *" if method in _defaults(methods) else ""
            score = (method.__doc__ or "").strip().splitlines()[0].replace("|", "\\|")
            options = ", ".join(f"`{name}`" for name in _option_types(method)) or "-"
            lines.append(f"| {family} | {task} | `{method.name}`{star} | {score} | {options} | {method.source} |")
    return "\n".join(lines)


def _defaults(methods: Sequence[type[Method]]) -> Sequence[type[Method]]:
    """Of a task's methods, those that are the default for some model: all up to the first one that fits any."""
    return methods[: 1 + next(i for i, method in enumerate(methods) if method.fits is Method.fits)]


def changed_options(method: Any) -> dict[str, Any]:
    """The options of a method, or of a baseline's rule, that differ from their defaults, by name."""
    return {
        field.name: getattr(method, field.name)
        for field in fields(method)
        if getattr(method, field.name) != field.default
    }


def _choices(annotation: Any) -> tuple[Any, ...]:
    """What an annotation of Literals, bool, None and other types admits: values, and types."""
    if annotation is bool:
        return (True, False)
    if annotation is type(None):
        return (None,)
    return tuple(choice for part in get_args(annotation) for choice in _choices(part)) or (annotation,)


def _one_of(names: Iterable[object]) -> str:
    words = list(map(str, names))
    return ", ".join(words) if len(words) == 1 else "one of " + ", ".join(words)
