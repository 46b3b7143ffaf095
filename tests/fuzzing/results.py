"""Results files that somebody edited or cut, their predictions too, hashes mended or not."""

import copy
import hashlib
import io
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

from fuzzing.models import mutated_bytes, mutated_tree
from rejoinder.errors import RejoinderError
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.evaluation.report import beside_published, compare, overview, write_report
from rejoinder.evaluation.results import Group, Result, open_results, read_results, write_results
from rejoinder.io.files.hashed import sealed

MAINS = {
    "accuracy": "mr/senteval", "map": "cqa-b/2016", "pearson": "stsb/cosine",
    "pearson_trained": "sick-r/senteval-regression", "pearson_weighted_mean": "sts12/cosine",
    "pearson_track5": "sts17/cosine", "recall_1_t2i": "coco/senteval", "P@1": "response/p@n",
    "P@1 of 100": "response/p@n of 100", "ndcg@10": "memory/locomo",
}  # fmt: skip
_NUMBERS = (0.0, -0.0, 1.0, 2.0, -1.0, 0.5, 1e-320, 1e308, -1e308, 1e200, float("nan"),
            float("inf"), float("-inf"))  # fmt: skip
_ROWS = 24


def made_up(main: str, encoder: str) -> Result:
    """A result whose scores follow from its items."""
    random = Random(f"{main}/{encoder}")
    gold = np.random.default_rng(1).integers(0, 2, _ROWS).astype(np.float64)
    predicted = np.array([random.choice((0.0, 1.0, 2.0)) for _ in range(_ROWS)])
    ids = [f"{('track5', 'b')[row % 2]}:{row}" for row in range(_ROWS)]
    folds = np.arange(_ROWS) % 3 if main == "accuracy" else None
    items = Items(ids, predicted, gold, [""] * _ROWS, folds)
    return Result(
        task=MAINS[main], split="test", n=_ROWS, main=main,
        scores={**metric_of(main).recompute(items), "dev": 50.0},
        intervals={main: (0.0, 1.0)}, groups={"g": Group(3, {"x": 1.0})}, seed=0,
        data={"sha256": "0" * 64}, encoder={"name": encoder, "max_tokens": None, "training": {}},
        settings={"seed": 0, "penalties": [1.0, 2.0]}, dtype="float32", date="2026-11-22",
        versions={"rejoinder": "1"}, machine={"platform": "x", "cores": 2},
        run={"encoder": encoder}, notes=("a note",),
        items=items,
    )  # fmt: skip


def mutated_results(random: Random, tree: Any, items: dict[str, bytes]) -> dict[str, bytes]:
    """The files of results with up to three faults; most are sealed anew."""
    tree, items = copy.deepcopy(tree), dict(items)
    signed = random.random() < 0.8
    for _ in range(random.choice((1, 1, 2, 3))):
        if random.random() < 0.6 or not items:
            tree = mutated_tree(random, tree)
            continue
        name = random.choice(sorted(items))
        if random.random() < 0.05:
            del items[name]
            continue
        whole = random.random() < 0.8
        items[name] = (mutated_items if whole else mutated_bytes)(random, items[name])
    if signed:
        tree = _resealed(tree, items)
    content = json.dumps(tree).encode()
    if random.random() < 0.05:
        content = random.choice((b"[" * 200_000, mutated_bytes(random, content)))
    return {**items, "results.json": content}


def mutated_items(random: Random, content: bytes) -> bytes:
    """The table of items with another value, column, type or number of rows."""
    try:
        frame = pl.read_parquet(io.BytesIO(content))
    except pl.exceptions.PolarsError:
        return mutated_bytes(random, content)
    name = random.choice(frame.columns) if frame.columns else "id"
    match random.randrange(8):
        case 0 if frame.columns:
            frame = frame.drop(name)
        case 1 if frame.columns:
            new = random.choice(("fold", "other", "id", ""))
            frame = frame.drop(new, strict=False) if new != name else frame
            frame = frame.rename({name: new})
        case 2:
            kind = random.choice((pl.String, pl.Int64, pl.Float32, pl.Null, pl.Boolean, pl.Binary))
            frame = frame.with_columns(
                pl.lit(None if kind == pl.Null else 1).cast(kind).alias(name)
            )
        case 3:
            frame = frame.head(random.choice((0, 1, 2, len(frame) - 1)))
        case 4:
            frame = pl.concat([frame, frame.head(1)])
        case 5:
            values = [random.choice(("", "a:1", ":", "é", "\0")) for _ in range(len(frame))]
            frame = frame.with_columns(pl.Series("id", values, dtype=pl.String))
        case _:
            column = random.choice(("prediction", "gold", "fold"))
            numbers = random.choices(_NUMBERS, k=len(frame))
            if random.random() < 0.7 and frame.schema.get(column) == pl.Float64 and len(frame):
                numbers = frame[column].to_list()
                numbers[random.randrange(len(numbers))] = random.choice((*_NUMBERS, None))
            frame = frame.with_columns(pl.Series(column, numbers, dtype=pl.Float64))
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _items(frame: pl.DataFrame) -> Items:
    folds = frame["fold"].to_numpy() if "fold" in frame.columns else None
    numbers = (frame[name].to_numpy() for name in ("prediction", "gold"))
    return Items(frame["id"].to_list(), *numbers, [""] * len(frame), folds)


