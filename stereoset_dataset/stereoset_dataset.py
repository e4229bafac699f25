"""StereoSet (Nadeem et al. 2021) and CrowS-Pairs (Nangia et al. 2020), and their translations."""

import dataclasses
import difflib
import hashlib
import json
import logging
import os
import typing
from pathlib import Path

import datasets

# By name and one level deep: loaders of scripts read these lines as text, copy the files they name, look no further.
from .inert_pickle import read_data_frame
from .parsing import GOLD_LABELS
from .parsing import LABELS
from .parsing import Example
from .parsing import as_row
from .parsing import check_test_set
from .parsing import crows_pairs_examples
from .parsing import dutch_pairs_examples
from .parsing import gender_pairs_examples
from .parsing import pair_comments
from .parsing import portuguese_examples
from .parsing import revised_pairs_examples
from .parsing import stereoset_examples
from .parsing import translated_examples
from .quality import agreement
from .quality import comment_flags
from .quality import text_flags
from .refusal import Refusal
from .upstream import COMMENTS
from .upstream import CROWS_PAIRS
from .upstream import CROWS_PAIRS_DUTCH
from .upstream import CROWS_PAIRS_FRENCH
from .upstream import CROWS_PAIRS_REVISED
from .upstream import GENDER_PAIRS
from .upstream import TEST
from .upstream import TRANSLATIONS
from .upstream import VALIDATION
from .upstream import UpstreamFile

VERSION = "1.1.0"  # raise it whenever a row changes

DATASET_NAME = "stereoset"
CONTEXT_TASKS = ("intrasentence", "intersentence")
ENGLISH_COLUMNS = ("en", "pt")  # languages without stored words and translated targets
ARGUMENTS = ("config", "split", "data_dir", "cache_dir", "streaming")  # of load_stereoset

DESCRIPTION = "How much more likely a language model finds a stereotype than its opposite, and than nonsense."
HOMEPAGE = "https://stereoset.mit.edu"
LICENSE = "CC BY-SA 4.0"

CITATION = """\
@inproceedings{nadeem-etal-2021-stereoset,
  title = {{StereoSet}: Measuring stereotypical bias in pretrained language models},
  author = {Nadeem, Moin and Bethke, Anna and Reddy, Siva},
  booktitle = {Proceedings of ACL-IJCNLP 2021},
  year = {2021},
  doi = {10.18653/v1/2021.acl-long.416},
}
@inproceedings{nangia-etal-2020-crows,
  title = {{CrowS}-Pairs: A Challenge Dataset for Measuring Social Biases in Masked Language Models},
  author = {Nangia, Nikita and Vania, Clara and Bhalerao, Rasika and Bowman, Samuel R.},
  booktitle = {Proceedings of EMNLP 2020},
  year = {2020},
  doi = {10.18653/v1/2020.emnlp-main.154},
}
"""

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class StereosetConfig(datasets.BuilderConfig):
    """A task in a language.

    Args:
        task: "intrasentence", "intersentence", or of pairs "crows_pairs", "crows_pairs_en_revised" or
            "crows_pairs_gender".
        language: two letters.
        sources: the upstream file of every split. The first is what the config is for; the others are optional.
    """

    task: str = ""
    language: str = "en"
    sources: dict[str, UpstreamFile] = dataclasses.field(default_factory=dict)

    @property
    def has_comments(self) -> bool:
        """Whether the French translators have commented on its pairs."""
        return any(file.beside == COMMENTS for file in self.sources.values())

    @property
    def files(self) -> list[UpstreamFile]:
        """All upstream files that its rows are made of, what stands beside another before it."""
        return [file for one in self.sources.values() for file in (one.beside, one) if file is not None]


