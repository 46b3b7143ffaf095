"""Run folders that somebody damaged or edited: resumed to the same bytes, or refused."""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

from fuzzing.models import mutated_bytes, mutated_lines, mutated_tensors, mutated_tree
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import RejoinderError
from rejoinder.io.files.hashed import sealed
from rejoinder.training.config.loading import load_config, parse_config
from rejoinder.training.data.preparation import Data
from rejoinder.training.loop import checkpoint
from rejoinder.training.loop.checkpoint import read_start
from rejoinder.training.loop.loop import Limits
from rejoinder.training.loop.run import begin, go_on
from runs import Listener

Files = Mapping[str, bytes | None]
"""The files of a run by path; None means that a folder has its name."""

DUMP = Path(__file__).resolve().parents[2] / "examples" / "small.jsonl"
STEPS, STOPPED = 6, 4
CONFIG: dict[str, Any] = {
    "text": {"min_count": 2, "bigram_buckets": 20, "max_words": 50},
    "encoder": {"kind": "dan", "width": 4, "layers": [4, 3]},
    "head": {"layers": [3]},
    "objective": {"word_dropout": 0.1},
    "export": {"dtype": "float32"},
    "training": {"log_every": 1, "evaluate_every": 2, "checkpoint_every": 2},
    "phases": [{"steps": STEPS, "batch_size": 8, "learning_rate": 0.01}],
}  # fmt: skip
_LOG = (b"", b"{}", b"[]", b'{"step": NaN}', b'{"step": "2"}', b'{"step": []}', b"\xff",
        b"[" * 9_000, b'{"step": 1e999}', b'{"step": ' + b"9" * 5_000 + b"}", b"5",
        b"null", b'{"step": 1')  # fmt: skip
_NAMES = ("step-", "step-x", "step-00", "step-3", "step-04", "step-5", "step-6", "step-999",
          "step--1", f"step-{10**17}", f"step-{10**30}", "step-4 ", "step-²", "other")  # fmt: skip


def mutated_run(random: Random, files: Files) -> tuple[Files, bool]:
    """The files of a run with one or two faults, and whether their hashes were mended."""
    signed = random.random() < 0.4
    for _ in range(random.choice((1, 1, 2))):
        files = _mutated(random, dict(files), signed=signed)
    return files, signed


def _mutated(random: Random, files: dict[str, bytes | None], *, signed: bool) -> Files:
    draw = random.random()
    if draw < 0.12:
        return _with_other_folder(random, files)
    name = random.choice(sorted(files))
    if draw < 0.5:
        jsons = [name for name in files if name.endswith((".json", ".jsonl"))]
        name = random.choice(sorted(jsons) or [name])
    content = files[name]
    if draw > 0.97 or content is None:
        files[name] = None
        return files
    if draw > 0.93:
        del files[name]
        return files
    files[name] = _other(random, name, content)
    return _mended(files, name) if signed else files


def _other(random: Random, name: str, content: bytes) -> bytes:
    if name.endswith(".jsonl"):
        lines = content.split(b"\n")
        lines.insert(random.randrange(len(lines)), random.choice(_LOG))
        return b"\n".join(lines)
    if random.random() < 0.2:
        return mutated_bytes(random, content)
    if name.endswith(".json"):
        if random.random() < 0.02:
            return b"[" * 200_000
        try:
            return json.dumps(mutated_tree(random, json.loads(content))).encode()
        except (ValueError, RecursionError):
            return mutated_bytes(random, content)
    if name.endswith(".safetensors"):
        return mutated_tensors(random, content)
    return mutated_lines(random, content)


