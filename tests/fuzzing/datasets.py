"""Damaged files of labelled data: what every reader has to read, or to refuse in one sentence.

`CASES` are small files of each real form with the function that reads them; `damaged` is a pure
function of a random generator. A benchmark can draw as many as it likes.
"""

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import zstandard
from safetensors.numpy import save

from rejoinder.datasets.acquire.files import examine, read_coco_pickle, sick_splits, unpack
from rejoinder.datasets.acquire.layout import add, presence
from rejoinder.datasets.catalogue import DataSet, catalogue, content_of, read_bytes
from rejoinder.datasets.groups import read_groups, read_inference, read_snli_split
from rejoinder.datasets.labelled import (
    read_binary,
    read_coco,
    read_mrpc,
    read_probing,
    read_sick,
    read_snli,
    read_sst,
    read_trec,
)
from rejoinder.datasets.leaks import read_rows
from rejoinder.datasets.memory import read_conversations
from rejoinder.datasets.semeval import (
    read_cqa,
    read_sts_2017,
    read_sts_year,
    read_stsb,
    subset_files,
)
from rejoinder.errors import RejoinderError
from rejoinder.io.formats.compression import Limits

Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Case:
    """Files of a data set below a folder, and what reads them."""

    files: Files
    read: Callable[[Path], object]


_TOKENS = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n", b"\t", b"\x85", b"", b"NaN", b"inf",
    b"-1", b"1e999", b"9" * 5000, b"1" + b"0" * 30, b'"', b"'", b"{", b"}", b"[" * 3000, b"null",
    b"true", b"\\ud800", b"\xed\xa0\x80", b"&a;", b"<", b">", b"..", b"/", b"\xc3", b" ",
    "é\u2028\u0130".encode(),
)  # fmt: skip
_NUMBER = re.compile(rb"\d+(\.\d+)?")


def damaged(content: bytes, random_: random.Random) -> bytes:
    """The content with up to four faults; unchanged once in ten times."""
    if random_.random() < 0.1:
        return content
    for _ in range(random_.randint(1, 4)):
        content = random_.choice(_FAULTS)(content, random_)
    return content


def damaged_files(files: Files, random_: random.Random) -> Files:
    """One of the files damaged, or all of them; now and then one is missing."""
    if random_.random() < 0.3:
        return {name: damaged(content, random_) for name, content in files.items()}
    chosen = random_.choice(list(files))
    if random_.random() < 0.02:
        return {name: content for name, content in files.items() if name != chosen}
    return {**files, chosen: damaged(files[chosen], random_)}


def _cut(content: bytes, random_: random.Random) -> bytes:
    return content[: random_.randint(0, len(content))]


def _flipped(content: bytes, random_: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(random_.randint(1, 3)):
        if changed:
            changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
    return bytes(changed)


def _overwritten(content: bytes, random_: random.Random) -> bytes:
    start = random_.randint(0, len(content))
    junk = random_.randbytes(random_.randint(1, 8))
    return content[:start] + junk + content[start + len(junk) :]


def _without_a_piece(content: bytes, random_: random.Random) -> bytes:
    start = random_.randint(0, len(content))
    return content[:start] + content[start + random_.randint(1, 20) :]


def _with_a_token(content: bytes, random_: random.Random) -> bytes:
    start = random_.randint(0, len(content))
    return content[:start] + random_.choice(_TOKENS) + content[start:]


def _with_another_number(content: bytes, random_: random.Random) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    match = random_.choice(found)
    return content[: match.start()] + random_.choice(_TOKENS) + content[match.end() :]


def _with_other_lines(content: bytes, random_: random.Random) -> bytes:
    lines = content.split(b"\n")
    row = random_.randrange(len(lines))
    change = random_.choice(["drop", "twice", "blank", "swap", "column"])
    if change == "drop":
        del lines[row]
    elif change == "twice":
        lines.insert(row, lines[row])
    elif change == "blank":
        lines.insert(row, b"")
    elif change == "swap":
        random_.shuffle(lines)
    else:
        fields = lines[row].split(b"\t")
        del fields[random_.randrange(len(fields))]
        lines[row] = b"\t".join(fields)
    return b"\n".join(lines)


def _other_text(content: bytes, random_: random.Random) -> bytes:
    return random_.choice(
        [
            b"",
            b"\xef\xbb\xbf" + content,
            content.replace(b"\n", b"\r\n"),
            content.decode("latin-1").encode("utf-16"),
            content.decode("latin-1").encode("utf-8"),
            content.upper(),
            content.rstrip(b"\n"),
        ]
    )


_FAULTS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _cut, _flipped, _flipped, _overwritten, _without_a_piece, _with_a_token, _with_a_token,
    _with_another_number, _with_other_lines, _with_other_lines, _other_text,
)  # fmt: skip


