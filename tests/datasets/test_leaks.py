"""What of evaluation sets occurs in training data."""

import gzip
import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.datasets.leaks import (
    Leak,
    evaluation_sets,
    find_leaks,
    pair_hashes,
    read_rows,
    row_pairs,
    sentence_hashes,
    shipped,
)
from rejoinder.errors import InputError


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def rows_of(path, **options):
    found = []
    for rows in read_rows(path, **options):
        texts = rows.sentences.to_list()
        found += [texts[a:b] for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    return found


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


STSB = "main-captions\tMSRvid\t2012test\t0001\t5.000\tA plane.\tAn air plane.\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (lines({"sentences": ["a", "b", "c"]}, {"sentences": []}), [["a", "b", "c"], []]),
        (lines({"gold_label": "odd", "sentence1": "a", "sentence2": "b"}), [["a", "b"]]),
        (lines({"premises": ["a", "b"], "sentence2": "c"}), [["a", "b", "c"]]),
        (lines({"input": "a", "response": "b", "x": 1}), [["a", "b"]]),
        ("\n\n" + lines({"text": "a"}), [["a"]]),
        ("a\n\nb c\r\n", [["a"], ["b c"]]),
        ("\n \na\n", [["a"]]),
        ("\nsentence1\tsentence2\na\tb\n", [["a", "b"]]),
        ('"a"\tb\tc\nd\n', [['"a"', "b", "c"], ["d"]]),
        ("label\tsentence1\tx\tsentence2\n0\ta\t-\tb\n1\tc\t-\td\n", [["a", "b"], ["c", "d"]]),
        (STSB + STSB.rstrip() + "\tx\ty\n", [["A plane.", "An air plane."]] * 2),
        (gzip.compress(b"a\tb\n", mtime=0), [["a", "b"]]),
    ],
)
def test_sources_of_many_forms(tmp_path, content, expected):
    assert rows_of(written(tmp_path / "train", content)) == expected


def test_of_other_text_columns_can_be_chosen(tmp_path):
    place = written(tmp_path / "STS.input.txt", "a\tb\tsource\nc\td\n")
    assert rows_of(place, columns=2) == [["a", "b"], ["c", "d"]]


def test_long_files_are_read_in_pieces_and_faults_have_their_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("rejoinder.datasets.leaks._BLOCK", 64)
    monkeypatch.setattr("rejoinder.io.formats.compression._READ_BYTES", 16)
    rows = [{"sentence1": f"a {n}", "sentence2": "b"} for n in range(50)]
    place = written(tmp_path / "a.jsonl", lines(*rows))
    assert len(list(read_rows(place))) > 5
    assert rows_of(place) == [[f"a {n}", "b"] for n in range(50)]
    written(place, lines(*rows) + '{"sentence1": "x"}\n')
    with pytest.raises(InputError, match=r"a\.jsonl line 51: .*'sentence2'"):
        rows_of(place)
    written(place, b"text\n" * 40 + b"\xff\n")
    with pytest.raises(InputError, match=r"line 41: byte 0xff is not utf-8"):
        rows_of(place)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "it is empty"),
        ("\n\n", "it is empty"),
        (b"PAR1\0\0", "zero byte"),
        (lines({"body": "a"}), "has the fields 'body'; expected 'sentences'; "),
        (gzip.compress(b"a" * 999, mtime=0)[:-9], "cut short"),
        (gzip.compress(b"a" * (20 << 20), mtime=0), "line 1 has more than 16,777,216 bytes"),
    ],
)
def test_bad_sources_are_one_clear_sentence(tmp_path, content, said):
    with pytest.raises(InputError, match=said):
        rows_of(written(tmp_path / "bad", content))


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=5), max_size=6))
def test_pairs_of_rows_are_all_their_combinations(rows):
    flat = pl.Series([text for row in rows for text in row], dtype=pl.String)
    numbers = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    expected = [
        pair_hashes(pl.Series([one]), pl.Series([other])).item()
        for row in rows
        for one, other in combinations(row, 2)
    ]
    assert sorted(row_pairs(sentence_hashes(flat), numbers).tolist()) == sorted(expected)


def test_counts_of_a_made_up_case(tmp_path):
    test = written(tmp_path / "test.tsv", "A dog.\tA cat.\nA cat.\tA cow.\nA hen.\tA pig.\n")
    train = written(
        tmp_path / "train.jsonl",
        lines(
            {"sentences": ["nothing", "a DOG", "x", "a cat"]},
            {"sentences": ["a cat!", "A cat", "y"]},
            {"sentences": ["a cow", "z"]},
            {"sentences": ["no", "none"]},
        ),
    )
    reported = []
    [leak] = find_leaks(
        [train],
        evaluation_sets([str(test)]),
        examples=2,
        progress=lambda *now: reported.append(now),
    )
    assert leak == Leak(str(train), 4, str(test), 3, 5, 3, 1, 3, ("a DOG", "a cat"))
    assert reported == [(str(train), 4)]


def test_evaluation_sets_by_name_family_and_file(tmp_path):
    place = written(tmp_path / "mine.txt", "one\ntwo\none.\n")
    found = evaluation_sets(["snli", "sts12", str(place)])
    assert [one.name for one in found] == ["snli-dev", "snli-test", "sts12", str(place)]
    assert (len(found[-1].sentences), len(found[-1].pairs)) == (2, 0)
    assert [one.name for one in evaluation_sets([])] == sorted(shipped())
    with pytest.raises(InputError, match=r"'stsb-tets'.*'stsb-test'"):
        evaluation_sets(["stsb-tets"])
    with pytest.raises(InputError, match="no sentence to look for"):
        evaluation_sets([str(written(tmp_path / "none.txt", "…\n?\n"))])


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("file", "dev", "test"),
    [
        ("nli/snli_1.0_dev", (18, 0), (18, 0)),
        ("nli/snli_1.0_test", (24, 0), (16, 0)),
        ("nli/snli_1.0_train_subset18k", (63, 0), (70, 1)),
        ("nli/mpe", (83, 13), (53, 1)),  # pairs of premises among them
        ("nli/rte_glue", (0, 0), (0, 0)),
        ("nli/sick_train", (102, 11), (115, 12)),
        ("captions/flickr30k_multi30k", (317, 43), (276, 41)),
        ("captions/flickr8k", (272, 47), (238, 48)),
        ("captions/coco_val2014_karpathy", (2, 0), (1, 0)),
        ("paraphrases/parade", (0, 0), (0, 0)),
    ],
)
def test_real_files_share_what_an_outside_count_says(shared_data, file, dev, test):
    """The counts were made with another program (but for the pairs of MPE's premises)."""
    place = shared_data / f"{file}.jsonl.zst"
    found = find_leaks([place], evaluation_sets(["stsb-dev", "stsb-test"]))
    assert [(leak.sentences, leak.pairs) for leak in found] == [dev, test]


@pytest.mark.shared_data
def test_the_benchmarks_train_and_test_share_twelve_pairs(shared_data):
    place = shared_data / "raw" / "STSBenchmark" / "sts-train.csv"
    [leak] = find_leaks([place], evaluation_sets(["stsb-test"]))
    assert (leak.train_rows, leak.pairs) == (5_749, 12)
    own = evaluation_sets([str(shared_data / "raw" / "STSBenchmark" / "sts-test.csv")])[0]
    assert np.isin(own.sentences, shipped()["stsb-test"].sentences).all()
    assert np.isin(own.pairs, shipped()["stsb-test"].pairs).all()
