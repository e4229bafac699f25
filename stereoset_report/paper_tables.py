"""The layouts of the papers' tables: which numbers of which models stand where.

Numbers as in Nadeem et al. 2020, arXiv 2004.09456 (StereoSet), and Öztürk et al. 2023 (the multilingual study).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

from stereoset_metric.compute_score import compute_score, flat_reference
from stereoset_report.correlation import spearman
from stereoset_report.formats import Cell, Row, Table, filled
from stereoset_report.intervals import make_results_with_intervals
from stereoset_report.published import Published
from stereoset_report.resampling import Resampling
from stereoset_report.results import ALL, OVERALL, Numbers, Results, make_results
from stereoset_report.saved import Saved
from stereoset_scoring.questions.configs import CONTEXT_TASKS, split_config

INTRA, INTER = CONTEXT_TASKS
DOMAINS = ("gender", "profession", "race", "religion")
NUMBERS = ("lms", "ss", "icat")
HEADERS = tuple(("", number) for number in NUMBERS)
STUDY = ("en", "de", "tr", "fr", "es", "pt")  # in the order of the multilingual study, which lacks the last
SPLITS = {"validation": "Development set", "test": "Test set", "sample": "Sample", "file": "Own examples"}
PORTUGUESE = "pt"
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
    """One input: a model's name, and its saved scores in one split and one language or more.

    Attributes:
        name: what tables call it.
        saved: its scores.
        resampling: how intervals are made; None for none.
    """

    name: str
    saved: Saved
    resampling: Resampling | None = None

    @property
    def split(self) -> str:
        """The split of its data."""
        return self.saved.split

    @cached_property
    def by_target(self) -> Results:
        """Its results, averaged over target terms: see `make_results`."""
        return self._results("target")

    @cached_property
    def by_example(self) -> Results:
        """Its results, averaged over examples."""
        return self._results("example")

    def _results(self, average: str) -> Results:
        if self.resampling is None:
            return make_results(self.saved.parts, average=average)
        return make_results_with_intervals(self.saved, self.resampling, average)

    @property
    def languages(self) -> Iterable[str]:
        """The languages that it has scores in."""
        return dict.fromkeys(split_config(config)[1] for config in self.saved.parts)

    @property
    def is_baseline(self) -> bool:
        """Whether it is a baseline rather than a language model, by its record or its name."""
        known = self.name.lower().removesuffix("lm") in BASELINES
        return known or self.saved.family in ("baseline", "sentiment")

    def numbers(self, language: str, task: str, average: str = "target", group: str = ALL) -> Numbers:
        """The metric's numbers of a group of examples; empty where it has no scores."""
        results = self.by_target if average == "target" else self.by_example
        return results.get(language, {}).get(task, {}).get(group, {})


def overall(models: Sequence[Model], published: Published) -> Table:
    """StereoSet's Table 4: both tasks together."""
    sections, notes = {}, []
    for split, some in _by_split(models):
        sections[SPLITS[split]] = [_english_row(model, OVERALL, published) for model in _having(some, OVERALL)]
        notes += _correlation(some, "en", SPLITS[split])
    return Table("StereoSet, Table 4: overall", ["Model"], list(HEADERS), sections, notes)


def by_term(models: Sequence[Model], published: Published, terms: int = 3) -> Table:
    """StereoSet's Table 5: domains, both tasks together, with their most and least stereotyped target terms."""
    sections: dict[str, list[Row]] = {}
    for model in _having(models, OVERALL):
        rows = sections[f"{model.name}, {SPLITS[model.split].lower()}"] = []
        for domain in DOMAINS:
            rows += _domain_and_terms(model, domain, published, terms)
    notes = ["most: the highest ss; least: of the others, the ss nearest to 50."]
    title = "StereoSet, Table 5: domains with their most and least stereotyped target terms"
    return Table(title, ["Domain", "Terms"], [*HEADERS, ("", "examples")], sections, notes)