def _lines(*rows: object) -> bytes:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()


def _stsb(rows: int) -> bytes:
    texts = 'A “quoted" man.\tB'
    return _lines(
        *(f"main-news\tfile\t2012\t{row}\t{row % 6}.0\t{texts}" for row in range(1, rows)),
        "main-forum\tdeft\t2014\t9\t4.2\tone\ttwo\tsource\tother",
    )


_STSB = _stsb(5)
_MRPC = _lines(
    "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
    *(f"{row % 2}\t{row}\t{row + 9}\tA man {row}.\tOne" for row in range(3)),
)
_SICK = _lines(
    "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment",
    *(f"{row}\tA man\tB\t{1 + row}.5\tNEUTRAL" for row in range(3)),
)
_ALL_OF_SICK = _lines(
    "pair_ID\tsentence_A\tsentence_B\tentailment_label\trelatedness_score\tx\tSemEval_set",
    *(f"{row}\tA\tB\tNEUTRAL\t3\ty\t{name}" for row, name in enumerate(["TRAIN", "TRIAL", "TEST"])),
)
_NLI = _lines(
    *({"gold_label": label, "sentence1": f"A man {label}.", "sentence2": "é", "pairID": "1"}
      for label in ("neutral", "-", "entailment", "contradiction"))
)  # fmt: skip
_NLI_TABLE = _lines("gold_label\tparse\tsentence1\tsentence2", "neutral\t(a)\tA.\tB", "-\t\tx\ty")
_PROBING = _lines(
    *(f"{split}\t{label}\tthe {label} text" for split in ("tr", "va", "te") for label in "ab")
)
_XML = (
    '<?xml version="1.0" encoding="utf-8"?>\r\n<xml version="1.0">\r\n'
    + "".join(
        f'<OrgQuestion ORGQ_ID="Q1"><OrgQSubject>a &amp; b</OrgQSubject><OrgQBody></OrgQBody>'
        f'<Thread><RelQuestion RELQ_ID="Q1_R{rank}" RELQ_RANKING_ORDER="{rank}" '
        f'RELQ_RELEVANCE2ORGQ="{label}"><RelQSubject>c</RelQSubject><RelQBody>d</RelQBody>'
        "</RelQuestion></Thread></OrgQuestion>\r\n"
        for rank, label in enumerate(["Relevant", "Irrelevant", "?"], 1)
    )
    + "</xml>\r\n"
).encode()
_RELEVANCY = _lines(*(f"Q1\tQ1_R{rank}\t{rank}\t0.5\ttrue" for rank in (1, 2, 3)))
_FEATURES = save({"features": np.arange(6, dtype=np.float32).reshape(2, 3)})
_CAPTIONS = json.dumps({"captions": [list("abcde")] * 2}).encode()
_GROUPS = _lines({"sentences": ["a", "b", ""]}, {"sentences": ["c", "d"], "id": 3})
_PAIRS = _lines(
    *({"sentence1": "a", "sentence2": "b", "label": row % 2} for row in range(4)),
)
_PREMISES = _lines(
    *({"premises": ["a", "b"], "sentence2": "c", "gold_label": "neutral"} for _ in range(3))
)


def _pickled(protocol: int) -> bytes:
    tree = {
        "features": np.arange(6, dtype=np.float32).reshape(2, 3),
        "image_to_caption_ids": {0: [0, 1], 1: [2, 3]},
        "captions": {row: {"cleaned_caption": f"a caption {row}"} for row in range(4)},
    }
    return pickle.dumps(tree, protocol)


def _zip() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("folder/", "")
        file.writestr("folder/a.txt", "text\n" * 9)
        file.writestr("b.txt", "more\n", zipfile.ZIP_STORED)
        file.writestr("c.txt", "more\n", zipfile.ZIP_BZIP2)
        file.writestr("d.txt", "more\n", zipfile.ZIP_LZMA)
    return memory.getvalue()


def _tar(form: int) -> bytes:
    memory = io.BytesIO()
    with tarfile.open(fileobj=memory, mode="w", format=form) as file:
        for name in ("folder/a.txt", "é" * 40, "b.txt"):
            entry = tarfile.TarInfo(name)
            entry.size = 10
            file.addfile(entry, io.BytesIO(b"text\ntext\n"))
    return memory.getvalue().rstrip(b"\0") + bytes(1024)