def _configs():
    english = {"validation": VALIDATION, "test": TEST}
    for task in CONTEXT_TASKS:
        yield StereosetConfig(name=task, version=VERSION, task=task, sources=english)
    for (task, language), file in TRANSLATIONS.items():
        name = f"{task}_{language}"
        yield StereosetConfig(name=name, version=VERSION, task=task, language=language, sources={"validation": file})
    yield StereosetConfig(name="crows_pairs", version=VERSION, task="crows_pairs", sources={"test": CROWS_PAIRS})
    for task, language, file in [
        ("crows_pairs_en_revised", "en", CROWS_PAIRS_REVISED),
        ("crows_pairs", "fr", CROWS_PAIRS_FRENCH),
        ("crows_pairs", "nl", CROWS_PAIRS_DUTCH),
        *(("crows_pairs_gender", language, file) for language, file in GENDER_PAIRS.items()),
    ]:
        (name,) = file.examples
        yield StereosetConfig(name=name, version=VERSION, task=task, language=language, sources={"test": file})


class Stereoset(datasets.GeneratorBasedBuilder):
    """Builds one config from verified upstream files.

    Args:
        data_dir: a mirror of the upstream files, laid out as <owner>/<repository>/<commit>/<path>; they are downloaded
            where it is None.
        wanted_split: the one split that is needed. An optional split that was not asked for by name and cannot be had
            is left out with a warning. None: all there are.
        kwargs: those of `datasets.DatasetBuilder`.
    """

    BUILDER_CONFIG_CLASS = StereosetConfig
    BUILDER_CONFIGS: typing.ClassVar = list(_configs())

    def __init__(
        self,
        *args: typing.Any,
        data_dir: str | os.PathLike | None = None,
        wanted_split: str | None = None,
        **kwargs: typing.Any,
    ) -> None:
        # Neither goes into the config, where it would mark the cache folder's name: the bytes are verified, hence the
        # rows are the same wherever the files come from.
        self.mirror = None if data_dir is None else Path(os.path.abspath(os.path.expanduser(data_dir)))
        self.wanted_split = wanted_split
        self.unavailable_splits: set[str] = set()
        super().__init__(*args, **kwargs)

    def _info(self):
        return datasets.DatasetInfo(
            description=DESCRIPTION,
            features=_features(self.config),
            homepage=HOMEPAGE,
            license=LICENSE,
            citation=CITATION,
        )

    @property
    def wanted_splits(self) -> list[str]:
        """What to prepare. The first split needs no other; whoever wants another gets the first along with it."""
        first, *others = self.config.sources
        return [first] if self.wanted_split == first else [first, *others]

    @property
    def missing_splits(self) -> set[str]:
        """Wanted, but neither prepared yet nor found to be out of reach."""
        return set(self.wanted_splits) - set(self.info.splits or {}) - self.unavailable_splits

    def _split_generators(self, dl_manager):
        # Everything is verified here, not while generating: there `datasets` hides an error behind one of its own.
        paths, beside = {}, {}
        for split in self.wanted_splits:
            try:
                paths[split] = self._verified_split(dl_manager, split, paths)
                beside[split] = self._verified_beside(dl_manager, split)
            except (OSError, ValueError) as error:
                if split in (self.wanted_split, self.wanted_splits[0]):
                    raise
                logger.warning("Going on without the split %s of %s: %s", split, self.config.name, error)
                self.unavailable_splits.add(split)
        self.info.splits = None  # those an earlier call prepared, which `datasets` would hold the new ones to
        return [
            datasets.SplitGenerator(name=split, gen_kwargs={"path": paths[split], "beside": path})
            for split, path in beside.items()
        ]

    def _verified_split(self, dl_manager, split, verified):
        """The path of a split's file, once its bytes are known to be the right ones."""
        return self._verified_file(dl_manager, self.config.sources[split], verified)

    def _verified_beside(self, dl_manager, split):
        """The path of the file that says more of a split's examples, likewise; None where there is none."""
        file = self.config.sources[split].beside
        return None if file is None else self._verified_file(dl_manager, file, {})

    def _verified_file(self, dl_manager, file, verified):
        path = self._download(dl_manager, file) if self.mirror is None else self._mirrored(file)
        data = _read(path)
        try:
            file.check(data, path)
            if file.sha256 is None:
                _check_content(file, data, path, _read(verified["validation"]))
        except ValueError:
            if self.mirror is None and os.path.isfile(path):
                os.remove(path)  # else the next attempt would find the same bytes in the download cache
            raise
        return path

    def _download(self, dl_manager, file):
        try:
            return dl_manager.download(file.url)
        except Exception as error:  # each transport has its own
            raise ConnectionError(
                f"{file.url} cannot be downloaded ({error}): connect this machine, or pass data_dir=, a folder that "
                f"holds {file.location}."
            ) from error

    def _mirrored(self, file):
        path = self.mirror / file.location
        if not path.is_file():
            raise FileNotFoundError(f"{path} is absent: put {file.url} there, or leave out data_dir= to download it.")
        return str(path)

    def _generate_examples(self, path, beside=None):
        examples, say_more = self._examples(_read(path)), self._about(beside)
        for example in examples:
            yield example["id"], as_row({**example, **say_more(example)})

    def _examples(self, data):
        """The examples of a file, read as those of its config are laid out."""
        task, language = self.config.task, self.config.language
        if task == "crows_pairs_gender":
            return gender_pairs_examples(data)
        if self.config.sources.get("test") in (CROWS_PAIRS_REVISED, CROWS_PAIRS_FRENCH):
            return revised_pairs_examples(data)
        if language == "nl":
            return dutch_pairs_examples(data)
        if task == "crows_pairs":
            return crows_pairs_examples(data)
        if language == "en":
            return stereoset_examples(data, task)
        if language == "pt":
            return portuguese_examples(data, task)
        return translated_examples(read_data_frame(data))

    def _about(self, beside: str | None) -> typing.Callable[[Example], Example]:
        """A function from an example to the columns that say how good it is.

        Args:
            beside: the path of the file that says more of the examples; None for none.
        """
        config, data = self.config, None if beside is None else _read(beside)
        if config.has_comments:
            comments = pair_comments(data) if data else {}
            revised, french = config.sources["test"] is not CROWS_PAIRS, config.language == "fr"

            def about(example: Example) -> Example:
                comment = comments.get(example["id"], "")
                flags = comment_flags(comment, revised, french) + text_flags(example, config.task)
                return {"flags": flags, "comment": comment}
        else:
            originals = stereoset_examples(data, config.task) if data else []
            by_id = {original["id"]: original for original in originals}

            def about(example: Example) -> Example:
                original = by_id.get(example["id"])
                flags = text_flags(example, config.task, original)
                if config.task not in CONTEXT_TASKS:
                    return {"flags": flags}
                return {"task": config.task, "agreement": agreement(original or example), "flags": flags}

        return about


