"""Laying out data sets: made-up files of published sizes, and the authors' own ones."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from rejoinder.datasets.acquire.files import examine, restore_escapes
from rejoinder.datasets.acquire.layout import LOCK, add, presence
from rejoinder.datasets.catalogue import DataFile, DataSet, catalogue, official_rows, select
from rejoinder.datasets.labelled import (
    read_binary,
    read_mrpc,
    read_sick,
    read_snli,
    read_sst,
    read_trec,
)
from rejoinder.datasets.semeval import read_cqa, read_sts_2017, read_sts_year, read_stsb
from rejoinder.errors import BusyError, InputError


def of_size(name: str, *rows: int) -> DataSet:
    """A set of the catalogue with smaller files that nobody published."""
    known = catalogue().sets[name]
    files = tuple(
        dataclasses.replace(file, rows=count, letters="")
        for file, count in zip(known.files, rows, strict=True)
    )
    return dataclasses.replace(known, files=files)


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return folder


TRAIN, TEST = "msr_paraphrase_train.txt", "msr_paraphrase_test.txt"
MRPC = b"\xef\xbb\xbfQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
ROW = b'1\t1\t2\tA "quoted man.\tOne \xc2\x85 more\r\n'


def mrpc(rows: int) -> bytes:
    return MRPC + b"".join(ROW.replace(b"\t1\t", b"\t%d\t" % row) for row in range(rows))


def test_files_are_cleaned_and_other_files_are_passed_over(tmp_path):
    source = write(tmp_path / "in", {TRAIN: mrpc(3), TEST: mrpc(2), "c": b"\0\1\2"})
    [added] = add([of_size("mrpc", 3, 2)], [source], tmp_path / "data")
    assert added.missing == ()
    train = tmp_path / "data/downstream/MRPC" / TRAIN
    assert train.read_bytes() == mrpc(3)[3:].replace(b"\r\n", b"\n")
    assert re.search(rf"^downstream/MRPC/{TRAIN}: .*byte order mark.* 4 carriage", added.notes[0])
    assert len(read_mrpc(tmp_path / "data").splits["train"]) == 3


def test_senteval_s_own_folder_is_used_where_it_is_there(tmp_path):
    source = write(tmp_path / "in", {TRAIN: mrpc(3)})
    (tmp_path / "data/senteval").mkdir(parents=True)
    [added] = add([of_size("mrpc", 3, 2)], [source / TRAIN], tmp_path / "data")
    assert (tmp_path / "data/senteval/downstream/MRPC" / TRAIN).is_file()
    assert added.missing == (f"downstream/MRPC/{TEST}",)


def test_what_is_there_is_not_lost(tmp_path):
    mr = of_size("mr", 2, 2)
    names = ("rt-polarity.pos", "rt-polarity.neg")
    for folder, text in (("one", b"a\nb\n"), ("two", b"c\nd\n")):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / name).write_bytes(text)
    add([mr], [tmp_path / "one"], tmp_path / "data")
    add([mr], [tmp_path / "one"], tmp_path / "data")
    with pytest.raises(InputError, match=r"rt-polarity\.neg.*overwrite=True"):
        add([mr], [tmp_path / "two"], tmp_path / "data")
    add([mr], [tmp_path / "two"], tmp_path / "data", overwrite=True)
    assert read_binary(tmp_path / "data", "MR").splits["all"].first == ["c", "d"] * 2
    with pytest.raises(InputError, match=r"one/rt-polarity\.pos .*two/rt-polarity\.pos "):
        add([mr], [tmp_path / "one", tmp_path / "two"], tmp_path / "other")


def sst(kind: str, rows: int) -> bytes:
    line = {"binary": "sentence {}\t{}\n", "fine": "{1} sentence {0}\n"}[kind]
    return "".join(line.format(row, row % 2) for row in range(rows)).encode()


SST = {"sst2": ("binary", 4, 3, 2), "sst5": ("fine", 5, 4, 3)}


@pytest.fixture
def same_names(tmp_path) -> tuple[list[DataSet], Path]:
    """Two sets whose files have the same names, in one folder."""
    for kind, *rows in SST.values():
        (tmp_path / "in" / kind).mkdir(parents=True)
        for split, count in zip(("train", "dev", "test"), rows, strict=True):
            (tmp_path / "in" / kind / f"sentiment-{split}").write_bytes(sst(kind, count))
    return [of_size(name, *rows) for name, (_, *rows) in SST.items()], tmp_path / "in"


@pytest.mark.parametrize("packed", [False, True])
def test_sets_with_the_same_names_of_files_are_all_recognised(same_names, tmp_path, packed):
    sets, source = same_names
    if packed:
        shutil.make_archive(str(source), "zip", source)
        source = source.with_suffix(".zip")
    two, five = add(sets, [source], tmp_path / "data")
    assert (two.missing, five.missing) == ((), ())
    assert len(read_sst(tmp_path / "data", 2).splits["train"]) == 4
    assert len(read_sst(tmp_path / "data", 5).splits["train"]) == 5
    [five] = add(sets[1:], [source], tmp_path / "other")
    assert five.missing == ()


def test_one_set_that_is_cut_keeps_all_of_them(same_names, tmp_path):
    sets, source = same_names
    (source / "fine/sentiment-dev").write_bytes(sst("fine", 2))
    with pytest.raises(InputError, match=r"fine/sentiment-dev .*2 rows.* 4"):
        add(sets, [source], tmp_path / "data")
    assert not (tmp_path / "data").exists()
    (source / "copy").mkdir()
    (source / "copy/sentiment-dev").write_bytes(sst("fine", 4))
    [_, five] = add(sets, [source], tmp_path / "data")
    assert any("fine/sentiment-dev was skipped: " in note for note in five.notes)


REPEATED = [
    ("mrpc", (3, 2), "msr_paraphrase_train.txt", mrpc(2) + ROW, "line 4: line 3 .*'1-2'"),
    (
        "sick",
        (2, 1, 1),
        "SICK_test_annotated.txt",
        b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        + 2 * b"7\ta\tb\t3\tNEUTRAL\n",
        "SICK_test_annotated.txt line 3: line 2 .*'7'",
    ),
    (
        "stsb",
        (2, 1, 1),
        "sts-train.csv",
        2 * b"main-news\tfile\t2012\t1\t5\ta\tb\n",
        "line 2: line 1 .*'main-news file 2012 1'",
    ),
    (
        "cqa17",
        (2, 2),
        "SemEval2017-task3-English-test-input.xml",
        b"<xml>\n"
        + 2
        * b'<OrgQuestion ORGQ_ID="Q1"><RelQuestion RELQ_ID="R1" RELQ_RELEVANCE2ORGQ="?"/>'
        b"</OrgQuestion>\n" + b"</xml>",
        "question R1 .* twice",
    ),
    (
        "cqa17",
        (2, 2),
        "SemEval2017-Task3-CQA-QL-test.xml.subtaskB.relevancy",
        2 * b"Q1\tR1\t1\t0.5\ttrue\n",
        "line 2: line 1 .*'R1'",
    ),
]


@pytest.mark.parametrize(("name", "rows", "file", "content", "message"), REPEATED)
def test_repeated_ids_are_refused(tmp_path, name, rows, file, content, message):
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=message):
        add([of_size(name, *rows)], [tmp_path / file], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_sources_that_are_no_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe does not exist"):
        add(select(["mr"]), [tmp_path / "pipe"], tmp_path / "data")
    with pytest.raises(InputError, match="has no file of MR"):
        add(select(["mr"]), [tmp_path], tmp_path / "data")


def test_a_source_in_the_folder_of_data_sets_is_refused(tmp_path):
    data = write(tmp_path / "data", {TRAIN: mrpc(3)})
    (tmp_path / "link").symlink_to(data)
    for source in (data, data / TRAIN, tmp_path / "link" / TRAIN, tmp_path):
        with pytest.raises(InputError, match=r"is read, and writing .* would replace it"):
            add([of_size("mrpc", 3, 2)], [source], data)
    assert [path.name for path in data.iterdir()] == [TRAIN]


def files_below(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_full_disk_leaves_what_was_there(tmp_path):
    source = write(tmp_path / "in", {"mpqa.pos": b"good\n", "mpqa.neg": b"bad\n" * 50_000})
    add(select(["mpqa"]), [write(tmp_path / "old", {"mpqa.pos": b"old\n"})], tmp_path / "data")
    script = (
        "import resource, sys; from pathlib import Path\n"
        "from rejoinder.datasets.acquire.layout import add\n"
        "from rejoinder.datasets.catalogue import select\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "add(select(['mpqa']), [Path(sys.argv[1])], Path(sys.argv[2]), overwrite=True)"
    )
    said = subprocess.run(
        [sys.executable, "-c", script, source, tmp_path / "data"],
        capture_output=True, text=True, check=False,
    ).stderr  # fmt: skip
    assert "mpqa.neg can't be written: a file would exceed the size limit" in said
    assert files_below(tmp_path / "data") == {"downstream/MPQA/mpqa.pos": b"old\n"}
    add(select(["mpqa"]), [source], tmp_path / "data", overwrite=True)
    assert set(files_below(tmp_path / "data").values()) == set(files_below(source).values())


def test_a_second_command_is_told_who_holds_the_folder(tmp_path):
    hold = "import sys; from pathlib import Path\n"
    hold += "from rejoinder.io.files.claims import claim\n"
    hold += "with claim(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, tmp_path / "data" / LOCK]
    source = write(tmp_path / "in", {"mpqa.pos": b"good\n"})
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(BusyError, match=rf"data.*another command \(process {other.pid} on"):
            add(select(["mpqa"]), [source], tmp_path / "data")
        other.communicate()
    [added] = add(select(["mpqa"]), [source], tmp_path / "data")
    assert added.missing == ("downstream/MPQA/mpqa.neg",)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("msr_paraphrase_train.txt", MRPC + ROW, "has 1 rows; .* has 3"),
        ("msr_paraphrase_train.txt", MRPC + b"1\tcut", "line 2: found 2 columns .* 5"),
        ("msr_paraphrase_train.txt", MRPC + b"1\t\xff", "line 2: byte 0xff is not utf-8"),
        ("other.txt", mrpc(3), r"has no file of MRPC \(msr_paraphrase_train.txt, "),
    ],
)
def test_files_that_are_not_what_they_should_be(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        add([of_size("mrpc", 3, 2)], [tmp_path / name], tmp_path / "data")
    with pytest.raises(InputError, match="none does not exist"):
        add([of_size("mrpc", 3, 2)], [tmp_path / "none"], tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_encodings_of_sentences():
    raw = examine(b"the clich\xe9s \x85 more \x96\r\nnext\n", Path("x"), "sentences")
    assert raw.content.decode() == "the clichés … more –\nnext\n"
    assert raw.rows == 2
    escaped = examine(b"the clichM-is M-^E more M-^V\nnext\n", Path("x"), "sentences")
    assert escaped.content == raw.content
    assert escaped.letters == raw.letters
    kept = examine("a \x85 b\nc\n".encode(), Path("x"), "sentences")
    assert (kept.rows, kept.notes) == (2, ())
    assert restore_escapes("An M-16.") == ("An M-16.", 0)


def test_trec_is_latin_as_published(tmp_path):
    line = "LOC:city What is the sister\xf0city of Caf\xe9 ?\n"
    published = examine(line.encode("latin-1"), Path("x"), "trec")
    assert (published.content, published.notes) == (line.encode("latin-1"), ())
    other = examine(line.encode("utf-8"), Path("x"), "trec")
    assert other.content == published.content
    assert "Latin-1" in other.notes[0]


def test_sick_as_one_file(tmp_path):
    pair = ["pair_ID", "sentence_A", "sentence_B", "entailment_label", "relatedness_score"]
    columns = [*pair, *(f"more {n}" for n in range(6)), "SemEval_set"]
    rows = [
        [str(n), f"first {n}", f"second {n}", "NEUTRAL", f"{1 + n / 4:g}", *"abcdef", split]
        for n, split in enumerate(["TRAIN", "TRIAL", "TEST", "TRAIN", "TEST", "TRAIN"])
    ]
    text = "\n".join("\t".join(row) for row in (columns, *rows)) + "\n"
    source = tmp_path / "SICK.txt"
    source.write_bytes(text.encode())
    [added] = add([of_size("sick", 3, 1, 2)], [source], tmp_path / "data")
    assert added.missing == ()
    assert "made of SICK.txt" in " ".join(added.notes)
    splits = read_sick(tmp_path / "data").splits
    assert [splits[name].first for name in ("train", "dev", "test")] == [
        ["first 0", "first 3", "first 5"],
        ["first 1"],
        ["first 2", "first 4"],
    ]
    assert splits["test"].scores.tolist() == [1.5, 2.0]
    for old, new, said in (
        ("TRIAL", "DEV", "line 3: found 'DEV'; expected one of TRAIN, TRIAL, TEST"),
        ("SemEval_set", "set", "'SemEval_set'"),
        ("\tfirst 2", "", "line 4: found 11 columns"),
    ):
        source.write_bytes(text.replace(old, new).encode())
        with pytest.raises(InputError, match=re.escape(said)):
            add([of_size("sick", 3, 1, 2)], [source], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def snli_rows(count: int) -> list[dict[str, str]]:
    labels = ["entailment", "neutral", "contradiction"]
    rows = [
        {"gold_label": labels[row % 3], "sentence1": f"A  man {row}.", "sentence2": f"B {row}."}
        for row in range(count)
    ]
    return [*rows, {"gold_label": "-", "sentence1": "x", "sentence2": "y"}]


@pytest.mark.parametrize("form", ["jsonl", "txt"])
def test_snli_as_its_authors_publish_it(tmp_path, form):
    small = of_size("snli", *[3] * 3, *[2] * 3, *[1] * 3, 3, 2, 1)
    with zipfile.ZipFile(tmp_path / "snli_1.0.zip", "w") as file:
        file.writestr("__MACOSX/snli_1.0/._snli_1.0_dev.jsonl", b"\0")
        for split, count in (("train", 3), ("dev", 2), ("test", 1)):
            rows = snli_rows(count)
            tree = "\n".join(json.dumps({**row, "pairID": "1"}) for row in rows)
            table = "gold_label\tsentence1_parse\tsentence1\tsentence2\n" + "\n".join(
                f"{row['gold_label']}\t(x)\t{row['sentence1']}\t{row['sentence2']}" for row in rows
            )
            text = {"jsonl": tree, "txt": table}[form]
            file.writestr(f"snli_1.0/snli_1.0_{split}.{form}", text + "\n")
    [added] = add([small], [tmp_path / "snli_1.0.zip"], tmp_path / "data")
    assert added.missing == ()
    found = read_snli(tmp_path / "data")
    assert [len(found.splits[split]) for split in ("train", "dev", "test")] == [3, 2, 1]
    assert found.splits["dev"].first == ["A man 0.", "A man 1."]
    assert (tmp_path / "data/snli_1.0/snli_1.0_dev.jsonl").is_file()
    assert presence(tmp_path / "data", small).state == "complete"
    (tmp_path / "data/downstream/SNLI/s1.dev").write_text("cut\n")
    damaged = presence(tmp_path / "data", small)
    assert damaged.state == "damaged"
    assert re.search(r"s1\.dev has 1 rows; .* has 2", damaged.problems[0])


def test_the_catalogue():
    sets = catalogue().sets
    assert len(sets) == 41
    assert len({file.path for one in sets.values() for file in one.files}) == sum(
        len(one.files) for one in sets.values()
    )
    for one in sets.values():
        assert one.addresses or one.pages
        assert one.look_for
        assert one.licence
        assert one.citation
    assert [one.id for one in select(["probing"])] == [one.id for one in sets.values()
                                                       if "probing" in one.groups]  # fmt: skip
    assert len(select(["probing"])) == 10
    assert all(one.splits for one in sets.values())
    for name, dataset in sets.items():
        judged_in_part = name in ("sts15", "sts16", "sts17", "cqa16")
        assert judged_in_part or sum(dataset.splits.values()) == dataset.rows
    assert [official_rows("stsb", split) for split in ("dev", "tset")] == [1_500, None]
    assert official_rows("none", "test") is None
    assert [one.id for one in select(["STSBenchmark", "stsb"])] == ["stsb"]
    with pytest.raises(InputError, match="did you mean 'stsb'"):
        select(["stsbb"])


def test_files_of_common_names_are_refused_only_if_their_set_is_asked_for(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/test.csv").write_text("text,category\nhow do I pay,paying\n")
    (tmp_path / "in/mpqa.pos").write_text("good\n")
    [added] = add(select(["all"]), [tmp_path / "in"], tmp_path / "data")
    assert added.id == "mpqa"
    with pytest.raises(InputError, match=r"test\.csv has 1 rows; .* has 3,080"):
        add(select(["banking77"]), [tmp_path / "in"], tmp_path / "data")


@pytest.fixture(scope="module")
def laid_out(shared_data, tmp_path_factory) -> Path:
    """The authors' untouched files, laid out."""
    root = tmp_path_factory.mktemp("laid_out")
    add(select(["all"]), [next((shared_data / "raw").glob("*.tar.zst"))], root)
    add(select(["sts12", "sts13", "sts14", "sts15"]), [shared_data / "raw/STS"], root)
    add(select(["stsb"]), [shared_data / "archives/Stsbenchmark.tar.gz"], root)
    add(select(["sts17"]), [shared_data / "archives"], root)
    return root


