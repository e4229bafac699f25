"""The public files the data set is made of: where each lies, and how the right one is known."""

import dataclasses
import hashlib
import os

from .refusal import Refusal

BASE_URL = "https://raw.githubusercontent.com"


@dataclasses.dataclass(frozen=True)
class UpstreamFile:
    """A file at a commit of a public repository.

    Args:
        repository: owner/name on GitHub.
        commit: in full; neither branch nor tag, which move.
        path: inside the repository.
        examples: how many examples the file holds, by task.
        sha256: of the file's bytes, or None where nobody has published it.
        git_blob: how git's own sum of the file begins, for want of a sha256.
        beside: the file that says more of the same examples, by their ids: what is translated, or comments on pairs.
    """

    repository: str
    commit: str
    path: str
    examples: dict[str, int]
    sha256: str | None = None
    git_blob: str | None = None
    beside: "UpstreamFile | None" = None

    @property
    def location(self) -> str:
        """Where a mirror holds the file, relative to the mirror's folder."""
        return f"{self.repository}/{self.commit}/{self.path}"

    @property
    def url(self) -> str:
        return f"{BASE_URL}/{self.location}"

    def check(self, data: bytes, found_at: str | os.PathLike) -> None:
        """Raise Refusal unless `data`, the bytes found at `found_at`, has the pinned sum."""
        if self.sha256:
            kind, actual = "sha256", hashlib.sha256(data).hexdigest()
        else:
            kind, actual = "git blob", git_blob_sum(data)
        expected = self.sha256 or self.git_blob
        if expected is None or not actual.startswith(expected):
            raise Refusal(
                f"{found_at} has {kind} {actual} where {expected} is pinned for {self.path} of {self.repository}: "
                f"replace it by {self.url}."
            )


