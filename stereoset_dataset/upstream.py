"""The public files the data set is made of: where each lies, and how the right one is known."""

import dataclasses
import hashlib

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
    """

    repository: str
    commit: str
    path: str
    examples: dict[str, int]
    sha256: str | None = None
    git_blob: str | None = None

    @property
    def location(self):
        """Where a mirror holds the file, relative to the mirror's folder."""
        return f"{self.repository}/{self.commit}/{self.path}"

    @property
    def url(self):
        return f"{BASE_URL}/{self.location}"

    def check(self, data, found_at):
        """Raise Refusal unless `data`, the bytes found at `found_at`, has the pinned sum."""
        if self.sha256:
            kind, expected, actual = "sha256", self.sha256, hashlib.sha256(data).hexdigest()
        else:
            kind, expected, actual = "git blob", self.git_blob, git_blob_sum(data)
        if not actual.startswith(expected):
            raise Refusal(
                f"{found_at} has {kind} {actual} where {expected} is pinned for {self.path} of {self.repository}: "
                f"replace it by {self.url}."
            )


def git_blob_sum(data):
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

CROWS_PAIRS = UpstreamFile(
    repository="nyu-mll/crows-pairs",
    commit="8aaac11c485473159ec9328a65253a5be9a479dc",
    path="data/crows_pairs_anonymized.csv",
    examples={"crows_pairs": 1508},
    sha256="dfb36986ce0502abbaf7055b9176da3d08d48e07df1251991b5dfbcbceab9d0c",
)


def _translation(task, language, examples, sha256):
    return UpstreamFile(
        repository="slds-lmu/stereotypes-multi",
        commit="883f005dd9d003a6974e498f435629ec46d931c7",
        path=f"create_dataset/data/{task}/df_{task}_{language}.pkl",
        examples={task: examples},
        sha256=sha256,
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