def comparable(content: bytes, file: DataFile) -> list[str]:
    """Without what a tokeniser changes: spaces, quotes, case; and without escapes."""
    text = content.removeprefix(b"\xef\xbb\xbf").decode(
        "latin-1" if file.kind == "trec" else "utf-8"
    )
    if file.kind == "sentences":
        text = restore_escapes(text)[0]
    lines = text.rstrip("\n").split("\n")
    if file.kind == "stsb":
        lines = ["\t".join(line.split("\t")[:7]) for line in lines]
    # quotes become `` and '' or are lost (TREC), control characters are lost
    return [re.sub(r"[\s'`\"\x00-\x1f]", "", line.lower()) for line in lines]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name", ["mr", "cr", "subj", "trec", "mrpc", "sick", "sts12", "sts13", "sts14", "sts15", "stsb"]
)
def test_raw_files_give_those_of_senteval(laid_out, shared_data, name):
    compared = 0
    for file in catalogue().sets[name].files:
        theirs = shared_data / "senteval" / file.path
        if theirs.is_file():
            ours = laid_out / file.path
            assert comparable(ours.read_bytes(), file) == comparable(theirs.read_bytes(), file)
            compared += 1
    assert compared == (1 if name == "sick" else len(catalogue().sets[name].files))


@pytest.mark.shared_data
def test_readers_read_what_was_laid_out(laid_out):
    assert len(read_binary(laid_out, "CR").splits["all"]) == 3_775
    assert "clichés" in " ".join(read_binary(laid_out, "MR").splits["all"].first)
    assert len(read_trec(laid_out).splits["train"]) == 5_452
    assert len(read_stsb(laid_out, "dev")) == 1_500
    assert len(read_sts_year(laid_out, 15)) == 3_000
    assert len(read_sts_2017(laid_out)) == 1_750
    states = {one.id: presence(laid_out, one).state for one in catalogue().sets.values()}
    assert [states[name] for name in ("mr", "stsb", "sts15", "sick", "coco")] == [
        "complete", "complete", "complete", "incomplete", "absent",
    ]  # fmt: skip