def _resealed(tree: Any, items: dict[str, bytes]) -> Any:
    """The tree with hashes, numbers of items and scores that fit, as far as it has any."""
    rows = tree.get("results") if isinstance(tree, dict) else None
    if not isinstance(rows, list):
        return tree
    shared = tree.get("shared")
    shared = shared if isinstance(shared, dict) else {}
    return {
        **tree,
        "results": [_row(row, shared, items) if isinstance(row, dict) else row for row in rows],
    }


def _row(row: dict[str, Any], shared: dict[str, Any], items: dict[str, bytes]) -> dict[str, Any]:
    predictions = row.get("predictions")
    if isinstance(predictions, dict):
        content = items.get(str(predictions.get("file")))
        if content is not None and "sha256" in predictions:
            predictions["sha256"] = hashlib.sha256(content).hexdigest()
            try:
                frame = pl.read_parquet(io.BytesIO(content))
                row["n"] = len(frame)
                with np.errstate(all="ignore"):
                    found = metric_of(row["main"]).recompute(_items(frame))
                row["scores"] |= {name: value for name, value in found.items() if value == value}
            except Exception:  # noqa: S110 -- they fit nothing; the reader has to say so
                pass
    own = {name: value for name, value in row.items() if name != "sha256"}
    parts = {
        part: same | own.get(part, {})
        for part, same in shared.items()
        if isinstance(same, dict) and isinstance(own.get(part, {}), dict)
    }
    return {**own, "sha256": sealed(own | parts)["sha256"]}


def checker(folder: Path) -> Callable[[Random], bool]:
    """What reads changed results, compares and reports them; true: they are results."""
    mains = list(MAINS)
    written = {}
    for main in mains:
        path = folder / main / "results.json"
        path.parent.mkdir(parents=True)
        other = [m for m in mains if m != main][:1]
        write_results(path, [made_up(one, "mine") for one in (main, *other)])
        write_results(path.with_name("other.json"), [made_up(one, "other") for one in (main,)])
        tree = json.loads(path.read_text())
        below = path.parent / "results.predictions"
        items = {f"{below.name}/{file.name}": file.read_bytes() for file in below.iterdir()}
        written[main] = tree, items, path.with_name("other.json")
    edited = folder / "edited"

    def checked(random: Random) -> bool:
        tree, items, other = written[random.choice(mains)]
        shutil.rmtree(edited, ignore_errors=True)
        for name, content in mutated_results(random, tree, items).items():
            (edited / name).parent.mkdir(parents=True, exist_ok=True)
            (edited / name).write_bytes(content)
        path = edited / "results.json"
        try:
            results = read_results(path)
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
            return False
        _use(random, path, other, results)
        return True

    return checked


def _use(random: Random, path: Path, other: Path, results: list[Result]) -> None:
    for table in (overview([results]), *beside_published([results])):
        table.markdown().encode("utf-8", "replace")
    try:
        for one in compare(path, other).tasks:
            assert 0 <= one.p <= 1, one
            assert np.isfinite([one.first, one.second, *one.interval]).all(), one
    except RejoinderError as error:
        assert "\n" not in str(error)  # noqa: PT017 -- one sentence
    with open_results(path) as held:
        with suppress(RejoinderError):  # they may be of another encoder
            held.keep({"name": "mine"}, overwrite=False)
        write_results(path, results)
    assert read_results(path) == results
    if random.random() < 0.03:
        try:
            write_report([path], path.with_name("report"))
        except RejoinderError as error:
            assert "\n" not in str(error)  # noqa: PT017 -- one sentence
