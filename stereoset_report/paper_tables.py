"""The layouts of the papers' tables: which numbers of which models stand where.

Numbers as in Nadeem et al. 2020, arXiv 2004.09456 (StereoSet), and Öztürk et al. 2023 (the multilingual study).
"""

from dataclasses import dataclass
from functools import cached_property, partial

from stereoset_metric.compute_score import compute_score, flat_reference
from stereoset_report.correlation import spearman
from stereoset_report.formats import Cell, Table
from stereoset_report.results import ALL, OVERALL, make_results
from stereoset_report.saved import Saved
from stereoset_scoring.questions.configs import CONTEXT_TASKS

INTRA, INTER = CONTEXT_TASKS
DOMAINS = ("gender", "profession", "race", "religion")
NUMBERS = ("lms", "ss", "icat")
HEADERS = tuple(("", number) for number in NUMBERS)
STUDY = ("en", "de", "tr", "fr", "es")  # the languages in the order of the multilingual study
SPLITS = {"validation": "Development set", "test": "Test set", "sample": "Sample", "file": "Own examples"}
# Not among the models whose lms and ss the paper correlates (§7).
BASELINES = ("ideal", "stereotyped", "random", "sentiment", "ensemble")
# Number of the multilingual study's table -> (task, what is averaged over).
MULTILINGUAL = {
    2: (INTRA, "example"),
    3: (INTER, "example"),
    4: (OVERALL, "example"),
    5: (OVERALL, "target"),
    8: (INTRA, "target"),
    9: (INTER, "target"),
}
# Header -> (what the metric calls it, what the published file calls it).
BY_EXAMPLE = {"LMS": ("lms", "lms"), "SS": ("ss", "ss"), "ICAT": ("icat", "icat")}
BY_TARGET = {
    "LMS": ("lms", "lms"),
    "SS": ("ss", "ss"),
    "ICAT macro": ("icat_macro", "icat_macro"),
    "ICAT micro": ("icat", "icat_micro"),
}


@dataclass(frozen=True)
class Model:
    """One input: a model's name, and its saved scores in one split and one language or more."""

    name: str
    saved: Saved

    @property
    def split(self):
        """The split of its data."""
        return self.saved.split

    @cached_property
    def by_target(self):
        """Its results, averaged over target terms: see `make_results`."""
        return make_results(self.saved.parts)

    @cached_property
    def by_example(self):
        """Its results, averaged over examples."""
        return make_results(self.saved.parts, average="example")

    @property
    def languages(self):
        """The languages that it has scores in."""
        return self.by_target.keys()

    @property
    def is_baseline(self):
        """Whether it is a baseline rather than a language model, by its record or its name."""
        known = self.name.lower().removesuffix("lm") in BASELINES
        return known or self.saved.family in ("baseline", "sentiment")

    def numbers(self, language, task, average="target", group=ALL):
        """The metric's numbers of a group of examples; empty where it has no scores."""
        results = self.by_target if average == "target" else self.by_example
        return results.get(language, {}).get(task, {}).get(group, {})


def overall(models, published):
    """StereoSet's Table 4: both tasks together."""
    sections = {
        SPLITS[split]: [
            [model.name, *_cells(model, OVERALL, ALL, published)] for model in some if model.numbers("en", OVERALL)
        ]
        for split, some in _by_split(models)
    }
    notes = [note for split, some in _by_split(models) for note in _correlation(some, "en", SPLITS[split])]
    return Table("StereoSet, Table 4: overall", ["Model"], list(HEADERS), sections, notes)


def by_term(models, published, terms=3):
    """StereoSet's Table 5: domains, both tasks together, with their most and least stereotyped target terms."""
    sections = {
        f"{model.name}, {SPLITS[model.split].lower()}": [
            row for domain in DOMAINS for row in _domain_and_terms(model, domain, published, terms)
        ]
        for model in models
        if model.numbers("en", OVERALL)
    }
    notes = ["most: the highest ss; least: of the others, the ss nearest to 50."]
    title = "StereoSet, Table 5: domains with their most and least stereotyped target terms"
    return Table(title, ["Domain", "Terms"], [*HEADERS, ("", "examples")], sections, notes)