def _with_other_folder(random: Random, files: dict[str, bytes | None]) -> Files:
    """A folder of a checkpoint renamed, copied or removed."""
    if random.random() < 0.2:
        stray = random.choice(("model", "checkpoints", "vocabulary", ".sweep"))
        kept = {name: content for name, content in files.items() if name.split("/")[0] != stray}
        return {**kept, stray: random.choice((b"a file", None))}
    folders = sorted({name.rpartition("/")[0] for name in files if "/step-" in name})
    if not folders:
        return files
    old = random.choice(folders)
    parent = old.rpartition("/")[0]
    new = f"{parent}/{random.choice(_NAMES)}"
    if random.random() < 0.3:
        new = random.choice(folders)
    moved = {f"{new}/{name.rpartition('/')[2]}": content for name, content in files.items()
             if name.startswith(f"{old}/")}  # fmt: skip
    kept = {name: content for name, content in files.items() if not name.startswith(f"{old}/")}
    match random.randrange(4):
        case 0:
            return kept
        case 1:
            return {**files, **moved}
        case 2:
            return {**kept, old: b"a file"}
    return {**kept, **moved}


def _mended(files: dict[str, bytes | None], name: str) -> Files:
    """The files with the hashes of one of them, and of the lists that name it, made to fit."""
    content = files[name] or b""
    for listing in [path for path in files if path.endswith(".json")]:
        folder = listing.rpartition("/")[0]
        try:
            tree = json.loads(files[listing] or b"")
        except (ValueError, RecursionError):
            continue
        if not isinstance(tree, dict):
            continue
        below = name.removeprefix(f"{folder}/") if folder else name
        if isinstance(tree.get("files"), dict) and below in tree["files"]:
            facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            tree["files"][below] = facts
        tree.pop("sha256", None)
        files[listing] = json.dumps(sealed(tree)).encode()
    return files


def contents(folder: Path) -> dict[str, bytes | None]:
    """The files below a folder by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _laid_out(files: Files, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        place = folder / name
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                place.mkdir(exist_ok=True)
            else:
                place.write_bytes(content)
        except OSError:
            continue  # two faults that exclude each other: a file where a folder has to be


class TinyRun:
    """A run of six steps that was stopped after four, and what came of it in the end."""

    def __init__(self, folder: Path) -> None:
        """Train it in `folder`."""
        extract([DUMP], folder / "pairs", split=(80.0, 10.0, 10.0))
        self.data = Data(open_pairs(folder / "pairs"))
        self.folder = folder / "damaged"
        begun, self.config = folder / "run", parse_config(CONFIG, "a tree")
        begin(self.config, self.data, begun, overwrite=True, progress=lambda _done, _all: None)
        self._resume(begun, Limits(stop_at=STOPPED))
        self.files: Files = contents(begun)
        self._resume(begun, Limits())
        self.model = contents(begun / "model")

    def read(self, files: Files) -> None:
        """Read what a resumed run reads first: its start and its last checkpoint."""
        _laid_out(files, self.folder)
        config = load_config(self.folder / "config.toml")
        read_start(self.folder, self.data, config)
        saved = checkpoint.latest(self.folder)
        if saved is not None:
            checkpoint.load(saved, config)

    def resumed(self, files: Files) -> dict[str, bytes | None]:
        """The model that comes of going on in a folder of these files."""
        _laid_out(files, self.folder)
        self._resume(self.folder, Limits())
        return contents(self.folder / "model")

    def _resume(self, run: Path, limits: Limits) -> None:
        scores = lambda encoder: {"score": float(encoder.encode(["you are"]).sum())}  # noqa: E731
        go_on(
            run,
            self.data,
            limits,
            evaluate=scores,
            reporter=Listener(),
            device="cpu",
            threads=1,
        )


def check(run: TinyRun, random: Random, *, whole: float = 0.3) -> bool:
    """Resume a changed run; true: it was resumed.

    A share `whole` of those that can be read is resumed to the end: to the same bytes, unless the
    hashes were mended, or the config is another that may be (its name, its export).
    """
    files, signed = mutated_run(random, run.files)
    try:
        run.read(files)
        if random.random() < whole:
            model = run.resumed(files)
            other_config = files.get("config.toml") != run.files["config.toml"]
            assert signed or other_config or model == run.model, "another model came out"
    except RejoinderError as error:
        assert "\n" not in str(error) or "config" in str(error)  # noqa: PT017
        return False
    return True


def checker(folder: Path) -> Callable[[Random], bool]:
    """What resumes one changed run."""
    run = TinyRun(folder)
    return lambda random: check(run, random)
