"""The readers of the STS Benchmark and of SemRel."""

import json

import pytest

from rejoinder.datasets import semeval
from rejoinder.datasets.semeval import (
    pair_keys,
    read_scored,
    read_semrel,
    read_stsb,
    without_repeated,
    without_repeats,
)
from rejoinder.errors import DataMissingError, InputError

ROW = 'main-forum\tdeft\t2014\t0001\t4.200\tA "quoted" man.\tSecond\x85 one'


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setitem(semeval.ROWS, "dev", 2)

    def call(*rows: str):
        (tmp_path / "sts-dev.csv").write_text("\n".join(rows) + "\n", "utf-8")
        return tmp_path

    return call


def test_rows_of_seven_and_nine_columns_with_quotes(write):
    pairs = read_stsb(write(ROW, ROW.replace("forum", "forums") + "\tsource\tother\r"), "dev")
    assert pairs.first == ['A "quoted" man.'] * 2
    assert pairs.second == ["Second\x85 one"] * 2
    assert pairs.gold.tolist() == [4.2, 4.2]
    assert pairs.genres == ["main-forums", "main-forums"]
    assert (pairs.form, len(pairs)) == ("official", 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((ROW, ROW + "\tx"), "line 2: found 8 columns"),
        ((ROW, ROW.replace("4.200", "x")), "line 2: found 'x'"),
        ((ROW, ROW.replace("4.200", "5.1")), "found '5.1'; .* 0 to 5"),
        ((ROW,), "has 1 pairs; the dev split has 2"),
    ],
)
def test_damage_is_named(write, rows, message):
    with pytest.raises(InputError, match=message):
        read_stsb(write(*rows), "dev")


def test_absence_names_the_places(tmp_path):
    with pytest.raises(InputError, match=r"raw/STSBenchmark.*senteval"):
        read_stsb(tmp_path, "test")
    with pytest.raises(InputError, match="no split 'tset'"):
        read_stsb(tmp_path, "tset")


def test_keys_of_pairs_know_no_order_case_or_punctuation():
    first = ["A man's dog.", "no", "\ufb01ne", "", "ab", "straße"]
    second = ["It's 5!", "yes", "x", "", "c", "y"]
    again = ["it 's 5 !", "YES", "fine", " ", "a", "STRASSE"]
    other = ["a man 's DOG", "'no'", "x.", "", "bc", "y"]
    same = pair_keys(first, second) == pair_keys(again, other)
    assert same.tolist() == [True, True, True, True, False, True]
    assert len(set(pair_keys(first, second).tolist())) == 6
    assert pair_keys(["a"], ["b"]).tolist() == [0x5F9761D5F2E96DA7]  # b2sum -l 64
    assert pair_keys([], []).shape == (0,)


@pytest.mark.shared_data
@pytest.mark.parametrize(("split", "rows"), [("train", 5_749), ("dev", 1_500), ("test", 1_379)])
def test_both_forms_are_read_and_named(shared_data, split, rows):
    official = read_stsb(shared_data, split)
    other = read_stsb(shared_data, split, "senteval")
    assert (official.form, other.form) == ("official", "senteval")
    assert len(official) == len(other) == rows
    assert official.gold.tolist() == other.gold.tolist()
    same = pair_keys(official.first, official.second) == pair_keys(other.first, other.second)
    assert same.mean() > 0.97
    assert set(official.genres) == {"main-captions", "main-forums", "main-news"}


def test_a_pair_that_occurs_twice_is_kept_once_or_not_at_all(write):
    fields = ROW.split("\t")
    swapped = [*fields[:3], "0002", fields[4], *fields[:4:-1]]
    dev = read_stsb(write(ROW, "\t".join(swapped)), "dev")
    assert without_repeats(dev, set()).ids == ["dev:1"]
    assert not len(without_repeated({"dev": dev})["dev"])
    once = dev.at([0])
    assert without_repeated({"dev": once}) == {"dev": once}
    assert not any(map(len, without_repeated({"dev": once, "test": once}).values()))


@pytest.mark.shared_data
def test_v2_has_the_published_pairs(shared_data):
    every = {split: read_stsb(shared_data, split, "official") for split in semeval.ROWS}
    left = {split: len(pairs) for split, pairs in without_repeated(every).items()}
    assert (left["dev"], left["test"]) == (1_485, 1_362)


SEMREL_ROW = 'ENG-dev-{},"A dog, asleep.\nA ""dog"" sleeps.",{}\n'


def test_semrel_is_read_from_both_forms(tmp_path):
    (tmp_path / "graded").mkdir()
    lines = [{"sentence1": "un", "sentence2": "dos", "score": 0.5, "lang": "es", "split": split}
             for split in ("train", "dev")]  # fmt: skip
    path = tmp_path / "graded/semrel2024_es_ar.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    spanish = read_semrel(tmp_path, "es", "dev")
    assert (spanish.first, spanish.second, spanish.gold.tolist()) == (["un"], ["dos"], [0.5])
    with pytest.raises(DataMissingError, match=r"esp_test_with_labels\.csv"):
        read_semrel(tmp_path, "es", "test")
    (tmp_path / "semrel").mkdir()
    table = tmp_path / "semrel/eng_dev_with_labels.csv"
    table.write_text("PairID,Text,Score\n" + SEMREL_ROW.format("0000", 0.25))
    english = read_semrel(tmp_path, "en", "dev")
    assert (english.first, english.second) == (["A dog, asleep."], ['A "dog" sleeps.'])
    assert (english.gold.tolist(), english.form) == ([0.25], "official")
    for row, message in (("x,y\n", "two sentences"), (SEMREL_ROW.format(1, 7), "from 0 to 1")):
        table.write_text("PairID,Text,Score\n" + row)
        with pytest.raises(InputError, match=message):
            read_semrel(tmp_path, "en", "dev")


def test_scored_pairs_are_read_in_the_range_of_their_set(tmp_path):
    file = tmp_path / "sts22/test.jsonl"
    file.parent.mkdir()
    file.write_text('{"id": "7_8", "score": 3.5, "sentence1": "A dog.", "sentence2": "Dogs."}\n')
    found = read_scored(tmp_path, "sts22")
    assert (found.first, found.second, found.gold.tolist()) == (["A dog."], ["Dogs."], [3.5])
    file.write_text(file.read_text() + '{"score": 0.5, "sentence1": "A", "sentence2": "B"}\n')
    with pytest.raises(InputError, match=r"line 2.*from 1 to 4"):
        read_scored(tmp_path, "sts22")
    with pytest.raises(DataMissingError, match="biosses"):
        read_scored(tmp_path, "biosses")