def by_task(models, published):
    """StereoSet's Table 6: each task."""
    sections = {
        f"{task.capitalize()} task, {SPLITS[split].lower()}": [
            [model.name, *_cells(model, task, ALL, published)] for model in some if model.numbers("en", task)
        ]
        for split, some in _by_split(models)
        for task in (INTRA, INTER)
    }
    return Table("StereoSet, Table 6: by task", ["Model"], list(HEADERS), sections)


def by_domain(split, models, published):
    """StereoSet's Tables 7 (validation) and 8 (test): each task by domain."""
    columns = [(task.capitalize(), number) for task in (INTER, INTRA) for number in NUMBERS]
    sections = {
        "": [
            [model.name, OVERALL if domain == ALL else domain, *inter, *intra]
            for model in models
            if model.split == split
            for domain in (*DOMAINS, ALL)
            for inter, intra in [[_cells(model, task, domain, published) for task in (INTER, INTRA)]]
        ]
    }
    title = f"StereoSet, Table {7 if split == 'validation' else 8}: by domain, {SPLITS[split].lower()}"
    return Table(title, ["Model", "Domain"], columns, sections)


def multilingual(number, models, published):
    """A table of the multilingual study: one task, models by languages."""
    task, average = MULTILINGUAL[number]
    headers = BY_TARGET if average == "target" else BY_EXAMPLE
    languages = _languages(models)
    sections = {
        SPLITS[split]: [
            [
                name,
                *(
                    _multilingual_cell(
                        of_name, f"multilingual-{number}", task, average, language, ours, theirs, published
                    )
                    for ours, theirs in headers.values()
                    for language in languages
                ),
            ]
            for name, of_name in _by_name(some)
            if any(model.numbers(language, task) for model in of_name for language in languages)
        ]
        for split, some in _by_split(models)
    }
    over = "target terms" if average == "target" else "examples"
    title = f"Multilingual study, Table {number}: {task}, averaged over {over}"
    return Table(title, ["Model"], [(header, language) for header in headers for language in languages], sections)


def per_language(models, published):
    """The multilingual study's Tables 2 to 4 turned around: a block for each language."""
    blocks = [(split, language, some) for split, some in _by_split(models) for language in _languages(some)]
    rows = {
        f"{language}, {SPLITS[split].lower()}": [
            [name, *_all_tasks(of_name, language, published)] for name, of_name in _by_name(some, language)
        ]
        for split, language, some in blocks
    }
    notes = [note for _, language, some in blocks for note in _correlation(some, language, language, "example")]
    return _view("Languages, averaged over examples", "Model", rows, notes)


def per_architecture(models, published):
    """The multilingual study's Tables 2 to 4 turned around: a block for each model name."""
    rows = {
        f"{name}, {SPLITS[split].lower()}": [
            [language, *_all_tasks(of_name, language, published)] for language in _languages(of_name)
        ]
        for split, some in _by_split(models)
        for name, of_name in _by_name(some)
    }
    return _view("Architectures, averaged over examples", "Language", rows, [])


TABLES = {
    "4": overall,
    "5": by_term,
    "6": by_task,
    "7": partial(by_domain, "validation"),
    "8": partial(by_domain, "test"),
    **{f"multilingual-{number}": partial(multilingual, number) for number in MULTILINGUAL},
    "languages": per_language,
    "architectures": per_architecture,
}


def make_table(name, models, published, **options):
    """A table by its name, with its notes; None where the models cannot fill a single row of it.

    Args:
        name: a name in TABLES; those that are numbers are StereoSet's, and of English alone.
        models: Models.
        published: published numbers by key, as `read_published` returns them.
        options: of that table.
    """
    table = TABLES[name](
        [model for model in models if not name.isdigit() or "en" in model.languages], published, **options
    )
    sections = {heading: rows for heading, rows in table.sections.items() if rows}
    if not sections or all(cell.value is None for cell in table.cells):
        return None
    notes = [*table.notes, *_agreement(table), *_stamps(models)]
    return Table(table.title, table.labels, table.columns, sections, notes)


def _cells(model, task, group, published):
    """lms, ss and icat of an English model."""
    numbers = model.numbers("en", task, group=group)
    domain = OVERALL if group == ALL else group
    return [
        Cell(numbers.get(number), published.get((model.split, model.name.lower(), task, domain, number)))
        for number in NUMBERS
    ]