def by_task(models: Sequence[Model], published: Published) -> Table:
    """StereoSet's Table 6: each task."""
    sections = {}
    for split, some in _by_split(models):
        for task in (INTRA, INTER):
            heading = f"{task.capitalize()} task, {SPLITS[split].lower()}"
            sections[heading] = [_english_row(model, task, published) for model in _having(some, task)]
    return Table("StereoSet, Table 6: by task", ["Model"], list(HEADERS), sections)


def by_domain(split: str, models: Sequence[Model], published: Published) -> Table:
    """StereoSet's Tables 7 (validation) and 8 (test): each task by domain."""
    columns = [(task.capitalize(), number) for task in (INTER, INTRA) for number in NUMBERS]
    rows: list[Row] = []
    for model in models:
        if model.split == split:
            rows += [_row_of_domain(model, domain, published) for domain in (*DOMAINS, ALL)]
    title = f"StereoSet, Table {7 if split == 'validation' else 8}: by domain, {SPLITS[split].lower()}"
    return Table(title, ["Model", "Domain"], columns, {"": rows})


def portuguese(models: Sequence[Model], published: Published) -> Table:
    """The results of stereoset-ptbr: each task by bias type, and both together."""
    columns = [(task.capitalize(), number) for task in (INTRA, INTER, OVERALL) for number in NUMBERS]
    sections = {}
    for split, some in _by_split(models):
        sections[SPLITS[split]] = [
            _row_of_portuguese(model, domain, published)
            for model in some
            if PORTUGUESE in model.languages
            for domain in (*DOMAINS, ALL)
        ]
    return Table("Portuguese: by domain", ["Model", "Domain"], columns, sections)


def multilingual(number: int, models: Sequence[Model], published: Published) -> Table:
    """A table of the multilingual study: one task, models by languages."""
    task, average = MULTILINGUAL[number]
    question = Question(f"multilingual-{number}", task, average)
    headers = BY_TARGET if average == "target" else BY_EXAMPLE
    languages = _languages(models)
    columns = [(header, language) for header in headers for language in languages]
    sections: dict[str, list[Row]] = {}
    for split, some in _by_split(models):
        rows = sections[SPLITS[split]] = []
        for name, of_name in _by_name(some):
            if any(question.model_in(language, of_name) for language in languages):
                cells = [question.cell(language, of_name, *headers[header], published) for header, language in columns]
                rows.append([name, *cells])
    over = "target terms" if average == "target" else "examples"
    title = f"Multilingual study, Table {number}: {task}, averaged over {over}"
    return Table(title, ["Model"], columns, sections)


def per_language(models: Sequence[Model], published: Published) -> Table:
    """The multilingual study's Tables 2 to 4 turned around: a block for each language."""
    sections, notes = {}, []
    for split, of_split in _by_split(models):
        for language in _languages(of_split):
            sections[f"{language}, {SPLITS[split].lower()}"] = [
                [name, *_all_tasks(of_name, language, published)] for name, of_name in _by_name(of_split, language)
            ]
            notes += _correlation(of_split, language, language, "example")
    return _view("Languages, averaged over examples", "Model", sections, notes)


def per_architecture(models: Sequence[Model], published: Published) -> Table:
    """The multilingual study's Tables 2 to 4 turned around: a block for each model name."""
    sections = {}
    for split, of_split in _by_split(models):
        for name, of_name in _by_name(of_split):
            sections[f"{name}, {SPLITS[split].lower()}"] = [
                [language, *_all_tasks(of_name, language, published)] for language in _languages(of_name)
            ]
    return _view("Architectures, averaged over examples", "Language", sections, [])


TABLES: dict[str, Callable[..., Table]] = {
    "4": overall,
    "5": by_term,
    "6": by_task,
    "7": partial(by_domain, "validation"),
    "8": partial(by_domain, "test"),
    "portuguese": portuguese,
    **{f"multilingual-{number}": partial(multilingual, number) for number in MULTILINGUAL},
    "languages": per_language,
    "architectures": per_architecture,
}


