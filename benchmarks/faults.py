"""Kills commands at random moments, runs them again, and compares the bytes at the end.

python benchmarks/faults.py --kills 40 --sts ../shared/data/raw/STSBenchmark

Extract, train, encode, adapt and evaluate are each run once without a fault, and then killed at a
random moment (SIGKILL, SIGTERM or SIGINT), once or twice, and run again until they end with status
0. Their outputs must then have the same bytes, and no hidden or temporary file may be left.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIES = 12
"""Copies of the small dump: a command should take longer than its start."""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CONFIG = """
[text]
min_count = 2
[encoder]
kind = "dan"
width = 64
layers = [64]
[head]
layers = [64]
[training]
log_every = 10
checkpoint_every = 20
evaluate_every = 40
[export]
weights = "best"
[[phases]]
steps = 200
batch_size = 128
learning_rate = 0.01
"""


@dataclass(frozen=True)
class Command:
    """A command to kill: its words, and what it leaves."""

    words: tuple[str, ...]
    out: str
    """The output, below the folder of the trial."""
    files: Callable[[Path], dict[str, str]]
    """Digests of what must be the same at the end, of the output."""
    again: Callable[[Path], tuple[str, ...]] = lambda _out: ()
    """Words to add when it is run again, of the output as the kill left it."""


def digests(out: Path) -> dict[str, str]:
    """SHA-256 of every file of an output."""
    files = [out] if out.is_file() else sorted(path for path in out.rglob("*") if path.is_file())
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def trained(run: Path) -> dict[str, str]:
    """Of a run: the model, and the tensors of the last checkpoint."""
    last = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    names = ("weights.safetensors", "optimizer.safetensors")
    tensors = {name: digest for name, digest in digests(last).items() if name in names}
    return digests(run / "model") | tensors


def scored(path: Path) -> dict[str, str]:
    """Of a file of results: scores, intervals and predictions, without dates and seconds."""
    results = json.loads(path.read_text("utf-8"))["results"]
    keep = ("task", "split", "n", "scores", "intervals", "groups", "predictions")
    tree = [{key: result[key] for key in keep} for result in results]
    tree.sort(key=lambda result: (result["task"], result["split"]))
    return {"results": json.dumps(tree, sort_keys=True)}


def commands(base: Path, sts: Path | None) -> dict[str, Command]:
    """The commands, which read what is prepared in `base`."""
    run, pairs, text = base / "run", base / "pairs", base / "texts.txt"
    found = {
        "extract": Command(
            ("extract", str(base / "dump.jsonl"), "--memory", "200MB"), "pairs", digests
        ),
        "train": Command(
            ("train", "--config", str(base / "c.toml"), "--pairs", str(pairs), "--threads", "1"),
            "run",
            trained,
            lambda out: ("--resume",) if (out / "manifest.json").is_file() else (),
        ),
        "encode": Command(
            ("encode", "--model", str(run / "model"), "--sentences", str(text)),
            "e.parquet",
            digests,
            lambda out: ("--overwrite",) if out.exists() else ("--resume",),
        ),
        "evaluate": Command(
            (
                *("evaluate", str(run / "model"), "--pairs", str(pairs)),
                *("--tasks", "response,stsb,cqa" if sts else "response", "--skip-missing"),
                *(("--data", str(sts)) if sts else ()),
            ),
            "r.json",
            scored,
        ),
    }
    if sts is not None:
        words = ("adapt", str(run / "model"), "--sts", str(sts))
        found["adapt"] = Command(words, "adapted", digests)
    return found


def prepare(base: Path) -> None:
    """The dump, pairs, model and texts that the commands read."""
    comments = []
    for line in (ROOT / "examples" / "small.jsonl").read_text("utf-8").splitlines():
        with suppress(ValueError):  # some lines of it are malformed on purpose
            comments.append(json.loads(line))
    with (base / "dump.jsonl").open("w", encoding="utf-8") as file:
        for number in range(COPIES):
            for comment in comments:
                ids = {key: comment[key] for key in ("id", "parent_id", "link_id")}
                copy = {key: f"{value}n{number}" for key, value in ids.items() if value}
                file.write(json.dumps(comment | copy) + "\n")
    (base / "c.toml").write_text(CONFIG, "utf-8")
    texts = [" ".join(comment["body"].split()) for comment in comments]
    (base / "texts.txt").write_text("".join(f"{text}\n" for text in texts * 40), "utf-8")
    ready = commands(base, None)
    for name in ("extract", "train"):
        status, said = call(ready[name], base, ())
        if status:
            sys.exit(f"{name} failed without a fault: {said}")


def start(command: Command, folder: Path, more: tuple[str, ...]) -> subprocess.Popen[str]:
    """The command in a process of its own, in `folder`, with a TMPDIR of its own."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "rejoinder", *command.words]
    return subprocess.Popen(
        [*words, "--out", str(folder / command.out), *more],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def call(command: Command, folder: Path, more: tuple[str, ...]) -> tuple[int, str]:
    """Run a command to its end; its status and what it said on standard error."""
    process = start(command, folder, more)
    _, said = process.communicate()
    return process.returncode, said


def killed(command: Command, folder: Path, seconds: float, number: signal.Signals) -> int | None:
    """Run a command and send a signal after some seconds; none where it had ended before."""
    process = start(command, folder, command.again(folder / command.out))
    try:
        process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        process.communicate()
        return process.returncode
    return None


def leftovers(folder: Path) -> list[str]:
    """Hidden files and what lies in the temporary folder, but for torch's own folder of caches."""
    hidden = [path for path in folder.rglob("*") if path.name.startswith(".")]
    temporary = [
        path for path in (folder / "tmp").iterdir() if not path.name.startswith("torchinductor_")
    ]
    return [str(path.relative_to(folder)) for path in [*hidden, *temporary]]


def trial(
    command: Command, folder: Path, whole: dict[str, str], seconds: float, draw: random.Random
) -> tuple[str, str]:
    """Kill, run again, compare: what was done, and what is wrong (empty: nothing).

    Nothing was done where the command ended before its signal.
    """
    done = []
    for _ in range(1 if draw.random() < 0.7 else 2):
        number = draw.choice(SIGNALS)
        after = seconds * draw.uniform(0.25, 1.0)
        status = killed(command, folder, after, number)
        if status is None:
            break
        done.append(f"{number.name} after {after:.1f} s")
        if number is not signal.SIGKILL and status not in (0, 128 + number, -number):
            return ", ".join(done), f"status {status} after {number.name}"
    if status is not None:
        status, said = call(command, folder, command.again(folder / command.out))
        if status and "exists and is not empty" not in said:  # it had just been finished
            return ", ".join(done), f"the second run ended with {status}: {said.strip()[-300:]}"
    out = folder / command.out
    if command.files(out) != whole:
        return ", ".join(done), "other bytes"
    left = leftovers(folder)
    return ", ".join(done), f"left over: {', '.join(left[:5])}" if left else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--sts", type=Path, help="folder of data sets; without: no adapt")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of commands")
    args = parser.parse_args()
    # a job in the background ignores SIGINT, and so would the commands
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw, failed = random.Random(args.seed), 0  # noqa: S311 -- moments, no secrets
    counts: dict[str, list[int]] = {}
    with tempfile.TemporaryDirectory() as place:
        base = Path(place) / "base"
        base.mkdir()
        prepare(base)
        table = commands(base, None if args.sts is None else args.sts.resolve())
        names = args.only or list(table)
        whole, seconds = {}, {}
        for name in names:
            folder = Path(place) / f"whole-{name}"
            folder.mkdir()
            begun = time.monotonic()
            status, said = call(table[name], folder, ())
            seconds[name] = time.monotonic() - begun
            if status:
                sys.exit(f"{name} failed without a fault: {said}")
            whole[name] = table[name].files(folder / table[name].out)
            print(f"{name} ends without a fault in {seconds[name]:.1f} s", flush=True)
        trials = 0
        while trials < args.kills:
            name = names[trials % len(names)]
            folder = Path(place) / "trial"
            folder.mkdir()
            done, wrong = trial(table[name], folder, whole[name], seconds[name], draw)
            shutil.rmtree(folder)
            if not done and not wrong:
                seconds[name] *= 0.8  # the machine is less busy than it was
                continue
            trials += 1
            failed += bool(wrong)
            counts.setdefault(name, [0, 0])[bool(wrong)] += 1
            print(f"{trials:3d} {name:9s} {done}: {wrong or 'the same'}", flush=True)
    for name, (good, bad) in counts.items():
        print(f"{name}: {good + bad} trials, {good} ended the same, {bad} did not")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
