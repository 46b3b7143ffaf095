"""Pairs of inference for training: SNLI's files as published, and anything like them."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.datasets.groups import read_inference
from rejoinder.datasets.labelled import NLI_CLASSES
from rejoinder.errors import DataMissingError, InputError
from rejoinder.io.formats.json_lines import json_rows

SNLI = (
    '{"annotator_labels": ["neutral"], "captionID": "1.jpg#4", "gold_label": "neutral", '
    '"pairID": "1.jpg#4r1n", "sentence1": "A person on a horse.", "sentence1_parse": "(ROOT)", '
    '"sentence2": "A person is training his horse."}\n'
    '{"gold_label": "-", "sentence1": "A \\"b\\"", "sentence2": "c"}\n'
    '{"gold_label": "entailment", "sentence1": "d", "sentence2": "e"}\n'
)
TABLE = (
    "gold_label\tsentence1_binary_parse\tsentence1\tsentence2\tcaptionID\tlabel1\n"
    'neutral\t( A horse )\t"A person" on a horse.\tA person\'s "horse.\t1.jpg#4\tneutral\n'
    "-\t( )\tf\tg\t1\t\n"
    "contradiction\t( )\th\ti\t2\tcontradiction\n"
)


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_json_lines_as_published(tmp_path):
    pairs = read_inference(written(tmp_path / "snli_1.0_train.jsonl", SNLI))
    assert pairs.premises == ["A person on a horse.", "d"]
    assert pairs.hypotheses == ["A person is training his horse.", "e"]
    assert [NLI_CLASSES[label] for label in pairs.labels] == ["neutral", "entailment"]
    assert (pairs.labels.dtype, pairs.dropped, pairs.empty, len(pairs)) == (np.int64, 1, 0, 2)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_table_as_published(tmp_path, end):
    content = "\ufeff" + TABLE.replace("\n", end)
    pairs = read_inference(written(tmp_path / "snli_1.0_train.txt", content))
    assert pairs.premises == ['"A person" on a horse.', "h"]
    assert pairs.hypotheses == ["A person's \"horse.", "i"]
    assert pairs.labels.tolist() == [1, 0]
    assert pairs.dropped == 1


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".gz", gzip.compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
        (".zst", lambda content: zstandard.ZstdCompressor().compress(content)),
    ],
)
def test_compressed_files_are_the_same_and_cut_ones_are_named(tmp_path, suffix, pack):
    plain = read_inference(written(tmp_path / "plain.jsonl", SNLI))
    place = written(tmp_path / f"a.jsonl{suffix}", pack(SNLI.encode()))
    packed = read_inference(place)
    assert (packed.premises, packed.sha256) == (plain.premises, plain.sha256)
    place.write_bytes(place.read_bytes()[:-9])
    with pytest.raises(InputError, match=rf"a\.jsonl{suffix}.*damaged"):
        read_inference(place)


def test_columns_labels_and_lists_of_premises(tmp_path):
    lines = [
        {"premises": ["a b", "c"], "h": "d", "label": 0},
        {"premises": ["e"], "h": "f", "label": 2},
        {"premises": ["g"], "h": "h", "label": -1},
        {"premises": [" "], "h": "h", "label": 2},
    ]
    place = written(tmp_path / "mpe.jsonl", "\n".join(map(json.dumps, lines)))
    labels = {"0": "entailment", "2": "contradiction", "-1": ""}
    pairs = read_inference(place, premise="premises", hypothesis="h", label="label", labels=labels)
    assert pairs.premises == ["a b c", "e"]
    assert pairs.labels.tolist() == [2, 0]
    assert (pairs.dropped, pairs.empty) == (1, 1)


GOOD = '{"gold_label": "neutral", "sentence1": "a", "sentence2": "b"}\n'


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no rows; a JSON object on each line is needed"),
        ("\n \n", "no rows"),
        (GOOD + "\n" + GOOD.replace("neutral", "maybe"), "line 3: gold_label is 'maybe'; known: "),
        (GOOD + '{"gold_label": "neutral", "sentence1": "a"}', "line 2: no 'sentence2'; a string"),
        (GOOD + GOOD.replace('"a"', "5"), "line 2: 'sentence1' is '5'; a string is needed"),
        (GOOD + GOOD.replace('"b"', '["b"]'), r"line 2: 'sentence2' is '\[\"b\"\]'; a string"),
        (GOOD + GOOD.replace('"neutral"', "null"), "line 2: no 'gold_label'; a string or a number"),
        (GOOD + GOOD[:30], "line 2: .* is not JSON .* an object on each line is needed"),
        (GOOD + "[1]\n", "line 2: a JSON list; an object on each line is needed"),
        (GOOD.encode() + b'{"gold_label": "\xff"}', "line 2: .* is not JSON"),
        (GOOD.replace("neutral", "-"), "no pair to learn from: of 1 rows 1 are left out"),
        (GOOD.replace('"a"', '" "'), "no pair to learn from: .* 1 have a blank sentence"),
        ("[" + GOOD + "]", "line 1: the header .* lacks 'sentence1'"),
        ("gold_label\tsentence1\n-\ta\n", "line 1: the header .* lacks 'sentence2'"),
        (TABLE + "\nneutral\ta\tb\n", "line 6: found 3 columns .* 6"),
        (TABLE + "maybe\t\ta\tb\tc\td\n", "line 5: gold_label is 'maybe'"),
    ],
)
def test_bad_files_are_one_clear_sentence(tmp_path, content, said):
    with pytest.raises(InputError, match=said) as error:
        read_inference(written(tmp_path / "bad.jsonl", content))
    assert "\n" not in str(error.value)
    assert "bad.jsonl" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataMissingError, match=r"none\.jsonl is not there"):
        read_inference(tmp_path / "none.jsonl")


@given(st.lists(st.tuples(st.text(), st.lists(st.text(), max_size=3)), min_size=1, max_size=6))
def test_rows_are_those_of_json(rows):
    """Also where they look like other JSON, or hold halves of surrogate pairs."""
    lines = [json.dumps({"x": 1, "one": one, "many": many}) for one, many in rows]
    frame = json_rows("\n".join(lines).encode(), "-", {"one": "text", "many": "texts"})
    assert frame.rows() == rows


@pytest.mark.parametrize("text", ["5", "-1.5", "[x]", "{", "true", "\ud83d half", "\0"])
def test_strings_that_look_like_other_json_stay(text):
    frame = json_rows(json.dumps({"one": text}).encode(), "-", {"one": "text"})
    assert frame["one"].to_list() == [text.replace("\ud83d", "\ufffd")]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("snli_1.0_dev", (3_278, 3_235, 3_329)),
        ("snli_1.0_test", (3_237, 3_219, 3_368)),
        ("snli_1.0_train_subset18k", (6_086, 5_897, 6_014)),
        ("sick_train", (665, 2_536, 1_299)),
    ],
)
def test_real_files_have_the_published_classes(shared_data, name, counts):
    pairs = read_inference(shared_data / "nli" / f"{name}.jsonl")
    assert tuple(np.bincount(pairs.labels)) == counts
    assert (pairs.dropped, pairs.empty) == (0, 0)


@pytest.mark.shared_data
def test_real_files_of_other_forms(shared_data):
    several = read_inference(shared_data / "nli" / "mpe.jsonl.zst", premise="premises")
    assert several.premises[0].startswith(
        "Very young girl holding a spoon in a restaurant setting A"
    )
    with pytest.raises(InputError, match=r"line 1: gold_label .*'not_entailment'"):
        read_inference(shared_data / "nli" / "rte_glue.jsonl")
    two = {"entailment": "entailment", "not_entailment": ""}
    found = read_inference(shared_data / "nli" / "rte_glue.jsonl", labels=two)
    assert found.dropped == 1_372


def test_rows_are_chosen_by_the_values_of_fields(tmp_path):
    fields = '{"gold_label": "entailment", "sentence1": "%s", "sentence2": "e", "gold": %s}\n'
    path = written(tmp_path / "b.jsonl", fields % ("a", "true") + fields % ("b", "false"))
    assert read_inference(path, where={"gold": "true"}).premises == ["a"]
    with pytest.raises(InputError, match=r"t\.txt is a table"):
        read_inference(written(tmp_path / "t.txt", TABLE), where={"label1": "neutral"})
