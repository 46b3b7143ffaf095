"""Configurations of small runs, and one who listens to them."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DAN: dict[str, Any] = {
    "text": {"min_count": 2, "bigram_buckets": 500},
    "encoder": {"kind": "dan", "width": 16, "layers": [16, 12], "residual": True},
    "head": {"layers": [12], "residual": True},
    "objective": {
        "scale": 5.0,
        "learn_scale": True,
        "mask_duplicates": True,
        "word_dropout": 0.1,
    },
    "optimizer": {"dense": "adam", "table": "adagrad"},
    "training": {"log_every": 5, "evaluate_every": 10},
    "phases": [
        {"steps": 12, "batch_size": 64, "learning_rate": 0.01, "warmup_steps": 3},
        {"steps": 8, "batch_size": 96, "learning_rate": 0.003, "decay": "linear"},
    ],
}
TRANSFORMER: dict[str, Any] = {
    **DAN,
    "text": {"kind": "subwords", "max_words": 400, "max_tokens": 24},
    "encoder": {
        "kind": "transformer",
        "layers": 2,
        "heads": 2,
        "hidden": 16,
        "filter": 24,
        "dim": 12,
        "dropout": 0.1,
    },
    "objective": {"scale": 5.0},
    "optimizer": {"dense": "sgd"},
}
BILSTM: dict[str, Any] = {
    **DAN,
    "text": {"min_count": 2},
    "encoder": {"kind": "bilstm", "width": 16, "hidden": 10, "dim": 12, "max_tokens": 24},
}
MULTITASK: dict[str, Any] = {
    **DAN,
    "entailment": {"hidden": 10},
    "tasks": [
        {"objective": "responses", "share": 0.3},
        {
            "objective": "entailment",
            "share": 0.2,
            "data": ["nli.jsonl"],
            "batch_size": 16,
            "word_dropout": 0.0,
        },
        {"objective": "entailment-ranking", "share": 0.2, "data": ["nli.jsonl"], "batch_size": 16},
        {
            "objective": "paraphrase",
            "share": 0.2,
            "data": ["groups.jsonl"],
            "batch_size": 8,
        },
        {
            "objective": "paraphrase",
            "name": "again",
            "share": 0.1,
            "data": ["groups.jsonl", "duplicates.jsonl"],
            "batch_size": 8,
            "power": 0.5,
            "retrofit": True,
        },
    ],
    "training": {**DAN["training"], "row_init": "cooccurrence", "nested_dims": [4]},
}
SMALL_ENCODERS: dict[str, dict[str, Any]] = {
    str(tree["encoder"]["kind"]): tree["encoder"] for tree in (DAN, TRANSFORMER, BILSTM)
}
"""Small sizes of every encoder kind, for the contract that all kinds must keep."""
KINDS = {
    "dan": DAN,
    "transformer": TRANSFORMER,
    "bilstm": BILSTM,
    "multitask": MULTITASK,
}


def small_run(encoder: str, **tables: Any) -> dict[str, Any]:
    """The config of a small run of an encoder kind, with some of its tables replaced."""
    return {**KINDS[encoder], **tables}


def same_files(one: Path, other: Path) -> bool:
    """Whether two folders hold the same files with the same bytes."""
    contents = [
        {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }
        for folder in (one, other)
    ]
    return contents[0] == contents[1] and bool(contents[0])


def write_labelled(folder: Path) -> Path:
    """Small files of labelled sentences, about nothing."""
    subjects = ["A man", "A dog", "The old lady", "A child", "Somebody", "The driver", "A cook"]
    acts = [("is sleeping", "is awake"), ("runs fast", "stands still"), ("eats", "never eats")]
    nli = []
    for subject in subjects:
        for act, other in acts:
            for place in ("outside", "at home"):
                premise = f"{subject} {act} {place}."
                for label, hypothesis in (
                    ("entailment", f"{subject} {act}."),
                    ("contradiction", f"{subject} {other}."),
                    ("neutral", f"{subject} is sad."),
                    ("-", "Nobody agreed."),
                ):
                    nli.append({"gold_label": label, "sentence1": premise, "sentence2": hypothesis})
    groups = [
        {"sentences": [f"{subject} {act} {place}" for place in ("now", "today", "again")]}
        for subject in subjects
        for act, _ in acts
    ]
    people = ["he", "she", "it", "the man", "the dog", "your aunt", "Tom", "Ann"]
    pairs = [
        {
            "sentence1": f"How old is {who}?",
            "sentence2": f"What is the age of {who}?",
            "label": int(number % 3 > 0),
        }
        for number, who in enumerate(people)
    ]
    for name, rows in (("nli", nli), ("groups", groups), ("duplicates", pairs)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, "utf-8")
    return folder


class Listener:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.metrics: list[tuple[int, dict[str, float]]] = []
        self.scores: list[tuple[int, dict[str, float]]] = []
        self.paths: list[Path] = []

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        self.metrics.append((step, dict(metrics)))

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        self.scores.append((step, dict(scores)))

    def saved(self, step: int, path: Path) -> None:
        self.paths.append(path)