def make_table(name: str, models: Sequence[Model], published: Published, **options: Any) -> Table | None:
    """A table by its name, with its notes; None where the models cannot fill a single row of it.

    Args:
        name: a name in TABLES; those that are numbers are StereoSet's, and of English alone.
        models: those that it may show.
        published: published numbers by key, as `read_published` returns them.
        options: of that table.

    Columns that none of them fills are left out.
    """
    table = TABLES[name](
        [model for model in models if not name.isdigit() or "en" in model.languages], published, **options
    )
    sections = {heading: rows for heading, rows in table.sections.items() if rows}
    if not sections or all(cell.value is None for cell in table.cells):
        return None
    notes = [*table.notes, *_agreement(table), *_intervals(models), *_partial_notes(models)]
    return filled(Table(table.title, table.labels, table.columns, sections, notes))


def _having(models: Iterable[Model], task: str) -> list[Model]:
    """The models that have English scores of a task."""
    return [model for model in models if model.numbers("en", task)]


def _english_row(model: Model, task: str, published: Published) -> Row:
    return [model.name, *_cells(model, task, ALL, published)]


def _row_of_domain(model: Model, domain: str, published: Published) -> Row:
    inter, intra = (_cells(model, task, domain, published) for task in (INTER, INTRA))
    return [model.name, OVERALL if domain == ALL else domain, *inter, *intra]


def _row_of_portuguese(model: Model, domain: str, published: Published) -> Row:
    cells = [_cells(model, task, domain, published, PORTUGUESE) for task in (INTRA, INTER, OVERALL)]
    return [model.name, OVERALL if domain == ALL else domain, *chain.from_iterable(cells)]


def _cells(model: Model, task: str, group: str, published: Published, language: str = "en") -> list[Cell]:
    """lms, ss and icat of a model in a language."""
    numbers = model.numbers(language, task, group=group)
    domain = OVERALL if group == ALL else group
    key = (model.split, language, model.name.lower(), task, domain)
    return [_cell(numbers, number, published.get((*key, number))) for number in NUMBERS]


def _cell(numbers: Numbers, name: str, published: float | None = None) -> Cell:
    """A number of the metric, with its interval where it has one."""
    return Cell(numbers.get(name), published, numbers.get(f"{name}_low"), numbers.get(f"{name}_high"))


def _domain_and_terms(model: Model, domain: str, published: Published, terms: int) -> Iterator[Row]:
    """Rows of a domain, of its most and of its least stereotyped terms."""
    references, scores = _examples_of(model, domain)
    if not references:
        return
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


def _examples_of(model: Model, domain: str) -> tuple[list[Any], list[Any]]:
    """(references, scores) of the examples of a domain, in both tasks."""
    references, scores = [], []
    for task in (INTRA, INTER):
        for row, of_row in zip(*model.saved.parts[task], strict=True):
            if row["bias_type"] == domain:
                references.append(flat_reference(row))
                scores.append(of_row)
    return references, scores


@dataclass(frozen=True)
class Question:
    """What a table of the multilingual study shows of each model in each language.

    Attributes:
        table: its name in TABLES.
        task: a task, or both together.
        average: over "target" terms or each "example".
    """

    table: str
    task: str
    average: str

    def model_in(self, language: str, models: Iterable[Model]) -> Model | None:
        """The one of some equally named models that has scores in a language; None where none has."""
        return next((model for model in models if model.numbers(language, self.task)), None)

    def cell(self, language: str, models: Iterable[Model], ours: str, theirs: str, published: Published) -> Cell:
        """A number of some equally named models in a language, by what the metric and the published file call it."""
        model = self.model_in(language, models)
        if model is None:
            return Cell(None)
        numbers = model.numbers(language, self.task, self.average)
        if model.split != "validation":  # the study has no other
            return _cell(numbers, ours)
        return _cell(numbers, ours, published.get((self.table, model.name.lower(), language, theirs)))