def load_stereoset(
    config: str,
    split: str | None = None,
    data_dir: str | os.PathLike | None = None,
    cache_dir: str | os.PathLike | None = None,
    streaming: bool = False,
    **unknown: typing.Any,
) -> typing.Any:
    """Load a config, with any supported version of `datasets`, without a hub and without running a script by name.

    The rows are prepared once and read from the cache of `datasets` afterwards, where
    `datasets.load_dataset("stereoset", config)` finds them too as long as the hub is out of reach. Reading them writes
    nothing: the cache may then be read-only, or its disk full.

    Args:
        config: "intrasentence", "intersentence", either followed by "_de", "_es", "_fr", "_pt" or "_tr";
            "crows_pairs", also followed by "_en_revised", "_fr" or "_nl"; "crows_pairs_gender" followed by "_ar",
            "_de", "_en", "_fi", "_fr", "_id", "_ko", "_th", "_vi" or "_zh".
        split: "validation" or "test", also a slice such as "validation[:10]". Only the files needed
            for it are fetched; for English, "validation" does without the test set's file.
        data_dir: a mirror of the upstream files, laid out as <owner>/<repository>/<commit>/<path>;
            without it they are downloaded.
        cache_dir: where prepared rows are kept, in place of the usual cache of `datasets`.
        streaming: whether to give them as `datasets.IterableDataset`. They are prepared all the same: the files
            are small, and checked as a whole.
        unknown: nothing; other arguments of `datasets.load_dataset` are refused by name.

    Returns:
        datasets.Dataset, or a datasets.DatasetDict of all splits that can be had if `split` is None.

    Raises:
        ValueError: the config, the split or an argument is unknown, or a file is not the pinned one.
        FileNotFoundError: the mirror lacks a file.
        ConnectionError: a file cannot be downloaded.
        OSError: the cache cannot be written to, and does not hold the rows yet.
    """
    for name in unknown:
        _known(name, ARGUMENTS, "argument of load_stereoset")
    sources = _known(config, Stereoset.builder_configs, "config").sources
    wanted_split = None if split is None else str(split).partition("[")[0]
    if wanted_split is not None:
        _known(wanted_split, sources, f"split of {config}")
    for name, folder in (("data_dir", data_dir), ("cache_dir", cache_dir)):
        if not isinstance(folder, str | os.PathLike | None):
            raise Refusal(f"{name}={folder!r} is no path: give a folder.")
    prepared = _prepared_folder(config, cache_dir)
    wanted = list(sources) if wanted_split is None else [wanted_split]
    if not set(wanted) <= _splits_in(prepared):
        try:
            _prepare(config, cache_dir, data_dir, wanted_split)
        except (OSError, ValueError) as error:
            missing = set(wanted) - _splits_in(prepared)
            if wanted_split is not None or missing == set(wanted):
                raise
            logger.warning("Going on without the split %s of %s: %s", ", ".join(sorted(missing)), config, error)
    return _read_prepared(prepared, split, streaming)