def _domain_and_terms(model, domain, published, terms):
    """Rows of a domain, of its most and of its least stereotyped terms."""
    parts = [model.saved.parts[task] for task in (INTRA, INTER)]
    pairs = [
        (flat_reference(row), scores)
        for rows, of_rows in parts
        for row, scores in zip(rows, of_rows, strict=True)
        if row["bias_type"] == domain
    ]
    if not pairs:
        return
    references, scores = zip(*pairs, strict=True)
    found = compute_score(scores, references, breakdown="target")
    by_name = found["target"]
    yield [domain, f"all {len(by_name)}", *_cells(model, OVERALL, domain, published), found["count"]]
    count = max(1, min(terms, len(by_name) // 2))
    most = sorted(by_name, key=lambda term: -by_name[term]["ss"])[:count]
    least = sorted(by_name.keys() - most, key=lambda term: (abs(by_name[term]["ss"] - 50), term))[:count]
    for label, some in (("most", most), ("least", least)):
        for term in some:
            numbers = by_name[term]
            yield ["", f"{label}: {term}", *(Cell(numbers[number]) for number in NUMBERS), numbers["count"]]


def _multilingual_cell(models, table, task, average, language, ours, theirs, published):
    """A cell of the multilingual study, of the one of some equally named models that has the language."""
    for model in models:
        numbers = model.numbers(language, task, average)
        if numbers:
            known = model.split == "validation"
            key = (table, model.name.lower(), language, theirs)
            return Cell(numbers[ours], published.get(key) if known else None)
    return Cell(None)


def _all_tasks(models, language, published):
    """lms, ss and icat of every task in a language, over examples."""
    return [
        _multilingual_cell(models, f"multilingual-{number}", task, "example", language, one, one, published)
        for number, task in ((2, INTRA), (3, INTER), (4, OVERALL))
        for one in NUMBERS
    ]


def _view(title, label, sections, notes):
    """A table of all tasks, each section closed by the mean of its rows."""
    columns = [(task.capitalize(), number) for task in (INTRA, INTER, OVERALL) for number in NUMBERS]
    closed = {heading: [*rows, *_mean(rows)] for heading, rows in sections.items()}
    return Table(title, [label], columns, closed, notes)


def _mean(rows):
    """The row of the columns' means, where there is more than one row."""
    if len(rows) < 2:
        return []
    columns = [
        [cell.value for cell in column if cell.value is not None] for column in list(zip(*rows, strict=True))[1:]
    ]
    return [["mean", *(Cell(sum(values) / len(values) if values else None) for values in columns)]]


def _correlation(models, language, label, average="target"):
    """A line on Spearman's rank correlation of overall lms and ss over the language models, where there are three."""
    having = [model for model in models if model.numbers(language, OVERALL)]
    counted = [model.numbers(language, OVERALL, average) for model in having if not model.is_baseline]
    rho = spearman([numbers["lms"] for numbers in counted], [numbers["ss"] for numbers in counted])
    if rho is None:
        return []
    left_out = ", ".join(model.name for model in having if model.is_baseline)
    without = f" (without {left_out})" if left_out else ""
    return [f"{label}: Spearman correlation of lms and ss over {len(counted)} models: {rho:.2f}{without}"]


def _agreement(table):
    """How many cells agree with what was published, where anything was."""
    compared = [cell for cell in table.cells if cell.published is not None]
    differing = sum(cell.differs for cell in compared)
    if not compared:
        return []
    return [f"[published]: {len(compared) - differing} of {len(compared)} agree to ±0.005; ! marks the others."]


def _stamps(models):
    """A line for each model of which only a part was scored."""
    return [f"PARTIAL: {model.name}, {model.saved.partial}" for model in models if model.saved.partial]


def _by_split(models):
    """(split, its models), in the order of SPLITS."""
    groups = {split: [model for model in models if model.split == split] for split in SPLITS}
    return [(split, some) for split, some in groups.items() if some]


def _by_name(models, language=None):
    """(name, its models), in the order given; only those that have a language."""
    groups = {}
    for model in models:
        if language is None or language in model.languages:
            groups.setdefault(model.name, []).append(model)
    return list(groups.items())


def _languages(models):
    """The languages of some models, in the order of the multilingual study."""
    return [language for language in STUDY if any(language in model.languages for model in models)]
