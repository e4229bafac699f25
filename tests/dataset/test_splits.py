"""The test split, whose file's sum is not known in full: what is checked of it, and that it is in nobody's way."""

import logging

import pytest


def test_both_splits_are_given_where_both_files_are(mild, load):
    splits = load(data_dir=mild.mirror)
    assert {split: rows["target"][:] for split, rows in splits.items()} == {
        "validation": ["baker", "tailor"],
        "test": ["gardener"],
    }


def test_without_the_test_file_validation_is_given_with_a_warning_that_names_it(mild, load, caplog):
    mild.path("test").unlink()
    with caplog.at_level(logging.WARNING):
        assert list(load(data_dir=mild.mirror)) == ["validation"]
    assert str(mild.path("test")) in caplog.text


def test_asking_for_the_absent_test_split_is_an_error_that_says_where_the_file_should_lie(mild, load):
    mild.path("test").unlink()
    with pytest.raises(FileNotFoundError, match=r"test\.json is absent: put https.* there") as error:
        load(split="test", data_dir=mild.mirror)
    assert str(mild.path("test")) in str(error.value)


def test_validation_alone_looks_at_no_other_file(mild, load, caplog):
    mild.path("test").write_bytes(b"not looked at")
    with caplog.at_level(logging.WARNING):
        assert len(load(split="validation", data_dir=mild.mirror)) == 2
    assert not [record for record in caplog.records if "stereoset" in record.name]


@pytest.mark.parametrize(("first", "second"), [("validation", "test"), ("test", "validation"), ("validation", None)])
def test_a_later_call_may_want_more_than_an_earlier_one_prepared(mild, load, first, second):
    load(split=first, data_dir=mild.mirror)
    load(split=second, data_dir=mild.mirror)
    assert set(load(data_dir=mild.mirror)) == {"validation", "test"}


def test_what_is_prepared_is_served_where_the_rest_cannot_be_had(mild, load, caplog):
    load(split="validation", data_dir=mild.mirror)
    mild.path("test").unlink()
    with caplog.at_level(logging.WARNING):
        assert list(load(data_dir=mild.mirror)) == ["validation"]
    assert "Going on without the split test" in caplog.text
    with pytest.raises(FileNotFoundError, match="is absent"):
        load(split="test", data_dir=mild.mirror)


def test_a_slice_of_a_split_is_served(mild, load):
    assert load(split="validation[:1]", data_dir=mild.mirror)["target"][:] == ["baker"]


def drop_an_option(document):
    document["data"]["intrasentence"][0]["sentences"].pop()


def swap_a_gold_label(document):
    document["data"]["intersentence"][0]["sentences"][0]["gold_label"] = "stereotype"


def use_an_unknown_label(document):
    document["data"]["intersentence"][0]["sentences"][0]["labels"][0]["label"] = "funny"


def take_a_validation_term(document):
    document["data"]["intersentence"][0]["target"] = "tailor"


def repeat_an_id(document):
    document["data"]["intersentence"][0]["id"] = document["data"]["intrasentence"][0]["id"]


def repeat_an_option_s_id(document):
    options = document["data"]["intersentence"][0]["sentences"]
    options[0]["id"] = options[1]["id"]


def lose_a_field(document):
    del document["data"]["intersentence"][0]["context"]


CHANGES = [
    (drop_an_option, "one option of each kind"),
    (swap_a_gold_label, "one option of each kind"),
    (use_an_unknown_label, "labelled as StereoSet labels"),
    (take_a_validation_term, "shares target terms with the validation split, such as 'tailor'"),
    (repeat_an_id, "ids occur twice"),
    (repeat_an_option_s_id, "ids occur twice"),
    (lose_a_field, "not laid out as StereoSet's files are"),
]


@pytest.mark.parametrize(("change", "complaint"), CHANGES, ids=[change.__name__ for change, _ in CHANGES])
def test_a_test_set_of_other_content_is_refused_even_with_the_right_sum(mild, load, change, complaint):
    document = mild.document("test")
    change(document)
    mild.pin("test", document)
    with pytest.raises(ValueError, match=complaint) as error:
        load(split="test", data_dir=mild.mirror)
    assert "replace it by https://" in str(error.value)
    assert list(load(data_dir=mild.mirror)) == ["validation"]


def test_a_test_set_of_another_size_is_refused(mild, load):
    mild.sources["test"].examples["intrasentence"] = 6392
    with pytest.raises(
        ValueError, match=r"holds \{'intrasentence': 1, .*where the paper counts \{'intrasentence': 6392"
    ):
        load(split="test", data_dir=mild.mirror)


def test_a_test_set_of_other_bytes_is_refused_by_git_s_sum(mild, load):
    mild.path("test").write_bytes(b"{}")
    # git hash-object of these two bytes
    with pytest.raises(ValueError, match="git blob 9e26dfeeb6e641a33dae4961196235bdb965b21b where"):
        load(split="test", data_dir=mild.mirror)


@pytest.mark.parametrize(
    ("config", "split", "complaint"),
    [
        ("intrasentance", None, r"'intrasentance' is no config \(nearest: intrasentence\): there are intrasentence, "),
        ("hindi", None, "'hindi' is no config: there are "),
        ("intrasentence", "train", "'train' is no split of intrasentence: there are validation, test"),
        ("crows_pairs", "validation", "'validation' is no split of crows_pairs: there are test"),
    ],
)
def test_unknown_names_are_refused_with_a_list_of_the_known(load, config, split, complaint):
    with pytest.raises(ValueError, match=complaint):
        load(config, split)
