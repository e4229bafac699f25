"""The published files: where each lies, and how to tell that it is the one."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class UpstreamFile:
    """One file of one commit of a public repository.

    Attributes:
        repository: owner/name on GitHub.
        commit: the commit, 40 hex digits.
        path: the file's path in the repository.
        sha256: of its bytes; None where it is not known.
        git_blob: the first digits of git's own id of its bytes; None where sha256 is known.
    """

    repository: str
    commit: str
    path: str
    sha256: str | None = None
    git_blob: str | None = None

    @property
    def location(self):
        """Its place in a mirror, and below ADDRESS: owner/repository/commit/path."""
        return f"{self.repository}/{self.commit}/{self.path}"

    @property
    def url(self):
        """Its public address."""
        return f"{ADDRESS}/{self.location}"

    def check(self, local_path):
        """Compare the sum of a local copy with the pinned one.

        Raises:
            ValueError: if they differ.
        """
        content = Path(local_path).read_bytes()
        if self.sha256 is not None:
            kind, expected, found = "sha256", self.sha256, hashlib.sha256(content).hexdigest()
        else:
            header = b"blob %d\0" % len(content)
            kind, expected, found = "git blob id", self.git_blob, hashlib.sha1(header + content).hexdigest()
        if not found.startswith(expected):
            raise ValueError(
                f"{self.location} has {kind} {found}, not {expected}: delete the copy {local_path} "
                "and fetch the file again."
            )


_STEREOSET = ("moinnadeem/StereoSet", "ead7d086a64a192a1eca88e0dd2fd163de375218")
_BIAS_BENCH = ("McGill-NLP/bias-bench", "291426aab926f78ecfc7bd040b531429ee8123e0")
_MULTILINGUAL = ("slds-lmu/stereotypes-multi", "883f005dd9d003a6974e498f435629ec46d931c7")
_CROWS_PAIRS = ("nyu-mll/crows-pairs", "8aaac11c485473159ec9328a65253a5be9a479dc")

DEVELOPMENT = UpstreamFile(
    *_STEREOSET, "data/dev.json", "73a0f31b711688112602e4c3ac6ab1e1a7cadcdd67df6c6fd55501c889676c90"
)
# Its sha256 was never published; the builder checks what it can instead.
TEST = UpstreamFile(*_BIAS_BENCH, "data/stereoset/test.json", git_blob="dc0204cc")
CROWS_PAIRS = UpstreamFile(
    *_CROWS_PAIRS,
    "data/crows_pairs_anonymized.csv",
    "dfb36986ce0502abbaf7055b9176da3d08d48e07df1251991b5dfbcbceab9d0c",
)
_SUMS = {
    ("intrasentence", "de"): "43bcb9eadab177b9593743f923fa5413ac3aa60486bef2f112057fa43ae54f7d",
    ("intrasentence", "es"): "0ad6fbcbced6311f5ba0050794ad7d43d00d48ab9e34397dcd0740047f303aa9",
    ("intrasentence", "fr"): "adb20df258874a0205065bd119f7a49d7d1b51f017f1ceb55a2478498debbe74",
    ("intrasentence", "tr"): "81ca8c31ee9837a83729f5e1c042ad1aa12f6a91b423fc4c79e2c3bfdfd0c6c9",
    ("intersentence", "de"): "f9107286b96c67b932bf5efc4a065f06c7d835f1c29fd282d8fda7a43688b517",
    ("intersentence", "es"): "5183a7bf2aef552cd9d8427370b97c803759fdeba120623779d037aeccdbf14a",
    ("intersentence", "fr"): "acd0ad25d0c46eda0ce2999f09f04d4fc603e6242ba5ff6ab9c68aa469e02c7a",
    ("intersentence", "tr"): "cd014f42d29db9c9993e28bcab5795c6a1d8a4e0af0b6c5f45ac48976e2dd15c",
}
TRANSLATIONS = {
    (task, language): UpstreamFile(*_MULTILINGUAL, f"create_dataset/data/{task}/df_{task}_{language}.pkl", sha256)
    for (task, language), sha256 in _SUMS.items()
}