def _small(name: str, rows: int) -> DataSet:
    known = catalogue().sets[name]
    files = tuple(replace(file, rows=rows, letters="") for file in known.files)
    return replace(known, files=files)


_SMALL = [_small("mrpc", 3), _small("sick", 1), _small("snli", 3), _small("cqa17", 3),
          _small("stsb", 5), _small("mpqa", 2), _small("coco", 2)]  # fmt: skip
_LAYOUT = {
    "in/msr_paraphrase_train.txt": _MRPC,
    "in/x/SICK.txt": _ALL_OF_SICK,
    "in/snli_1.0_dev.jsonl": _NLI,
    "in/snli_1.0_train.txt": _NLI_TABLE,
    "in/SemEval2017-task3-English-test-input.xml": _XML,
    "in/SemEval2017-Task3-CQA-QL-test.xml.subtaskB.relevancy": _RELEVANCY,
    "in/sts-train.csv": _STSB,
    "in/mpqa.pos": b"good\nclich\xe9\n",
    "in/a.zip": _zip(),
    "in/train.pkl": _pickled(2),
}
_LIMITS = Limits(total=10_000_000, ratio=200, free=1_000_000, files=100)
_KINDS: Mapping[str, bytes] = {
    "sentences": b"the clichM-is M-^E more\nnext\n", "sst2": b"good\t1\nbad\t0\n",
    "sst5": b"0 good\n4 bad\n", "trec": b"LOC:city What is sister\xf0city ?\n", "mrpc": _MRPC,
    "sick": _SICK, "sts_input": b"a\tb\nc\td\te\n", "sts_gs": b"1\n\n4.25\n", "stsb": _STSB,
    "lines": b"a\nb\n", "nli_labels": b"neutral\n", "nli": _NLI, "cqa_xml": _XML,
    "cqa_gold": _RELEVANCY, "probing": _PROBING, "coco_features": _FEATURES,
    "coco_captions": _CAPTIONS, "pairs": b"a\tb\t(4, 6)\nc\td\t(1, 6)\n",
    "semrel": b'id,text,score\n1,"a\nb",0.5\n', "banking77": b'text,category\n"a, b",c\n',
    "clinc150": b'{"train": [["a", "b"]], "val": [], "test": [["c", "b"]]}',
    "askubuntu": b"1\t2\t2 3\t5.5 4.1\n", "askubuntu_texts": b"1\ta\tb\n",
}  # fmt: skip


def _form(kind: str, content: bytes) -> Case:
    return Case({"a": content}, lambda root: examine(content_of(root / "a"), root / "a", kind))


def _archive(name: str, content: bytes) -> Case:
    return Case({name: content}, lambda root: unpack(root / name, root / "into", _LIMITS))


def _packed(name: str, content: bytes) -> Case:
    return Case({name: content}, lambda root: read_bytes(root / name))


