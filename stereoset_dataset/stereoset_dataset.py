"""StereoSet in five languages, and CrowS-Pairs: a `datasets` builder."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import datasets

from .inert_pickle import read_frame
from .parsing import rows_of_crows_pairs
from .parsing import rows_of_stereoset
from .parsing import rows_of_translation
from .upstream import CROWS_PAIRS
from .upstream import DEVELOPMENT
from .upstream import TEST
from .upstream import TRANSLATIONS

VERSION = datasets.Version("1.0.0")
TASKS = ("intrasentence", "intersentence")
LANGUAGES = ("en", "de", "es", "fr", "tr")
GOLD_LABELS = ["anti-stereotype", "stereotype", "unrelated"]
LABELS = [*GOLD_LABELS, "related"]
# Nadeem et al. 2021, Table 1, and the released test.json; its sha256 was never published.
TEST_EXAMPLES = {"intrasentence": 6392, "intersentence": 6374}

_DESCRIPTION = """\
Context association tests: a sentence with a blank (intrasentence) or a context (intersentence), and three options,
a stereotypical, an anti-stereotypical and a meaningless one. English (Nadeem et al. 2021), translations into German,
Spanish, French and Turkish (Öztürk et al. 2023); and CrowS-Pairs (Nangia et al. 2020), pairs of sentences.
"""
_CITATION = """\
@inproceedings{nadeem-etal-2021-stereoset,
  title = {{StereoSet}: Measuring stereotypical bias in pretrained language models},
  author = {Nadeem, Moin and Bethke, Anna and Reddy, Siva},
  booktitle = {Proceedings of ACL-IJCNLP 2021}
}
@article{ozturk-etal-2023-stereotypical,
  title = {How Different Is Stereotypical Bias Across Languages?},
  author = {{\\"O}zt{\\"u}rk, Ibrahim Tolga and Nedelchev, Rostislav and Heumann, Christian and others},
  year = {2023}
}
@inproceedings{nangia-etal-2020-crows,
  title = {{CrowS-Pairs}: A Challenge Dataset for Measuring Social Biases in Masked Language Models},
  author = {Nangia, Nikita and Vania, Clara and Bhalerao, Rasika and Bowman, Samuel R.},
  booktitle = {Proceedings of EMNLP 2020}
}
"""

logger = datasets.utils.logging.get_logger(__name__)


@dataclass
class StereosetConfig(datasets.BuilderConfig):
    """One task in one language.

    Attributes:
        task: "intrasentence", "intersentence" or "crows_pairs".
        language: "en", "de", "es", "fr" or "tr".
    """

    task: str = "intrasentence"
    language: str = "en"

    @property
    def files(self):
        """{split: its UpstreamFile}"""
        if self.task == "crows_pairs":
            return {"test": CROWS_PAIRS}
        if self.language == "en":
            return {"validation": DEVELOPMENT, "test": TEST}
        return {"validation": TRANSLATIONS[self.task, self.language]}


class Stereoset(datasets.GeneratorBasedBuilder):
    """The builder.

    Args:
        mirror: a folder laid out as <owner>/<repository>/<commit>/<path>, read instead of the network;
            `data_dir` of a loading script says the same.
        splits: which splits to prepare; None for all that there are. The English test split is a file of its
            own that cannot be verified in full, and never stands in the way of validation.
    """

    VERSION = VERSION
    BUILDER_CONFIG_CLASS = StereosetConfig
    BUILDER_CONFIGS = [  # noqa: RUF012
        *(
            StereosetConfig(
                name=task if language == "en" else f"{task}_{language}",
                version=VERSION,
                task=task,
                language=language,
            )
            for language in LANGUAGES
            for task in TASKS
        ),
        StereosetConfig(name="crows_pairs", version=VERSION, task="crows_pairs"),
    ]

    def __init__(self, *args, mirror=None, splits=None, **kwargs):
        # Only a mirror that was given as the script's data_dir becomes part of the cache folder's name: the
        # bytes are the same wherever they come from.
        self._mirror, self._wanted = mirror, splits
        super().__init__(*args, **kwargs)

    def _info(self):
        option = {
            "sentence": datasets.Value("string"),
            "id": datasets.Value("string"),
            "labels": datasets.Sequence(
                {"label": datasets.ClassLabel(names=LABELS), "human_id": datasets.Value("string")}
            ),
            "gold_label": datasets.ClassLabel(names=GOLD_LABELS),
        }
        if self.config.language != "en" and self.config.task == "intrasentence":
            option["word"] = datasets.Value("string")
        features = {name: datasets.Value("string") for name in ("id", "target", "bias_type", "context")}
        if self.config.language != "en":
            features["target_translated"] = datasets.Value("string")
        if self.config.task == "crows_pairs":
            features["direction"] = datasets.Value("string")
        return datasets.DatasetInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            homepage="https://stereoset.mit.edu",
            license="CC BY-SA 4.0",
            features=datasets.Features({**features, "sentences": datasets.Sequence(option)}),
        )

    def obtainable_splits(self):
        """The splits that can be prepared: all of them, less the test split where a mirror lacks its file."""
        return [split for split, file in self.config.files.items() if file is not TEST or self._reaches(file)]

    def _split_generators(self, dl_manager):
        splits = self._wanted
        if splits is None:
            splits = self.obtainable_splits()
            for split in self.config.files.keys() - set(splits):
                logger.warning(f"No {split} split: the mirror {self._mirror_folder} lacks {TEST.location}.")
        paths = {split: self._fetch(self.config.files[split], dl_manager) for split in splits}
        if "test" in splits and self.config.files["test"] is TEST:
            verify_test(paths["test"], self._fetch(DEVELOPMENT, dl_manager))
        return [datasets.SplitGenerator(name=split, gen_kwargs={"path": paths[split]}) for split in splits]

    def _generate_examples(self, path):
        task = self.config.task
        if task == "crows_pairs":
            rows = rows_of_crows_pairs(path)
        elif self.config.language == "en":
            rows = rows_of_stereoset(path, task)
        else:
            rows = rows_of_translation(read_frame(path), task)
        for row in rows:
            yield row["id"], row

    @property
    def _mirror_folder(self):
        folder = self._mirror or self.config.data_dir
        return Path(os.path.abspath(folder)) if folder else None

    def _reaches(self, file):
        return self._mirror_folder is None or (self._mirror_folder / file.location).is_file()

    def _fetch(self, file, dl_manager):
        """The path of a local copy of a file, its sum checked.

        Raises:
            FileNotFoundError: if the mirror lacks it.
            ConnectionError: if it cannot be downloaded.
            ValueError: if it is not the pinned file.
        """
        if self._mirror_folder is not None:
            path = str(self._mirror_folder / file.location)
            if not os.path.isfile(path):
                raise FileNotFoundError(
                    f"The mirror {self._mirror_folder} lacks {file.location}: put the file there from {file.url}."
                )
        else:
            try:
                path = dl_manager.download(file.url)
            except (OSError, ValueError) as error:
                raise ConnectionError(
                    f"{file.url} cannot be downloaded ({error}): give a mirror of the upstream files as data_dir."
                ) from error
        file.check(path)
        return path


def verify_test(test_path, development_path):
    """Check of test.json what can be checked without its sha256: counts, ids, and targets of its own.

    Raises:
        ValueError: if the file is not the test set that the paper describes.
    """
    for task, expected in TEST_EXAMPLES.items():
        test, development = (rows_of_stereoset(path, task) for path in (test_path, development_path))
        shared = {row["target"] for row in test} & {row["target"] for row in development}
        ids = {row["id"] for row in test}
        if len(test) != expected or len(ids) != expected or shared:
            raise ValueError(
                f"{test_path} is not StereoSet's test set: {len(test)} {task} examples with {len(ids)} ids instead "
                f"of {expected}, {len(shared)} targets shared with validation; load split='validation' instead."
            )


def load_stereoset(config, split=None, data_dir=None, cache_dir=None):
    """StereoSet or CrowS-Pairs, with any supported version of `datasets`.

    Args:
        config: "intrasentence" or "intersentence", for translations followed by "_de", "_es", "_fr" or "_tr"; or
            "crows_pairs".
        split: "validation" (StereoSet) or "test" (English StereoSet, CrowS-Pairs); None for all there are.
        data_dir: a folder laid out as <owner>/<repository>/<commit>/<path> that holds the upstream files; None
            to download them.
        cache_dir: where prepared data are kept; None for the default of `datasets`.

    Returns:
        A Dataset, or a DatasetDict where no split is given.

    Raises:
        ValueError: if config or split is unknown, or a file is not the pinned one.
        FileNotFoundError: if data_dir lacks a file.
        ConnectionError: if a file cannot be downloaded.
    """
    configs = [one.name for one in Stereoset.BUILDER_CONFIGS]
    if config not in configs:
        raise ValueError(f"There is no config {config!r}: choose one of {', '.join(configs)}.")
    wanted = None if split is None else ("validation", "test") if split == "test" else (split,)
    if config == "crows_pairs" and split == "test":
        wanted = ("test",)
    builder = Stereoset(
        config_name=config,
        dataset_name="stereoset",
        hash=_own_hash(),
        cache_dir=cache_dir,
        mirror=data_dir,
        splits=wanted,
    )
    known = builder.config.files
    if split is not None and split not in known:
        raise ValueError(f"Config {config!r} has no split {split!r}: choose {' or '.join(known)}.")
    if not set(wanted or builder.obtainable_splits()) <= set(builder.info.splits or ()):
        # Our own sums are stricter than the library's checks, which expect the splits of last time.
        builder.download_and_prepare(download_mode="reuse_cache_if_exists", verification_mode="no_checks")
    return builder.as_dataset(split=split)


def _own_hash():
    """Names the cache folder: other code, other folder."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
