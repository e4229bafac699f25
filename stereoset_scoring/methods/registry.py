"""The table of methods by kind of model and task, and the presets that bundle their options."""

from dataclasses import fields
from typing import get_args

from stereoset_scoring.methods.causal import (
    CausalLikelihood,
    Conditional,
    ConditionalShare,
    Gain,
    Joint,
    JointGain,
    Quotient,
    Ratio,
)
from stereoset_scoring.methods.masked import MaskedLikelihood
from stereoset_scoring.methods.next_sentence import NextSentence

# (family, task) -> its methods; the first is the default.
METHODS = {
    ("masked", "intrasentence"): (MaskedLikelihood,),
    ("masked", "intersentence"): (NextSentence,),
    ("causal", "intrasentence"): (CausalLikelihood,),
    ("causal", "intersentence"): (Conditional, Joint, ConditionalShare, Gain, JointGain, Ratio, Quotient, NextSentence),
    ("next_sentence", "intersentence"): (NextSentence,),
}

_PASTED = {"text": "pasted"}
_RELEASED_BOS = {"bos": "released"}
_MULTILINGUAL_PAIR = {"bos": "released", "bos_text": "<|endoftext|>", "border": "length"}
# preset -> method -> the options that reproduce somebody's released code; the first method of a task is its default.
PRESETS = {
    "stereoset": {
        MaskedLikelihood: {**_PASTED, "sentence_space": True},
        NextSentence: {"segments": "two"},
        CausalLikelihood: _RELEASED_BOS,
        Quotient: {**_RELEASED_BOS, "border": "length"},
    },
    "multilingual": {
        MaskedLikelihood: _PASTED,
        NextSentence: {},
        CausalLikelihood: {"bos": "released", "bos_text": "<|endoftext|>"},
        **dict.fromkeys((Conditional, Joint, ConditionalShare, Gain, JointGain, Ratio), _MULTILINGUAL_PAIR),
    },
    "bias-bench": {
        MaskedLikelihood: {**_PASTED, "attribute_space": True},
        CausalLikelihood: _RELEASED_BOS,
    },
}


def choose_method(family, task, name=None, preset=None, options=None):
    """The method for a kind of model and a task, with its options set.

    Args:
        family: "masked" or "causal"; "next_sentence" for a trained head without a language model.
        task: "intrasentence" or "intersentence".
        name: a method's name; None for the default.
        preset: a name in PRESETS, whose options come before the method's own defaults.
        options: options by name, which come before the preset's; those that the method does not have are left
            to the methods of the other tasks, see `check_options`.

    Raises:
        ValueError: if family and task have no such method or preset, or an option's value is unknown.
    """
    by_name = {method.name: method for method in METHODS.get((family, task), ())}
    if not by_name:
        raise ValueError(f"There is no method for a {family} model on {task}: score another task.")
    if name is not None and name not in by_name:
        raise ValueError(f"Method {name!r} is not defined for a {family} model on {task}: choose {_one_of(by_name)}.")
    if preset is None:
        bundles = {method: {} for method in by_name.values() if not hasattr(method, "preset_only")}
    else:
        bundles = preset_named(preset)
    method = by_name[name] if name else next((one for one in by_name.values() if one in bundles), None)
    if preset is None and method not in bundles:
        raise ValueError(f"Method {name!r} only repeats a released code: ask for the preset that it belongs to.")
    if method not in bundles:
        raise ValueError(
            f"Preset {preset!r} has no {name or 'method'} for a {family} model on {task}: leave the preset out."
        )
    options = {field.name: options[field.name] for field in fields(method) if field.name in (options or {})}
    return method(**{**bundles[method], **options})


def preset_named(name):
    """The options of a preset, by method class.

    Raises:
        ValueError: if there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"There is no preset {name!r}: choose {_one_of(PRESETS)}.")
    return PRESETS[name]


def check_options(family, options):
    """Refuse what no method of a family knows.

    Raises:
        ValueError: if an option is unknown to every method of the family, or its value to those that have it.
    """
    methods = {method for (kind, _), some in METHODS.items() if kind == family for method in some}
    known = {field.name: field.type for method in methods for field in fields(method)}
    for name, value in options.items():
        if name not in known:
            raise ValueError(f"No method for a {family} model has an option {name!r}: choose {_one_of(sorted(known))}.")
        allowed = _allowed(known[name])
        if allowed is not None and value not in allowed:
            raise ValueError(f"Option {name} cannot be {value!r}: choose {_one_of(allowed)}.")


def changed_options(method):
    """The options of a method that differ from their defaults, by name."""
    return {
        field.name: getattr(method, field.name)
        for field in fields(method)
        if getattr(method, field.name) != field.default
    }


def _allowed(annotation):
    """The values that an annotation of Literals, bool or None admits; None for anything else."""
    if annotation is bool:
        return (True, False)
    parts = get_args(annotation)
    if any(part is str for part in parts):
        return None
    values = [value for part in parts for value in (get_args(part) or (part,))]
    return tuple(None if value is type(None) else value for value in values)


def _one_of(names):
    return ", ".join(map(str, names)) if len(names) == 1 else "one of " + ", ".join(map(str, names))
