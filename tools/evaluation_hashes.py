"""Writes the shipped list of hashes of evaluation sentences.

python tools/evaluation_hashes.py ../shared/data src/rejoinder/data
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from safetensors.numpy import save

from rejoinder.datasets.groups import read_groups, read_inference
from rejoinder.datasets.labelled import (
    read_binary,
    read_mrpc,
    read_pairs,
    read_sst,
    read_translations,
    read_trec,
)
from rejoinder.datasets.leaks import (
    PAIRS,
    EvaluationHashes,
    Hashes,
    combined_hashes,
    distinct,
    no_hashes,
    sentence_hashes,
)
from rejoinder.datasets.semeval import (
    ROWS,
    RelatedQuestions,
    read_cqa,
    read_semrel,
    read_stsb,
    subset_files,
)
from rejoinder.errors import InputError
from rejoinder.evaluation.tasks.ranking import LANGUAGES
from rejoinder.io.files.atomic import write_bytes
from rejoinder.text.columns import as_series

Pair = tuple[str, str]

_YEARS = ("12", "13", "14", "15")
_SPLITS = ("dev", "test")
_SEMREL = (("en", "dev"), ("es", "dev"), ("ar", "dev"), ("ar", "test"))
_TESTED = {"banking77": 40, "clinc150": 30}
"""Number of questions of each intent that are test. They are the last ones of lists by intent."""
_FILES = {
    "_languages": ("sts2017-languages", "flores200"),
    "_newer": (
        *(f"semrel-{language}-{split}" for language, split in _SEMREL),
        "twitter-url-test",
        *(f"{name}-test" for name in _TESTED),
    ),
}
"""Sets in files apart, by how the names of these end: so a new set changes a small file."""
_PARTS = ("subject", "body", "both")
"""Parts of a question that are embedded for CQA; a training text may be any of them."""
_SPLIT_WORDS = re.compile(
    r" (?=n't\b)|(?<=\bcan) (?=not\b)|(?<=\bgon|\bwan) (?=na\b)|(?<=\bgot) (?=ta\b)"
)
"""The spaces that tokens of the Penn Treebank put into words: `do n't`, `can not`, `gon na`."""
_ESCAPED = re.compile(r"M-(\^?)([ -~])")
"""A byte from 128 on as `cat -v` writes it, which is how MR and SUBJ were published."""


def build(data: Path) -> dict[str, EvaluationHashes]:
    """Returns the hashes of the evaluation sets below `data`, by the name of the set.

    The sets are the STS Benchmark (as published and as in SentEval), STS 2012 to 2015 and 2017,
    SNLI, MRPC, CQA 2016, MR, CR, SUBJ, SST-2 and TREC; of several languages all other tracks of
    STS 2017 and the devtest of FLORES-200; and SemRel, Twitter URL, Banking77 and CLINC150. Of sets
    with published splits only dev and test are in the list, and of the STS Benchmark train too. Not
    in it, because their files were not there: AskUbuntu, Sprint, and SemRel's test in English and
    Spanish. At most 12 questions of Banking77 and 7 of CLINC150 are missing, those that test
    repeats from train: the lists by intent have them once.

    Raises:
        InputError: a set is missing or damaged.
    """
    of_pairs = {name: _of_pairs(name, pairs) for name, pairs in _pairs(data).items()}
    return of_pairs | {name: _of_sentences(name, texts) for name, texts in _sentences(data).items()}


def _pairs(data: Path) -> dict[str, list[Pair]]:
    pairs: dict[str, list[Pair]] = {}
    for split in ROWS:
        forms = [read_stsb(data, split, form) for form in ("official", "senteval")]
        pairs[f"stsb-{split}"] = [
            pair for form in forms for pair in zip(form.first, form.second, strict=True)
        ]
    for year in _YEARS:
        folder = data / "senteval" / "downstream" / "STS" / f"STS{year}-en-test"
        pairs[f"sts{year}"] = _columns(sorted(folder.glob("STS.input.*.txt")))
    tracks = {name: data / file.path for name, (file, _) in subset_files("sts17").items()}
    pairs["sts2017"] = _columns([tracks.pop("track5")])
    pairs["sts2017-languages"] = _columns(list(tracks.values()))
    for split in _SPLITS:
        snli = read_inference(data / "nli" / f"snli_1.0_{split}.jsonl")
        pairs[f"snli-{split}"] = list(zip(snli.premises, snli.hypotheses, strict=True))
        pairs[f"cqa2016-{split}"] = _questions(read_cqa(data, "2016", split).queries)
    mrpc = read_mrpc(data).splits["test"]
    pairs["mrpc-test"] = list(zip(mrpc.first, mrpc.second, strict=True))
    tweets = read_pairs(data, "twitter-url").splits["test"]
    pairs["twitter-url-test"] = list(zip(tweets.first, tweets.second, strict=True))
    for language, split in _SEMREL:
        related = read_semrel(data, language, split)
        pairs[f"semrel-{language}-{split}"] = list(zip(related.first, related.second, strict=True))
    return pairs


def _sentences(data: Path) -> dict[str, list[str]]:
    texts = {name: read_binary(data, name.upper()).splits["all"] for name in ("mr", "cr", "subj")}
    texts |= {f"sst2-{split}": read_sst(data, classes=2).splits[split] for split in _SPLITS}
    texts["trec-test"] = read_trec(data).splits["test"]
    flores = read_translations(data, ("en", *LANGUAGES)).texts
    found = {name: split.first for name, split in texts.items()}
    found["flores200"] = [text for column in flores.values() for text in column]
    for name, count in _TESTED.items():
        groups = read_groups(data / "paraphrases" / f"{name}_groups.jsonl")
        found[f"{name}-test"] = [
            text for row in range(len(groups)) for text in groups[row][-count:]
        ]
    return found


def _questions(queries: Iterable[RelatedQuestions]) -> list[Pair]:
    """Pairs each part of an original question with that of each related one."""
    return [
        (query.original.text(part), related.text(part))
        for query in queries
        for related in query.related
        for part in _PARTS
    ]


def _of_sentences(name: str, texts: Sequence[str]) -> EvaluationHashes:
    forms = [*texts, *map(_untokenised, texts)]
    return EvaluationHashes(name, distinct(sentence_hashes(as_series(forms))), no_hashes())


def _untokenised(text: str) -> str:
    """Returns a text as its author wrote it, as far as letters, digits and spaces go.

    >>> _untokenised("a clichM-i that does n't work")
    "a cliché that doesn't work"
    """
    return _SPLIT_WORDS.sub("", _ESCAPED.sub(_unescaped, text))


def _unescaped(match: re.Match[str]) -> str:
    code = ord(match[2]) ^ (64 if match[1] else 0)
    return chr(code + 128)


def _of_pairs(name: str, pairs: Sequence[Pair]) -> EvaluationHashes:
    first, second = (sentence_hashes(as_series(list(side))) for side in zip(*pairs, strict=True))
    return EvaluationHashes(name, distinct(first, second), distinct(combined_hashes(first, second)))


def _columns(paths: Sequence[Path]) -> list[Pair]:
    """Reads both sentences of each line of `STS.input` files."""
    if not paths or not all(path.is_file() for path in paths):
        raise InputError(f"an STS set is missing: {paths or 'no STS.input files'}.")
    lines = [line for path in paths for line in path.read_text("utf-8").split("\n")]
    fields = [[*line.rstrip("\r").split("\t"), ""][:2] for line in lines if line.strip()]
    return [(first, second) for first, second in fields]


def _tensors(sets: Mapping[str, EvaluationHashes]) -> dict[str, Hashes]:
    """Returns the tensors of the shipped file."""
    return {name: hashes.sentences for name, hashes in sets.items()} | {
        PAIRS + name: hashes.pairs for name, hashes in sets.items()
    }


if __name__ == "__main__":
    sets, folder = build(Path(sys.argv[1])), Path(sys.argv[2])
    for end, names in {**_FILES, "": tuple(sets.keys() - set(chain(*_FILES.values())))}.items():
        own = {name: each for name, each in sets.items() if name in names}
        write_bytes(folder / f"evaluation_hashes{end}.safetensors", save(_tensors(own)))
