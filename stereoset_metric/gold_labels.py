"""The published gold labels that the Space judges by: which files they lie in, downloaded and checked.

Standard library only: a Space holds this folder alone. The translations of StereoSet keep the English file's ids and
gold labels, so that one file serves six languages.
"""

import csv
import functools
import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.request import urlopen

from compute_score import Refusal

ADDRESS = "https://raw.githubusercontent.com"
PATIENCE = 60  # seconds that the server may be silent
CONTEXT_TASKS = ("intrasentence", "intersentence")
LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "pt": "Portuguese",
    "tr": "Turkish",
}
# Three examples that the German translation lacks.
NOT_IN_GERMAN = (
    "50c90b81165bbc658838135a64ca9f87",
    "addb7a3a720b24ae99ebf8d691b454c2",
    "de204ffe47f168d1060dfa5619b2d7c8",
)


@dataclass(frozen=True)
class Source:
    """A file at a commit of a public repository.

    Attributes:
        location: <owner>/<repository>/<commit>/<path>, below ADDRESS.
        sha256: of its bytes.
        number: of a table of pairs, the column that numbers them.
        delimiter: of its columns.
        encoding: of its text.
    """

    location: str
    sha256: str
    number: str = ""
    delimiter: str = ","
    encoding: str = "utf-8"


STEREOSET = Source(
    "moinnadeem/StereoSet/ead7d086a64a192a1eca88e0dd2fd163de375218/data/dev.json",
    "73a0f31b711688112602e4c3ac6ab1e1a7cadcdd67df6c6fd55501c889676c90",
)
_REVISED = "JulienBez/MemoireMaster/1d7c0b700e50fce66e6d08d8d0c2a2705d89afa4/data"
_GENDER = "VSteinborn/s_jsd-multilingual-bias/b10302047b55043004a0280f8c2f63236ccea878/data"
PAIRS = {
    # config: the table of its pairs
    "crows_pairs": Source(
        "nyu-mll/crows-pairs/8aaac11c485473159ec9328a65253a5be9a479dc/data/crows_pairs_anonymized.csv",
        "dfb36986ce0502abbaf7055b9176da3d08d48e07df1251991b5dfbcbceab9d0c",
    ),
    "crows_pairs_en_revised": Source(
        f"{_REVISED}/crows_pairs_EN_revised+210.csv",
        "c2c449a051ae93a61dae7a882c7a3efdfce04215c492ed2365d01c0861cecafe",
        delimiter="\t",
    ),
    "crows_pairs_fr": Source(
        f"{_REVISED}/crows_pairs_FR_languagearc_contribution+210.csv",
        "1b5de822b34188375c04b949ec2e2678373b65f81d8f0bfbbef9b7df3958d2e9",
        delimiter="\t",
    ),
    "crows_pairs_nl": Source(
        "jerryspan/Dutch-CrowS-Pairs/7cf51965b4818a717d22068477fba951bca1eb90/datasets/crows_dutch.csv",
        "07b9b562e947e782a0409ebac85b28b417838cf2d33c2f7f2a13766b431ddf35",
        number="id",
        encoding="mac_roman",
    ),
}
PAIRS |= {
    f"crows_pairs_gender_{language}": Source(f"{_GENDER}/cps_translated_{language}_formatted.csv", sha256, number="ID")
    for language, sha256 in [
        ("ar", "172a8ad57c5b25647cd91affa7e3472d06dcdcbd783a129aa38dfd148a9c8665"),
        ("de", "68495e0185780c8a47fc4d999a1774f5718be8654c8926f67f97d4f4b5ba1630"),
        ("en", "e965762fa00af7648e5146c504fdd4940b7cf9703f85394257aaaf70d8c28d0c"),
        ("fi", "a20b411b62b7f8255381429475c90b8205425dff8c6d0f4845b604cf106b6a1d"),
        ("fr", "a50e0f3cca8b7acfeb0a618bb67032d9c592d00e7ea4bff7b54c36640f7d8201"),
        ("id", "669d2c8477786e5c278081bcc3192a432feb8ffab57fd623d0c1c77fc6e2c31b"),
        ("ko", "6c8e90c6bd113bdbd719860b87f0baffc0d4729b4a3032452073e1af1d078dc2"),
        ("th", "34a86c49aa89f6c699ea481b530ab894c27373b73d080d1f0069a0041823299b"),
        ("vi", "e724d536191dd6d1e4eed83748a4285af50a98c1d5c263be650bd56f0ee970c5"),
        ("zh", "d92b05b1bebfd59b7d2d3db1d8d435e9915e5713d8e03b52e6ba5942ff5f6066"),
    ]
}
CONTEXTS = {
    # config: (task, language)
    task if language == "en" else f"{task}_{language}": (task, language)
    for task in CONTEXT_TASKS
    for language in LANGUAGES
}
CONFIGS = (*CONTEXTS, *PAIRS)

DOWNLOADS = f"""\
From {ADDRESS}, at fixed commits and checked by their SHA-256, kept in memory until the Space restarts:

- for StereoSet in {", ".join(LANGUAGES.values())}: `{STEREOSET.location}` (6 MB). The translations keep its ids and
  gold labels.
- for CrowS-Pairs the tables (at most 0.5 MB each) that a prediction file names: {", ".join(PAIRS)}.

With gold labels of your own nothing is downloaded. What you upload or paste goes to the machine that runs this page.
"""


def published(config: str) -> list[dict[str, Any]]:
    """The examples of a config: {id, target, bias_type, sentences: [{id, gold_label}, …]}, pairs with their direction.

    Raises:
        Refusal: if the file cannot be had, or is another one than the pinned.
    """
    if config in PAIRS:
        return _pairs(PAIRS[config])
    task, language = CONTEXTS[config]
    left_out = NOT_IN_GERMAN if language == "de" else ()
    return [example for example in _contexts()[task] if example["id"] not in left_out]


@functools.cache
def _contexts():
    data = json.loads(download(STEREOSET))["data"]
    return {task: list(map(_without_texts, data[task])) for task in CONTEXT_TASKS}


def _without_texts(example: Mapping[str, Any]) -> dict[str, Any]:
    options = [{"id": option["id"], "gold_label": option["gold_label"]} for option in example["sentences"]]
    return {**{name: example[name] for name in ("id", "target", "bias_type")}, "sentences": options}


@functools.cache
def _pairs(source):
    text = io.StringIO(download(source).decode(source.encoding), newline="")
    return [_pair(row[source.number], row) for row in csv.DictReader(text, delimiter=source.delimiter)]


def _pair(number, row):
    options = [("more", "stereotype"), ("less", "anti-stereotype")]
    return {
        "id": number,
        "target": "",
        "bias_type": row.get("bias_type", "gender"),
        "direction": row["stereo_antistereo"],
        "sentences": [{"id": f"{number}:{which}", "gold_label": label} for which, label in options],
    }


def download(source: Source) -> bytes:
    """A source's bytes, once they are known to be the right ones.

    Raises:
        Refusal: if they cannot be had, or are others than the pinned.
    """
    url = f"{ADDRESS}/{source.location}"
    try:
        with urlopen(url, timeout=PATIENCE) as answer:
            data = answer.read()
    except (OSError, HTTPException) as error:
        raise Refusal(f"{url} cannot be downloaded ({error}): try again later, or give gold labels.") from error
    if hashlib.sha256(data).hexdigest() != source.sha256:
        raise Refusal(f"{url} answers with other bytes than the pinned: try again later, or give gold labels.")
    return data
