"""The shipped list, from the evaluation sets themselves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rejoinder.datasets.inference import read_inference
from rejoinder.datasets.sts import ROWS, read_stsb
from rejoinder.errors import InputError
from rejoinder.leaks.hashes import joined, sentence_hashes
from rejoinder.leaks.sets import EvaluationSet, distinct
from rejoinder.text.normalize import as_series

Pair = tuple[str, str]

_YEARS = ("12", "13", "14", "15")


def build(data: Path) -> dict[str, EvaluationSet]:
    """The evaluation sets under `data`: the STS Benchmark in both its forms, STS, SNLI.

    Raises:
        InputError: a set is not there.
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
        read = read_inference(data / "nli" / f"snli_1.0_{split}.jsonl")
        pairs[f"snli-{split}"] = list(zip(read.premises, read.hypotheses, strict=True))
    return {name: _set(name, listed) for name, listed in pairs.items()}


def _set(name: str, pairs: Sequence[Pair]) -> EvaluationSet:
    first, second = (sentence_hashes(as_series(list(side))) for side in zip(*pairs, strict=True))
    return EvaluationSet(
        name, distinct(np.concatenate([first, second])), distinct(joined(first, second))
    )


def _columns(paths: Sequence[Path]) -> list[Pair]:
    """Both sentences of each line of `STS.input` files."""
    if not paths or not all(path.is_file() for path in paths):
        raise InputError(f"an STS set is not there: {paths or 'no STS.input files'}.")
    lines = [line for path in paths for line in path.read_text("utf-8").split("\n")]
    fields = [[*line.rstrip("\r").split("\t"), ""][:2] for line in lines if line.strip()]
    return [(first, second) for first, second in fields]