def load_parallel(
    languages: typing.Sequence[str],
    task: str,
    split: str | None = None,
    data_dir: str | os.PathLike | None = None,
    cache_dir: str | os.PathLike | None = None,
) -> typing.Any:
    """The examples of a task that all of some languages have, side by side: rows of the same number have the same id.

    Args:
        languages: two letters each, such as ["en", "de", "pt"].
        task: "intrasentence", "intersentence", "crows_pairs", …: a config's name without its language.
        split: "validation" or "test"; None for the one that all languages have.
        data_dir, cache_dir: as in `load_stereoset`.

    Returns:
        datasets.DatasetDict, {language: its rows}, in the order of the first language.

    Raises:
        ValueError: if there is no such task, or not in a language; otherwise as `load_stereoset`.
    """
    if isinstance(languages, str) or not languages:
        raise Refusal(f"languages is {languages!r}: give a list of them, such as ['en', 'de'].")
    tasks: dict[str, dict[str, str]] = {}
    for name, config in Stereoset.builder_configs.items():
        tasks.setdefault(config.task, {})[config.language] = name
    by_language = _known(task, tasks, "task")
    names = {language: _known(language, by_language, f"language of {task}") for language in languages}
    first = next(iter(Stereoset.builder_configs[names[languages[0]]].sources))
    rows = {name: load_stereoset(one, split or first, data_dir, cache_dir) for name, one in names.items()}
    places = {name: _places(some["id"][:]) for name, some in rows.items()}
    shared = set.intersection(*map(set, places.values()))
    common = [row_id for row_id in places[languages[0]] if row_id in shared]
    return datasets.DatasetDict(
        {name: some.select(list(map(places[name].__getitem__, common))) for name, some in rows.items()}
    )


def _places(ids):
    """{id: number of its row}."""
    return {row_id: number for number, row_id in enumerate(ids)}


def _prepared_folder(config, cache_dir):
    """Where `datasets` keeps the prepared rows of a config: a folder that is put in its place as a whole."""
    root = os.path.expanduser(cache_dir or datasets.config.HF_DATASETS_CACHE)
    return os.path.join(root, DATASET_NAME, config, VERSION, _fingerprint())


def _splits_in(prepared):
    if not os.path.isfile(os.path.join(prepared, datasets.config.DATASET_INFO_FILENAME)):
        return set()
    return set(datasets.DatasetInfo.from_directory(prepared).splits)


