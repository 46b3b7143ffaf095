"""SentEval's files: byte 0x85, Latin-1, blank lines, quotes; and lines that are wrong."""

import pytest

from rejoinder.datasets.labelled import (
    read_binary,
    read_mrpc,
    read_probing,
    read_sick,
    read_snli,
    read_sst,
    read_trec,
)
from rejoinder.datasets.semeval import read_sts_2017, read_sts_year, read_stsb
from rejoinder.errors import DataMissingError, InputError


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_a_line_ends_at_a_line_feed_alone(tmp_path):
    folder = tmp_path / "downstream/MR"
    write(folder / "rt-polarity.pos", b"good\x85 really\n\x0cfine\r\n\n")
    write(folder / "rt-polarity.neg", b'"bad\n')
    found = read_binary(tmp_path, "MR").splits["all"]
    assert found.first == ["good\x85 really", "fine", "", '"bad']
    assert found.labels.tolist() == [1, 1, 1, 0]


def test_probing_files_may_be_compressed(tmp_path):
    import zstandard

    rows = [f"{split}\t{label}\tmore\tthe {label} text" for split in ("tr", "va", "te")
            for label in ("1", "0")]  # fmt: skip
    content = zstandard.compress("\n".join(rows).encode())
    write(tmp_path / "probing/tree_depth.txt.zst", content)
    found = read_probing(tmp_path, "Depth")
    assert found.splits["dev"].first == ["the 1 text", "the 0 text"]
    assert found.splits["test"].labels.tolist() == [1, 0]
    write(tmp_path / "probing/tree_depth.txt.zst", content[:-9])
    with pytest.raises(InputError, match=r"damaged or cut|no lines"):
        read_probing(tmp_path, "Depth")


MRPC = b"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
SICK = b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
WRONG = [
    (
        "SST/binary/sentiment-train",
        b"good\t2\n",
        lambda d: read_sst(d, 2),
        "line 1: found '2'; .* 0, 1",
    ),
    ("SST/binary/sentiment-train", b"good\n", lambda d: read_sst(d, 2), "1 columns"),
    ("TREC/train_5500.label", b"WHAT:x why ?\n", read_trec, "line 1: found 'WHAT'; .*ABBR"),
    ("MRPC/msr_paraphrase_train.txt", MRPC + b"1\ta\tb\tc\n", read_mrpc, "line 2: found 4 columns"),
    ("SICK/SICK_train.txt", SICK + b"1\ta\tb\t7\tNEUTRAL\n", read_sick, "line 2: .*'7'.* 1 to 5"),
    ("SICK/SICK_train.txt", b"1\ta\tb\t3\tNEUTRAL\n", read_sick, "line 1: .*'pair_ID'"),
    (
        "SICK/SICK_train.txt",
        SICK + b"1\ta\tb\t3\tMAYBE\n",
        read_sick,
        "line 2: found 'MAYBE'; .*NEUTRAL",
    ),
]


@pytest.mark.parametrize(("place", "content", "read", "message"), WRONG)
def test_a_wrong_line_is_named(tmp_path, place, content, read, message):
    write(tmp_path / "downstream" / place, content)
    with pytest.raises(InputError, match=message):
        read(tmp_path)


def test_files_of_different_length_are_named(tmp_path):
    folder = tmp_path / "downstream/SNLI"
    for name, rows in {"s1": 2, "s2": 2, "labels": 1}.items():
        write(folder / f"{name}.train", b"neutral\n" * rows)
    with pytest.raises(InputError, match="2, 2 and 1 lines"):
        read_snli(tmp_path)
    folder = tmp_path / "downstream/STS/STS12-en-test"
    write(folder / "STS.input.MSRpar.txt", b"a\tb\n")
    write(folder / "STS.gs.MSRpar.txt", b"1\n2\n")
    with pytest.raises(InputError, match=r"1 pairs.*STS\.gs\.MSRpar\.txt 2 lines"):
        read_sts_year(tmp_path, 12)
    write(folder / "STS.gs.MSRpar.txt", b"1\n")
    write(folder / "STS.input.MSRpar.txt", b"a b\n")
    with pytest.raises(InputError, match="line 1: expected two sentences"):
        read_sts_year(tmp_path, 12)


@pytest.mark.parametrize(
    "read",
    [
        lambda d: read_binary(d, "MPQA"),
        lambda d: read_sst(d, 5),
        read_trec,
        read_mrpc,
        read_sick,
        read_snli,
        read_sts_2017,
        lambda d: read_sts_year(d, 16),
        lambda d: read_stsb(d, "test"),
        lambda d: read_probing(d, "Length"),
    ],
)
def test_missing_data_is_missing_data(tmp_path, read):
    with pytest.raises(DataMissingError, match="is not there; looked for"):
        read(tmp_path)


@pytest.mark.shared_data
def test_the_real_files_have_the_published_rows(shared_data):
    sizes = {name: len(read_binary(shared_data, name).splits["all"])
             for name in ("MR", "CR", "SUBJ")}  # fmt: skip
    assert sizes == {"MR": 10_662, "CR": 3_775, "SUBJ": 10_000}
    trec = read_trec(shared_data)
    assert (len(trec.splits["train"]), len(trec.splits["test"])) == (5_452, 500)
    assert "sister\xf0city" in trec.splits["train"].first[65]
    sst = read_sst(shared_data, 2)
    assert [len(part) for part in sst.splits.values()] == [67_349, 872, 1_821]
    mrpc = read_mrpc(shared_data)
    assert [len(part) for part in mrpc.splits.values()] == [4_076, 1_725]
    years = {year: len(read_sts_year(shared_data, year)) for year in (12, 13, 14, 15)}
    assert years == {12: 3_108, 13: 1_500, 14: 3_750, 15: 3_000}
    assert len(read_sts_2017(shared_data)) == 7 * 250
    for form in ("official", "senteval"):
        assert read_sts_year(shared_data, 14, form).form == form
        assert read_stsb(shared_data, "dev", form).form == form
