"""How good an example is: how far its annotators agree, and what is known to be wrong with it, in fixed words.

Standard library only, and no other file of this package but the layout of its examples.
"""

import re
import typing
from collections.abc import Mapping

BLANK = "BLANK"
PAIR = ("stereotype", "anti-stereotype")

TRANSLATORS = "translators' comments on CrowS-Pairs, Névéol et al. 2022"
COUNTED = "counted in the texts by this project"

Example = Mapping[str, typing.Any]


class Flag(typing.NamedTuple):
    """What a flag says, and who found it.

    Attributes:
        meaning: of the example that has it.
        source: whose finding it is.
    """

    meaning: str
    source: str


FLAGS = {
    "bias_type_mismatch": Flag("the pair contrasts groups of another kind than its bias type says", TRANSLATORS),
    "double_switch": Flag("the two sentences differ in more than the group: two things are switched", TRANSLATORS),
    "not_minimal": Flag("the two sentences differ in more words than they need to", TRANSLATORS),
    "culture": Flag("bound to the culture of the United States, or not to be translated", TRANSLATORS),
    "doubtful": Flag("doubted to be a stereotype, a contrast, or to make sense", TRANSLATORS),
    "ill_formed": Flag("wrong grammar or spelling in the original", TRANSLATORS),
    "adapted": Flag("names, places or customs were changed for France", TRANSLATORS),
    "commented": Flag("commented on in words of none of these kinds", TRANSLATORS),
    "empty_sentence": Flag("an option is empty", COUNTED),
    "options_equal": Flag("two options are the same text", COUNTED),
    "forced_tie": Flag("stereotype and anti-stereotype are the same text: every model ties", COUNTED),
    "blank_twice": Flag("the context of an intrasentence example holds BLANK more than once", COUNTED),
    "blank_glued": Flag("letters are glued to BLANK", COUNTED),
    "blank_between": Flag("the context of an intersentence example holds BLANK", COUNTED),
    "not_its_context": Flag("an option is not its context with BLANK filled, even ignoring case", COUNTED),
    "untranslated": Flag("a text is the English one, letter for letter", COUNTED),
}

# What the comments say, in French and English with many misspellings, kind by kind.
_KINDS = {
    "bias_type_mismatch": r"bias (type )?(mism|ill|fixed)",
    "double_switch": r"double ?switch",
    "not_minimal": r"minim|minial",
    "culture": r"(?<!adaptation)cultur|duisible|idiome",
    "doubtful": r"bizarre|weird|\bsens\b|no ?sense|make sense|logique|\bpb\b|ill defined|st[eé]r[eé]o|valid|incoh"
    r"|garder|supprimer|inadapt|ambig|unsure|not sure|pas sure?|bof|\?\?\?|^\?",
    "ill_formed": r"agrammat|\bfaute|typo|orthograph|grammaire dans",
    "adapted": r"adap|adat|adta|ajout|\w ?= ?\w",
}
_MENDED = ("bias_type_mismatch", "double_switch", "not_minimal")  # in the revised pairs, where a comment says so


def comment_flags(comment: str, revised: bool = False, french: bool = False) -> list[str]:
    """The flags that a translators' comment stands for, in the order of FLAGS.

    Args:
        comment: of a pair; empty for none.
        revised: whether the pair is the revised one, in which some of what was found is mended ("… fixed").
        french: whether it is the French one; that names were adapted concerns no other.
    """
    words = comment.lower()
    found = [kind for kind, pattern in _KINDS.items() if re.search(pattern, words)]
    kept = [kind for kind in found if not (revised and kind in _MENDED and _is_mended(kind, words))]
    kept = [kind for kind in kept if french or kind != "adapted"]
    return kept if found else ["commented"] if words else []


def _is_mended(kind, words):
    return bool(re.search(rf"({_KINDS[kind]})[^;/]*fixed", words))


def text_flags(example: Example, task: str, original: Example | None = None) -> list[str]:
    """The flags that an example's own texts call for, in the order of FLAGS.

    Args:
        example: with `context` and `sentences`, a list of options with `sentence`, `id` and `gold_label`.
        task: "intrasentence", "intersentence", or any other of pairs.
        original: the English example that it translates; None where that is not known, or it is English itself.
    """
    sentences = [option["sentence"] for option in example["sentences"]]
    by_label = {option["gold_label"]: option["sentence"] for option in example["sentences"]}
    within, context = task == "intrasentence", example["context"]
    found = {
        "empty_sentence": not all(map(str.strip, sentences)),
        "options_equal": len(set(sentences)) < len(sentences),
        "forced_tie": len({by_label.get(label) for label in PAIR}) == 1,
        "blank_twice": within and context.count(BLANK) > 1,
        "blank_glued": within and bool(re.search(rf"\w{BLANK}|{BLANK}\w", context)),
        "blank_between": task == "intersentence" and BLANK in context,
        "not_its_context": within and not all(_fills(sentence, context) for sentence in sentences),
        "untranslated": original is not None and _shares_a_text(example, original),
    }
    return [flag for flag, holds in found.items() if holds]


def _fills(sentence, context):
    if context.count(BLANK) == 1 and _fills_letter_for_letter(sentence, *context.split(BLANK)):
        return True  # as nearly all do; a pattern takes a hundred times longer
    pattern = "(.+?)".join(map(re.escape, context.split(BLANK)))
    return bool(re.fullmatch(pattern, sentence, re.IGNORECASE | re.DOTALL))


def _fills_letter_for_letter(sentence, before, after):
    return len(sentence) > len(before) + len(after) and sentence.startswith(before) and sentence.endswith(after)


def _shares_a_text(example, original):
    english = {option["id"]: option["sentence"] for option in original["sentences"]}
    shared = any(option["sentence"] == english.get(option["id"]) for option in example["sentences"])
    return shared or (bool(example["context"]) and example["context"] == original["context"])


def agreement(example: Example) -> int | None:
    """How many of an example's annotators agree: the smaller number of labels that are the gold label, of its pair.

    Args:
        example: with `sentences`, a list of options with `gold_label` and `labels`, each {label, human_id}.

    Returns:
        None where nobody's labels are known. StereoSet has five annotators, and 3 to 5 of them agree.
    """
    counts = [_agreeing(option) for option in example["sentences"] if option["gold_label"] in PAIR]
    return min(counts) if any(counts) else None


def _agreeing(option):
    return sum(label["label"] == option["gold_label"] for label in option["labels"])
