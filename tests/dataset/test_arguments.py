"""What load_stereoset takes besides a config, and what it refuses by name."""

import datasets
import pytest

from stereoset_dataset import load_stereoset


@pytest.mark.parametrize("split", ["validation", "validation[1:]"])
def test_streamed_rows_are_the_rows(mild, load, split):
    rows = load(split=split, data_dir=mild.mirror, streaming=True)
    assert isinstance(rows, datasets.IterableDataset)
    assert list(rows) == load(split=split, data_dir=mild.mirror).to_list()


def test_every_split_streams(mild, load):
    splits = load(data_dir=mild.mirror, streaming=True)
    assert isinstance(splits, datasets.IterableDatasetDict)
    assert {name: len(list(rows)) for name, rows in splits.items()} == {"validation": 2, "test": 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_proc": 2}, "'num_proc' is no argument of load_stereoset: there are config, split, data_dir"),
        ({"trust_remote_code": True}, "'trust_remote_code' is no argument"),
        ({"download_mode": "force_redownload"}, "'download_mode' is no argument"),
        ({"stream": True}, r"'stream' is no argument of load_stereoset \(nearest: streaming\)"),
        ({"datadir": "x"}, r"'datadir' is no argument of load_stereoset \(nearest: data_dir\)"),
        ({"split": "train"}, "'train' is no split of intrasentence"),
        ({"split": ["validation", "test"]}, "is no split of intrasentence"),
        ({"data_dir": 3}, "data_dir=3 is no path: give a folder"),
        ({"cache_dir": ["x"]}, r"cache_dir=\['x'\] is no path"),
    ],
)
def test_what_it_does_not_know_is_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message) as refused:
        load_stereoset("intrasentence", **options)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("config", [None, 3, ["intrasentence"], {}, b"intrasentence", "intrasentence_xx"])
def test_what_is_no_config_is_refused(config):
    with pytest.raises(ValueError, match="is no config"):
        load_stereoset(config)