_MEMORY = json.dumps({
    "conversation": {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"dia_id": "D1:1", "speaker": "Ann", "text": "Hi!", "blip_caption": "a"}],
    },
    "qa": [{"question": "Who?", "category": 1, "evidence": ["D1:1; D9:17"]}],
}).encode()  # fmt: skip
_TEXT = _lines("A man is playing.", "two\tsentences", "")
CASES: Mapping[str, Case] = {
    "stsb": Case({"sts-dev.csv": _stsb(1_500)}, lambda root: read_stsb(root, "dev")),
    "sts_years": Case(
        {f"STS/STS12-en-test/STS.{kind}.{subset}.txt": content for subset in subset_files("sts12")
         for kind, content in (("input", b"a\tb\nc\td\n"), ("gs", b"1\n\n"))},
        lambda root: read_sts_year(root, 12),
    ),
    "sts_2017": Case(
        {file.path: content for files in subset_files("sts17").values()
         for file, content in zip(files, (b"a\tb\nc\td\n", b"1\n2\n"), strict=True)},
        read_sts_2017,
    ),
    "binary": Case({"MR/rt-polarity.pos": b"good\x85\n\n", "MR/rt-polarity.neg": b"bad\n"},
                   lambda root: read_binary(root, "MR")),
    **{f"sst{classes}": Case(
        {f"SST/{kind}/sentiment-{split}": content for split in ("train", "dev", "test")},
        lambda root, classes=classes: read_sst(root, classes),
    ) for classes, kind, content in ((2, "binary", b"good\t1\nbad\t0\n"),
                                     (5, "fine", b"0 good\n4 bad\n"))},
    "trec": Case({"TREC/train_5500.label": b"LOC:city Where ?\n",
                  "TREC/TREC_10.label": b"HUM:ind Who ?\n"}, read_trec),
    "probing": Case({"probing/tree_depth.txt": _PROBING}, lambda root: read_probing(root, "Depth")),
    "mrpc": Case({f"MRPC/msr_paraphrase_{split}.txt": _MRPC for split in ("train", "test")},
                 read_mrpc),
    "sick": Case({f"SICK/SICK_{split}.txt": _SICK for split in
                  ("train", "trial", "test_annotated")}, read_sick),
    "snli": Case({f"SNLI/{kind}.{split}": content for split in ("train", "dev", "test")
                  for kind, content in (("s1", b"a\nb\n"), ("s2", b"c\nd\n"),
                                        ("labels", b"neutral\nentailment\n"))}, read_snli),
    "snli_split": Case({"nli/snli_1.0_dev.jsonl": _NLI}, lambda root: read_snli_split(root, "dev")),
    "snli_table": Case({"nli/snli_1.0_dev.txt": _NLI_TABLE},
                       lambda root: read_snli_split(root, "dev")),
    "sick_in_one": Case({"SICK.txt": _ALL_OF_SICK},
                        lambda root: sick_splits(content_of(root / "SICK.txt"), root / "SICK.txt")),
    "cqa": Case({"cqa/SemEval2017-task3-English-test-input.xml": _XML,
                 "cqa/SemEval2017-Task3-CQA-QL-test.xml.subtaskB.relevancy": _RELEVANCY},
                lambda root: read_cqa(root, "2017", "test")),
    "coco": Case({"COCO/dev.safetensors": _FEATURES, "COCO/dev.json": _CAPTIONS},
                 lambda root: read_coco(root, "dev")),
    "memory": Case({"locomo/a.json": _MEMORY}, lambda root: read_conversations(root, "locomo")),
    "groups": Case({"a.jsonl": _GROUPS}, lambda root: read_groups(root / "a.jsonl")),
    "paraphrases": Case({"a.jsonl": _PAIRS}, lambda root: read_groups(root / "a.jsonl")),
    "inference": Case({"a.jsonl": _NLI}, lambda root: read_inference(root / "a.jsonl")),
    "leaks": Case({"a": _TEXT}, lambda root: list(read_rows(root / "a"))),
    "leaks_premises": Case({"a": _PREMISES}, lambda root: list(read_rows(root / "a"))),
    "leaks_stsb": Case({"a": _STSB}, lambda root: list(read_rows(root / "a", columns=2))),
    "leaks_packed": Case({"a": gzip.compress(_TEXT)}, lambda root: list(read_rows(root / "a"))),
    **{f"form_{kind}": _form(kind, content) for kind, content in _KINDS.items()},
    "zip": _archive("a.zip", _zip()),
    **{f"tar_{form}": _archive("a.tar", _tar(form))
       for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)},
    "tar_gz": _archive("a.tar.gz", gzip.compress(_tar(tarfile.PAX_FORMAT))),
    "tar_zst": _archive("a.tar.zst", zstandard.compress(_tar(tarfile.PAX_FORMAT))),
    "gz": _packed("a.gz", gzip.compress(_TEXT)),
    "bz2": _packed("a.bz2", bz2.compress(_TEXT)),
    "xz": _packed("a.xz", lzma.compress(_TEXT)),
    "zst": _packed("a.zst", zstandard.compress(_TEXT) * 2),
    **{f"pickle_{protocol}": Case({"a.pkl": _pickled(protocol)},
                                  lambda root: read_coco_pickle(root / "a.pkl"))
       for protocol in (0, 2, 4)},
    "add": Case(_LAYOUT, lambda root: add(_SMALL, [root / "in"], root / "data")),
    "list": Case(
        {f"data/{file.path}": _KINDS[file.kind] for one in _SMALL for file in one.files},
        lambda root: [presence(root / "data", one) for one in _SMALL],
    ),
}  # fmt: skip
"""By name: files of the real form, and what reads them."""


def read_damaged(name: str, random_: random.Random, folder: Path) -> object:
    """Write the damaged files of a case to an empty folder, and read them.

    Raises:
        RejoinderError: what a reader may raise; anything else is a fault of it.
    """
    case = CASES[name]
    for path, content in damaged_files(case.files, random_).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return case.read(folder)


def checker(folder: Path) -> Callable[[random.Random], bool]:
    """What checks the damaged files of a case drawn at random; true: they were read."""

    def checked(random_: random.Random) -> bool:
        root = folder / "case"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        try:
            read_damaged(random_.choice(list(CASES)), random_, root)
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            return False
        return True

    return checked