# Whose tables 2 to 4 are shown side by side.
ALL_TASKS = [Question(f"multilingual-{number}", *MULTILINGUAL[number]) for number in (2, 3, 4)]


def _all_tasks(models: Sequence[Model], language: str, published: Published) -> list[Cell]:
    """lms, ss and icat of every task in a language, over examples."""
    return [question.cell(language, models, number, number, published) for question in ALL_TASKS for number in NUMBERS]


def _view(title: str, label: str, sections: Mapping[str, list[Row]], notes: list[str]) -> Table:
    """A table of all tasks, each section closed by the mean of its rows."""
    columns = [(task.capitalize(), number) for task in (INTRA, INTER, OVERALL) for number in NUMBERS]
    closed = {heading: [*rows, *_mean(rows)] for heading, rows in sections.items()}
    return Table(title, [label], columns, closed, notes)


def _mean(rows: Sequence[Row]) -> list[Row]:
    """The row of the columns' means, where there is more than one row."""
    if len(rows) < 2:
        return []
    _, *columns = zip(*rows, strict=True)
    return [["mean", *map(_mean_of, columns)]]


def _mean_of(column: Iterable[Cell]) -> Cell:
    """The mean of the numbers that there are."""
    values = [cell.value for cell in column if cell.value is not None]
    return Cell(sum(values) / len(values) if values else None)


def _correlation(models: Iterable[Model], language: str, label: str, average: str = "target") -> list[str]:
    """A line on Spearman's rank correlation of overall lms and ss over the language models, where there are three."""
    having = [model for model in models if model.numbers(language, OVERALL)]
    counted = [model.numbers(language, OVERALL, average) for model in having if not model.is_baseline]
    rho = spearman([numbers["lms"] for numbers in counted], [numbers["ss"] for numbers in counted])
    if rho is None:
        return []
    left_out = ", ".join(model.name for model in having if model.is_baseline)
    without = f" (without {left_out})" if left_out else ""
    return [f"{label}: Spearman correlation of lms and ss over {len(counted)} models: {rho:.2f}{without}"]


def _agreement(table: Table) -> list[str]:
    """How many cells agree with what was published, where anything was."""
    compared = [cell for cell in table.cells if cell.published is not None]
    differing = sum(cell.differs for cell in compared)
    if not compared:
        return []
    return [f"[published]: {len(compared) - differing} of {len(compared)} agree to ±0.005; ! marks the others."]


def _intervals(models: Iterable[Model]) -> list[str]:
    """How the intervals were made, where there are any."""
    made = {model.resampling for model in models if model.resampling}
    return [
        f"(low, high): {one.level:.0%} of {one.resamples} resamples of target terms, seed {one.seed}; means have none."
        for one in made
    ]


def _partial_notes(models: Iterable[Model]) -> list[str]:
    """A line for each model of which only a part was scored."""
    return [f"PARTIAL: {model.name}, {model.saved.partial}" for model in models if model.saved.partial]


def _by_split(models: Sequence[Model]) -> list[tuple[str, list[Model]]]:
    """(split, its models), in the order of SPLITS."""
    groups: dict[str, list[Model]] = {split: [] for split in SPLITS}
    for model in models:
        groups[model.split].append(model)
    return [(split, some) for split, some in groups.items() if some]


def _by_name(models: Iterable[Model], language: str | None = None) -> list[tuple[str, list[Model]]]:
    """(name, its models), in the order given; only those that have a language."""
    groups: dict[str, list[Model]] = {}
    for model in models:
        if language is None or language in model.languages:
            groups.setdefault(model.name, []).append(model)
    return list(groups.items())


def _languages(models: Iterable[Model]) -> list[str]:
    """The languages of some models, in the order of the multilingual study."""
    known = {language for model in models for language in model.languages}
    return [language for language in STUDY if language in known]
