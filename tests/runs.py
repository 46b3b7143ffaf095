"""Configurations of small runs, and one who listens to them."""

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
    "training": {"log_every": 5, "evaluate_every": 10, "evaluate_pairs": 50, "window_pairs": 1_000},
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
KINDS = {"dan": DAN, "transformer": TRANSFORMER, "bilstm": BILSTM}


class Listener:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.metrics: list[tuple[int, dict[str, float]]] = []
        self.scores: list[tuple[int, dict[str, float]]] = []
        self.places: list[Path] = []

    def step(self, step: int, metrics: Mapping[str, float]) -> None:
        self.metrics.append((step, dict(metrics)))

    def evaluation(self, step: int, scores: Mapping[str, float]) -> None:
        self.scores.append((step, dict(scores)))

    def saved(self, step: int, place: Path) -> None:
        self.places.append(place)