@pytest.mark.shared_data
def test_readers_return_the_official_numbers_of_rows(shared_data):
    for name in ("MR", "CR", "SUBJ"):
        assert len(read_binary(shared_data, name).splits["all"]) == official_rows(
            name.lower(), "all"
        )
    for year in (12, 13, 14, 15):
        assert len(read_sts_year(shared_data, year)) == official_rows(f"sts{year}", "test")
    assert len(read_sts_2017(shared_data)) == official_rows("sts17", "test")
    for split in ("dev", "test"):
        queries = read_cqa(shared_data, "2016", split).queries
        assert sum(len(query.related) for query in queries) == official_rows("cqa16", split)
    queries = read_cqa(shared_data, "2016", "train-part2").queries
    assert sum(len(one.comments) for query in queries for one in query.related) == 6_700
    read = {"sst2": read_sst(shared_data, 2), "trec": read_trec(shared_data)}
    for name, found in {**read, "mrpc": read_mrpc(shared_data)}.items():
        for split, rows in found.splits.items():
            assert len(rows) == official_rows(name, split)


@pytest.mark.shared_data
def test_files_of_other_sets_with_the_same_names_are_not_taken(shared_data, tmp_path):
    raw = shared_data / "senteval/downstream/MR"
    (tmp_path / "in").mkdir()
    shutil.copy(raw / "rt-polarity.pos", tmp_path / "in/rt-polarity.neg")
    with pytest.raises(InputError, match="has no file of MR"):
        add(select(["mr"]), [tmp_path / "in"], tmp_path / "data")
    with pytest.raises(InputError, match="has no file of STS13"):
        add(select(["sts13"]), [shared_data / "raw/STS/sts-en-test-gs-2014"], tmp_path / "data")
    [added] = add(select(["mr"]), [raw], tmp_path / "data")
    assert "downstream/MR/rt-polarity.pos: 169 escapes of `cat -v`" in added.notes[0]


@pytest.mark.shared_data
def test_questions_and_inference(shared_data, tmp_path):
    [cqa] = add(select(["cqa16"]), [shared_data / "cqa"], tmp_path)
    assert cqa.missing == ()
    [snli] = add(select(["snli"]), [shared_data / "nli"], tmp_path)
    assert [Path(name).name for name in snli.missing] == ["s1.train", "s2.train", "labels.train"]
    assert len((tmp_path / "downstream/SNLI/s1.test").read_text("utf-8").split("\n")) == 9_825
