"""Builds the shipped list of hashes from the evaluation sets."""

from collections.abc import Sequence
from pathlib import Path

from rejoinder.datasets.inference import read_inference
from rejoinder.datasets.sts import ROWS, read_stsb
from rejoinder.errors import InputError
from rejoinder.leaks.hashes import combined_hashes, sentence_hashes
from rejoinder.leaks.sets import EvaluationSet, distinct
from rejoinder.text.normalize import as_series

Pair = tuple[str, str]

_YEARS = ("12", "13", "14", "15")


def build(data: Path) -> dict[str, EvaluationSet]:
    """Returns the hashes of the evaluation sets below `data`, by the name of the set.

    The sets are the STS Benchmark (as published and as in SentEval), STS 2012 to 2017, and SNLI's
    dev and test.

    Raises:
        InputError: a set is missing or damaged.
    """
    pairs: dict[str, list[Pair]] = {}
    for split in ROWS:
        forms = [read_stsb(data, split, form) for form in ("official", "senteval")]
        pairs[f"stsb-{split}"] = [
            pair for form in forms for pair in zip(form.first, form.second, strict=True)
        ]
    for year in _YEARS:
        folder = data / "senteval" / "downstream" / "STS" / f"STS{year}-en-test"
        pairs[f"sts{year}"] = _columns(sorted(folder.glob("STS.input.*.txt")))
    pairs["sts2017"] = _columns([data / "sts2017" / "STS.input.track5.en-en.txt"])
    for split in ("dev", "test"):
        snli = read_inference(data / "nli" / f"snli_1.0_{split}.jsonl")
        pairs[f"snli-{split}"] = list(zip(snli.premises, snli.hypotheses, strict=True))
    return {name: _set(name, listed) for name, listed in pairs.items()}


def _set(name: str, pairs: Sequence[Pair]) -> EvaluationSet:
    first, second = (sentence_hashes(as_series(list(side))) for side in zip(*pairs, strict=True))
    return EvaluationSet(name, distinct(first, second), distinct(combined_hashes(first, second)))


def _columns(paths: Sequence[Path]) -> list[Pair]:
    """Reads both sentences of each line of `STS.input` files."""
    if not paths or not all(path.is_file() for path in paths):
        raise InputError(f"an STS set is missing: {paths or 'no STS.input files'}.")
    lines = [line for path in paths for line in path.read_text("utf-8").split("\n")]
    fields = [[*line.rstrip("\r").split("\t"), ""][:2] for line in lines if line.strip()]
    return [(first, second) for first, second in fields]
