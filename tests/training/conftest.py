"""Small runs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rejoinder.training.config import parse_config
from rejoinder.training.loop import Limits
from rejoinder.training.run import RunOptions, RunResult, begin, go_on, open_data
from runs import Listener, write_labelled

Run = Callable[..., tuple[RunResult, Listener]]


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_labelled(tmp_path_factory.mktemp("data"))


@pytest.fixture
def train(small_pairs: Path, labelled: Path) -> Run:
    """Begin a run at `out`, or with `resume` go on with it."""

    def call(
        tree: Mapping[str, Any],
        out: Path,
        *,
        resume: bool = False,
        stop_at: int | None = None,
        seconds: float | None = None,
        evaluate: Callable[[Any], Mapping[str, float]] | None = None,
        with_pairs: bool = True,
        pairs: Path = small_pairs,
    ) -> tuple[RunResult, Listener]:
        source = open_data(pairs if with_pairs else None, labelled)
        if not resume:
            config = parse_config(tree, "test")
            begin(config, source, out, overwrite=True, progress=lambda _done, _all: None)
        listener = Listener()
        options = RunOptions(Limits(stop_at, seconds), device="cpu", threads=1)
        result = go_on(
            out,
            source,
            options,
            evaluate=evaluate or (lambda encoder: {"norm": float(encoder.encode(["hi"]).sum())}),
            reporter=listener,
        )
        return result, listener

    return call