def _prepare(config, cache_dir, data_dir, wanted_split):
    """Write rows into the cache, where they are not there yet."""
    try:
        builder = Stereoset(
            config_name=config,
            dataset_name=DATASET_NAME,
            hash=_fingerprint(),
            cache_dir=cache_dir,
            data_dir=data_dir,
            wanted_split=wanted_split,
        )
        builder.download_and_prepare()
        if builder.missing_splits:  # an earlier call prepared fewer
            builder.wanted_split = builder.wanted_splits[-1]
            builder.download_and_prepare(download_mode=datasets.DownloadMode.REUSE_CACHE_IF_EXISTS)
    except (OSError, datasets.exceptions.DatasetGenerationError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        root = os.path.expanduser(cache_dir or datasets.config.HF_DATASETS_CACHE)
        # Our own refusals have no number; a file that cannot be read lies elsewhere.
        if getattr(cause, "errno", None) is None or not str(cause.filename or root).startswith(str(root)):
            raise
        raise OSError(
            f"{root} cannot take the rows of {config} ({cause.strerror or cause}): make room there, or set HF_HOME "
            "to a folder of yours on a disk with room."
        ) from error


def _read_prepared(prepared, split, streaming):
    """The rows as users get them. Unlike the builder's own way, this takes no lock, for a lock is a file to write."""
    info = datasets.DatasetInfo.from_directory(prepared)
    reader = datasets.arrow_reader.ArrowReader(prepared, info)

    def read(one: str) -> typing.Any:
        rows = datasets.Dataset(
            **reader.read(DATASET_NAME, instructions=datasets.Split(str(one)), split_infos=info.splits.values())
        )
        return rows.to_iterable_dataset() if streaming else rows

    if split is not None:
        return read(split)
    every = {name: read(name) for name in info.splits}
    return datasets.IterableDatasetDict(every) if streaming else datasets.DatasetDict(every)


def _known(name, table, what):
    """What a table says of a name, or a Refusal that names what there is."""
    if not isinstance(name, str) or name not in table:
        guesses = difflib.get_close_matches(str(name), table, n=1)
        hint = f" (nearest: {guesses[0]})" if guesses else ""
        raise Refusal(f"{name!r} is no {what}{hint}: there are {', '.join(table)}.")
    return table[name]


def _features(config):
    """The columns of McGill-NLP/stereoset under the same names, then those only we have."""
    text = datasets.Value("string")
    option = {
        "sentence": text,
        "id": text,
        "labels": datasets.Sequence({"label": datasets.ClassLabel(names=LABELS), "human_id": text}),
        "gold_label": datasets.ClassLabel(names=GOLD_LABELS),
    }
    columns = {"id": text, "target": text, "bias_type": text, "context": text}
    has_context, translated = config.task in CONTEXT_TASKS, config.language not in ENGLISH_COLUMNS
    if translated and config.task == "intrasentence":
        option["word"] = text
    columns["sentences"] = datasets.Sequence(option)
    if translated and has_context:
        columns["target_translated"] = text
    if has_context:
        columns |= {"task": text, "agreement": datasets.Value("int32")}
    if config.task.startswith("crows_pairs"):
        columns["direction"] = text
    columns["flags"] = datasets.Sequence(text)
    if config.has_comments:
        columns["comment"] = text
    return datasets.Features(columns)


def _fingerprint():
    """Names the cache folder after this folder's code and after how this version of `datasets` writes down columns,
    since versions before 4 cannot read what later ones write."""
    code = b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    columns = json.dumps(_features(Stereoset.builder_configs["intrasentence"]).to_dict())
    return hashlib.sha256(code + columns.encode()).hexdigest()


def _check_content(file, data, path, validation):
    """Judge the test set, whose sum is not known in full, by what it holds."""
    try:
        check_test_set(data, validation, file.examples)
    except ValueError as error:
        raise Refusal(
            f"{path} is not StereoSet's test set, {error}: replace it by {file.url}, or load the split validation."
        ) from error


def _read(path):
    with open(path, "rb") as file:
        return file.read()