def git_blob_sum(data: bytes) -> str:
    """The name git gives to these bytes, in hex."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


# The English development set; the sha256 is also the one that Hugging Face recorded in 2021.
VALIDATION = UpstreamFile(
    repository="moinnadeem/StereoSet",
    commit="ead7d086a64a192a1eca88e0dd2fd163de375218",
    path="data/dev.json",
    examples={"intrasentence": 2106, "intersentence": 2123},
    sha256="73a0f31b711688112602e4c3ac6ab1e1a7cadcdd67df6c6fd55501c889676c90",
)

# The English test set, made public by McGill-NLP with bias-bench. Its sha256 could not be had, so beyond the sum's
# beginning it is judged by what it holds: `parsing.check_test_set`. The counts are the paper's.
TEST = UpstreamFile(
    repository="McGill-NLP/bias-bench",
    commit="291426aab926f78ecfc7bd040b531429ee8123e0",
    path="data/stereoset/test.json",
    examples={"intrasentence": 6392, "intersentence": 6374},
    git_blob="dc0204cc",
)

# The French translators' comments on CrowS-Pairs: 1,508 pairs and one of them twice, each with what they found.
COMMENTS = UpstreamFile(
    repository="JulienBez/MemoireMaster",
    commit="1d7c0b700e50fce66e6d08d8d0c2a2705d89afa4",
    path="data/crows_pairs_EN_revised_FR_with_comments.csv",
    examples={"comments": 1509},
    sha256="a0eeda5a3804e3232d49737b76531ae4fe07bef6bd70713e9b13cea6d01d4f17",
)

CROWS_PAIRS = UpstreamFile(
    repository="nyu-mll/crows-pairs",
    commit="8aaac11c485473159ec9328a65253a5be9a479dc",
    path="data/crows_pairs_anonymized.csv",
    examples={"crows_pairs": 1508},
    sha256="dfb36986ce0502abbaf7055b9176da3d08d48e07df1251991b5dfbcbceab9d0c",
    beside=COMMENTS,
)

# CrowS-Pairs revised, in English, with 210 pairs that were written in French; and in French, in the same order.
CROWS_PAIRS_REVISED = UpstreamFile(
    repository=COMMENTS.repository,
    commit=COMMENTS.commit,
    path="data/crows_pairs_EN_revised+210.csv",
    examples={"crows_pairs_en_revised": 1677},
    sha256="c2c449a051ae93a61dae7a882c7a3efdfce04215c492ed2365d01c0861cecafe",
    beside=COMMENTS,
)
CROWS_PAIRS_FRENCH = UpstreamFile(
    repository=COMMENTS.repository,
    commit=COMMENTS.commit,
    path="data/crows_pairs_FR_languagearc_contribution+210.csv",
    examples={"crows_pairs_fr": 1677},
    sha256="1b5de822b34188375c04b949ec2e2678373b65f81d8f0bfbbef9b7df3958d2e9",
    beside=COMMENTS,
)

CROWS_PAIRS_DUTCH = UpstreamFile(
    repository="jerryspan/Dutch-CrowS-Pairs",
    commit="7cf51965b4818a717d22068477fba951bca1eb90",
    path="datasets/crows_dutch.csv",
    examples={"crows_pairs_nl": 1463},
    sha256="07b9b562e947e782a0409ebac85b28b417838cf2d33c2f7f2a13766b431ddf35",
)

# The gender pairs of CrowS-Pairs, mended and translated, by language.
GENDER_PAIRS = {
    language: UpstreamFile(
        repository="VSteinborn/s_jsd-multilingual-bias",
        commit="b10302047b55043004a0280f8c2f63236ccea878",
        path=f"data/cps_translated_{language}_formatted.csv",
        examples={f"crows_pairs_gender_{language}": 212},
        sha256=sha256,
    )
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


def _translation(task: str, language: str, examples: int, sha256: str) -> UpstreamFile:
    return UpstreamFile(
        repository="slds-lmu/stereotypes-multi",
        commit="883f005dd9d003a6974e498f435629ec46d931c7",
        path=f"create_dataset/data/{task}/df_{task}_{language}.pkl",
        examples={task: examples},
        sha256=sha256,
        beside=VALIDATION,
    )


# The development set in other languages, by task and language.
TRANSLATIONS = {
    (task, language): _translation(task, language, examples, sha256)
    for task, language, examples, sha256 in [
        # Three gender examples are missing upstream.
        ("intrasentence", "de", 2103, "43bcb9eadab177b9593743f923fa5413ac3aa60486bef2f112057fa43ae54f7d"),
        ("intrasentence", "es", 2106, "0ad6fbcbced6311f5ba0050794ad7d43d00d48ab9e34397dcd0740047f303aa9"),
        ("intrasentence", "fr", 2106, "adb20df258874a0205065bd119f7a49d7d1b51f017f1ceb55a2478498debbe74"),
        ("intrasentence", "tr", 2106, "81ca8c31ee9837a83729f5e1c042ad1aa12f6a91b423fc4c79e2c3bfdfd0c6c9"),
        ("intersentence", "de", 2123, "f9107286b96c67b932bf5efc4a065f06c7d835f1c29fd282d8fda7a43688b517"),
        ("intersentence", "es", 2123, "5183a7bf2aef552cd9d8427370b97c803759fdeba120623779d037aeccdbf14a"),
        ("intersentence", "fr", 2123, "acd0ad25d0c46eda0ce2999f09f04d4fc603e6242ba5ff6ab9c68aa469e02c7a"),
        ("intersentence", "tr", 2123, "cd014f42d29db9c9993e28bcab5795c6a1d8a4e0af0b6c5f45ac48976e2dd15c"),
    ]
}

# Brazilian Portuguese, both tasks in one file.
PORTUGUESE = UpstreamFile(
    repository="firminovitoria/stereoset-ptbr",
    commit="94a101a93a1032322b108e77b7cd743b208776b5",
    path="data/dev_ptbr.json",
    examples={"intrasentence": 2106, "intersentence": 2123},
    sha256="d93d71252e2e7c2c70fac7b2f11fbc9f53a68b84fd84ae4f9305897fb1063155",
    beside=VALIDATION,
)
TRANSLATIONS |= {(task, "pt"): PORTUGUESE for task in PORTUGUESE.examples}
