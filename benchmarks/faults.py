"""Kills commands at random moments, runs them again, and compares the bytes at the end.

    python benchmarks/faults.py --kills 100 --signals SIGKILL
    python benchmarks/faults.py --kills 40                      # SIGTERM and SIGINT, too
    python benchmarks/faults.py --only "index add" --seed 3
    python benchmarks/faults.py --reads 2000                    # readers of what is being changed

Each command is run once without a fault, and then killed: half of the times some seconds after it
has claimed its output, otherwise just before one of its operations on files (one that opens a file
to write, renames or removes). The kill must leave nothing, the old output or the whole new one.
Then the same command runs again, until it ends with status 0 or says that the output is complete.
The output must have the same bytes as that of the run without a fault, and no hidden or temporary
file may be left.

With `--reads`, a reader opens an output again and again while a command changes it. Each read must
give the old content or the new one.
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
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from rejoinder.errors import RejoinderError
from rejoinder.evaluation.results import read_results
from rejoinder.index.folder import TextIndex
from rejoinder.index.segment import encoded_texts

ROOT = Path(__file__).resolve().parent.parent
COPIES = 4
"""Copies of the small dump: a command should take longer than its start."""
MODEL = "rejoinder-small"
OUT = "OUT"
"""Stands for the output of a command."""
STATE = "carried"
SIGNALS = ("SIGKILL", "SIGKILL", "SIGKILL", "SIGTERM", "SIGINT")
CONFIG = """
[text]
min_count = 2
[encoder]
kind = "dan"
width = 32
layers = [32]
[head]
layers = [32]
[training]
log_every = 10
checkpoint_every = 10
evaluate_every = 20
[[phases]]
steps = 60
batch_size = 64
learning_rate = 0.01
"""
PROGRAM = """
import atexit, os, runpy, signal, sys
place, stop, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
seen = 0
def hook(event, given):
    global seen
    if not given or not isinstance(given[0], (str, bytes, os.PathLike)):
        return
    if event == "open":
        if not given[2] & (os.O_WRONLY | os.O_RDWR):
            return
    elif event not in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"):
        return
    if not os.path.abspath(os.fsdecode(given[0])).startswith(place):
        return
    seen += 1
    if seen == stop:
        os.kill(os.getpid(), number)
sys.addaudithook(hook)
sys.argv = ["rejoinder", *sys.argv[4:]]
atexit.register(lambda: print(f"operations: {seen}", file=sys.stderr))
runpy.run_module("rejoinder", run_name="__main__")
"""
"""Runs a command, and sends itself a signal just before an operation on files below a folder."""

Digests = Mapping[str, str]


def digests(out: Path) -> Digests:
    """SHA-256 of every file of an output."""
    files = [out] if out.is_file() else sorted(path for path in out.rglob("*") if path.is_file())
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def trained(run: Path) -> Digests:
    """Of a run: the model, and the tensors of the last checkpoint."""
    last = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
    tensors = {name: digest for name, digest in digests(last).items() if name != "state.json"}
    return {**_below("model", digests(run / "model")), **_below("checkpoint", tensors)}


def visible(folder: Path) -> Digests:
    """SHA-256 of the files of a folder without hidden ones, which a kill may leave in it."""
    hidden = {name for name in digests(folder) if Path(name).name.startswith(".")}
    return {name: digest for name, digest in digests(folder).items() if name not in hidden}


def _below(folder: str, tree: Digests) -> Digests:
    return {f"{folder}/{name}": digest for name, digest in tree.items()}


def scored(path: Path) -> Digests:
    """Of a file of results: each result and its predictions, without dates and seconds."""
    keep = ("n", "scores", "intervals", "groups", "predictions")
    return {
        "/".join(map(str, result.key)): json.dumps(
            {name: getattr(result, name) for name in keep}, default=vars, sort_keys=True
        )
        for result in read_results(path)
    }


def indexed(folder: Path) -> Digests:
    """Of an index: each text with its embedding, and the files that do not belong to it."""
    index = TextIndex(folder)
    index.check()
    found: dict[str, str] = {}
    for part in encoded_texts(index.segments):
        for name, text, row in zip(part.ids, part.texts, np.asarray(part.embeddings), strict=True):
            found[str(name)] = hashlib.sha256(text.encode() + row.tobytes()).hexdigest()
    entries = index.manifest.segments
    named = {"index.json", *(e.name for e in entries), *(e.deletions for e in entries)}
    return {**found, "segments": str(len(entries)), "strays": str(_names(folder) - named)}


def _names(folder: Path) -> set[str | None]:
    return {path.name for path in folder.iterdir()}


def found(folder: Path) -> Digests:
    """Of an index: its number of texts, and what a search gives."""
    index = TextIndex(folder)
    [hits] = index.nearest(np.full((1, index.manifest.dim), 0.1, np.float32), top_k=5)
    return {"texts": str(len(index)), **{str(hit.id): f"{hit.score:.6f}" for hit in hits}}


def loaded(folder: Path) -> Digests:
    """Of a model: the embedding of a sentence."""
    from rejoinder import SentenceEncoder

    rows = SentenceEncoder(folder).encode(["How are you?"])
    return {"row": hashlib.sha256(rows.tobytes()).hexdigest()}


def whole_or_nothing(out: Path, whole: Digests, _before: Digests, files: "Files") -> str:
    """What is wrong with an output that appears at once."""
    return "another output is there" if out.exists() and files(out) != whole else ""


def old_or_new(out: Path, whole: Digests, before: Digests, files: "Files") -> str:
    """What is wrong with an index that was being changed: files of the change may lie there."""
    ignored = ("strays",)
    now, new, old = (
        {name: digest for name, digest in tree.items() if name not in ignored}
        for tree in (files(out), whole, before)
    )
    return "" if now in (new, old) else "neither the old index nor the new one"


def some_results(out: Path, whole: Digests, _before: Digests, files: "Files") -> str:
    """What is wrong with results to which each task is added when it is done."""
    there = files(out).items() if out.exists() else ()
    return "" if set(there) <= set(whole.items()) else "other results"


def run_so_far(out: Path, whole: Digests, _before: Digests, _files: "Files") -> str:
    """What is wrong with a run: its model, or a checkpoint under its name."""
    from rejoinder.training.config.loading import load_config
    from rejoinder.training.loop import checkpoint

    model = out / "model"
    if model.exists() and not _below("model", digests(model)).items() <= whole.items():
        return "another model"
    last = checkpoint.latest(out)
    if last is not None:
        checkpoint.load(last, load_config(out / "config.toml"))
    return ""


Files = Callable[[Path], Digests]
Sound = Callable[[Path, Digests, Digests, Files], str]


@dataclass(frozen=True)
class Command:
    """A command to kill: its words, and what it leaves."""

    words: tuple[str, ...]
    """With `OUT` where the output is named; without, `option` names it."""
    out: str
    """The output, below the folder of the trial."""
    files: Files = digests
    """What must be the same at the end, of the output."""
    sound: Sound = whole_or_nothing
    """What is wrong with the output as a kill left it."""
    again: Callable[[Path], tuple[str, ...]] = lambda _out: ()
    """Words to add when it is run again, of the output as the kill left it."""
    seed: str | None = None
    """What lies at the output before the command runs, below the base folder."""
    neighbour: str | None = None
    """A folder next to the output before the command runs, from the base folder."""
    finished: str = "exists and is not empty"
    """What a second run says where the first one had come to its end."""
    first: tuple[str, ...] = ()
    """Words to add when it is run for the first time."""
    option: str = "--out"
    """The option that names the output."""
    claim: str | None = None
    """What it claims before its work, below the folder of the trial; None: its output."""
    link: bool = False
    """Whether the output is named by a link."""
    read: Callable[[Path], Digests] | None = None
    """What a reader of the output gets while the command changes it."""

    def named(self, folder: Path) -> list[str]:
        """Returns the words with the output below a folder."""
        out = str(folder / self.out)
        more = () if OUT in self.words else (self.option, out)
        return [*(out if word == OUT else word for word in self.words), *more]


def commands(base: Path) -> dict[str, Command]:
    """The commands, which read what is prepared in `base`."""
    run, pairs = base / "run", base / "pairs"
    overwritten: Callable[[Path], tuple[str, ...]] = lambda out: (  # noqa: E731
        ("--overwrite",) if out.exists() else ()
    )
    add = Command(
        ("index", "add", OUT, str(base / "new.jsonl")),
        "index",
        indexed,
        old_or_new,
        seed="index",
        finished="has a text with the id",
        read=found,
    )
    return {
        "extract": Command(("extract", str(base / "dump.jsonl"), "--memory", "200MB"), "pairs"),
        "extract carry": Command(
            ("extract", str(base / "later.jsonl"), "--memory", "200MB", "--carry", STATE),
            "pairs",
            lambda out: {**digests(out), **_below(STATE, digests(out.parent / STATE))},
            neighbour=STATE,
        ),
        "train": Command(
            ("train", "--config", str(base / "c.toml"), "--pairs", str(pairs), "--threads", "1"),
            "run",
            trained,
            run_so_far,
            lambda out: ("--resume",) if (out / "manifest.json").is_file() else (),
        ),
        "train over": Command(
            (
                *("train", "--config", str(base / "c.toml"), "--pairs", str(pairs)),
                *("--threads", "1", "training.seed=7"),
            ),
            "run",
            trained,
            sound=lambda out, whole, before, files: (
                "" if files(out) in (whole, before) else "neither the old run nor the new one"
            ),
            first=("--overwrite",),
            again=lambda out: (
                ("--resume",)
                if (out.with_name(f".{out.name}.unfinished") / "config.toml").is_file()
                else ("--overwrite",)
            ),
            seed="run",
        ),
        "encode": Command(
            ("encode", "--model", MODEL, "--sentences", str(base / "texts.txt")),
            "e.parquet",
            again=lambda out: ("--overwrite",) if out.exists() else ("--resume",),
        ),
        "evaluate": Command(
            (
                # sums of rows: dense layers round a row by the batch that it is in, and an
                # evaluation that goes on after an interruption encodes fewer texts together
                *("evaluate", str(base / "small"), "--pairs", str(pairs)),
                *("--data", str(base / "data"), "--tasks", "response,stsb"),
            ),
            "r.json",
            scored,
            some_results,
        ),
        "adapt": Command(
            ("adapt", str(run / "model"), "--sts", str(base / "data"), "--learning-rate", ".01"),
            "adapted",
        ),
        "data add": Command(
            ("data", "add", "stsb", str(base / "data")),
            "laid out",
            visible,
            some_results,
            option="--data",
            claim="laid out/adding",
        ),
        "index": Command(
            ("index", str(base / "old.jsonl"), "--model", MODEL, "--copy-model"),
            "index",
            again=overwritten,
        ),
        "index add": add,
        "index add link": replace(add, link=True),
        "index over": Command(
            ("index", str(base / "other.jsonl"), "--model", MODEL, "--copy-model", "--overwrite"),
            "index",
            sound=lambda out, whole, before, files: (
                "" if not out.exists() or files(out) in (whole, before) else "another index"
            ),
            seed="index",
            read=found,
        ),
        "index update": Command(
            ("index", "update", OUT, str(base / "other.jsonl")),
            "index",
            lambda out: {**indexed(out), "segments": ""},
            old_or_new,
            seed="index",
            read=found,
        ),
        "index compact": Command(
            ("index", "compact", OUT), "index", indexed, old_or_new, seed="many", read=found
        ),
        "export": Command(
            ("export", MODEL, "--dtype", "int8", "--max-words", "5000"), "small", again=overwritten
        ),
        "export over": Command(
            ("export", MODEL, "--dtype", "float16", "--overwrite"),
            "small",
            sound=lambda out, whole, before, files: (
                "" if not out.exists() or files(out) in (whole, before) else "another model"
            ),
            seed="small",
            read=loaded,
        ),
    }


def prepare(base: Path) -> None:
    """The dump, pairs, model, texts, labelled data and indexes that the commands read."""
    comments = []
    for line in (ROOT / "examples" / "small.jsonl").read_text("utf-8").splitlines():
        with suppress(ValueError):  # some lines of it are malformed on purpose
            comments.append(json.loads(line))
    copies = []
    for number in range(COPIES):
        for comment in comments:
            ids = {key: comment[key] for key in ("id", "parent_id", "link_id")}
            copy = {key: f"{value}n{number}" for key, value in ids.items() if value}
            copies.append(json.dumps(comment | copy) + "\n")
    for name, lines in (("dump", copies), ("earlier", copies[::2]), ("later", copies[1::2])):
        (base / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    texts = [" ".join(comment["body"].split()) for comment in comments]
    (base / "c.toml").write_text(CONFIG, "utf-8")
    (base / "texts.txt").write_text("".join(f"{text}\n" for text in texts * 2), "utf-8")
    for name, begin, end in (("old", 0, 6_000), ("new", 6_000, 9_000), ("other", 4_000, 8_000)):
        rows = [
            {"id": f"t{row}", "text": f"{texts[row % len(texts)]} {name[0]}"}
            for row in range(begin, end)
        ]
        (base / f"{name}.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows), "utf-8")
    _write_sts(base / "data", texts)
    ready = commands(base)
    for name in ("extract", "train", "index", "export"):
        _prepared(ready[name], base)
    shutil.copytree(base / "index", base / "many")
    many = base / "many"
    _run(base, "extract", "earlier.jsonl", "--carry", STATE, "--out", "pairs-earlier")
    for verb, file in (("add", "new.jsonl"), ("update", "other.jsonl")):
        _run(base, "index", verb, str(many), file)


def _run(base: Path, *words: str) -> None:
    command = [sys.executable, "-m", "rejoinder", *words, "--quiet"]
    subprocess.run(command, cwd=base, check=True)


def _prepared(command: Command, base: Path) -> None:
    done = call(command, base, ())
    if done.status:
        sys.exit(f"{command.words} failed without a fault: {done.said}")


def _write_sts(folder: Path, texts: list[str]) -> None:
    """Files of the form and size of the STS Benchmark, with made-up scores."""
    folder.mkdir()
    draw = random.Random(0)  # noqa: S311
    words = [text.replace("\t", " ")[:80].strip() or "nothing" for text in texts]
    for split, count in (("train", 5_749), ("dev", 1_500), ("test", 1_379)):
        rows = []
        for row in range(count):
            first, second = draw.choice(words), draw.choice(words)
            score = draw.choice((0.0, 1.5, 3.0))
            if draw.random() < 0.5:
                second, score = f"{first} {draw.choice(words)[:20]}", 4.0
            rows.append(f"main-news\t{split}\t2012\t{row}\t{score}\t{first}\t{second}\n")
        (folder / f"sts-{split}.csv").write_text("".join(rows), "utf-8")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    status: int
    said: str
    seconds: float = 0.0
    """From the claim on its output to its end."""
    operations: int = 0
    """Its operations on files."""


@dataclass(frozen=True)
class Kill:
    """When a command is sent which signal."""

    number: signal.Signals
    after: float | None = None
    """Seconds after the claim on its output; None: at an operation."""
    operation: int = 0

    def __str__(self) -> str:
        when = f"operation {self.operation}" if self.after is None else f"{self.after:.2f} s"
        return f"{self.number.name} at {when}"


def start(
    command: Command, folder: Path, more: tuple[str, ...], kill: Kill | None = None
) -> subprocess.Popen[str]:
    """Starts the command in a separate process, in `folder`, with a separate TMPDIR."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    operation, number = (kill.operation, kill.number) if kill else (0, signal.SIGKILL)
    words = [sys.executable, "-c", PROGRAM, str(folder), str(operation), str(int(number))]
    return subprocess.Popen(
        [*words, *command.named(folder), *more],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def lay_out(command: Command, base: Path, folder: Path) -> None:
    """Makes the folder of a trial."""
    folder.mkdir()
    if command.seed is not None:
        shutil.copytree(base / command.seed, folder / command.out)
    if command.neighbour is not None:
        shutil.copytree(base / command.neighbour, folder / command.neighbour)
    if command.link:
        (folder / "place").mkdir()
        (folder / command.out).rename(folder / "place" / "target")
        (folder / command.out).symlink_to(folder / "place" / "target")


def claimed(process: subprocess.Popen[str], command: Command, folder: Path) -> None:
    """Waits until a command has claimed its output, or ended."""
    path = (folder / (command.claim or command.out)).resolve()
    lock = path.with_name(f".{path.name}.lock")
    while process.poll() is None and not lock.exists():
        time.sleep(0.001)


def call(command: Command, folder: Path, more: tuple[str, ...], kill: Kill | None = None) -> Ended:
    """Run a command to its end, or until it is killed."""
    process = start(command, folder, more, kill)
    claimed(process, command, folder)
    begun = time.monotonic()
    if kill is not None and kill.after is not None:
        try:
            process.wait(timeout=kill.after)
        except subprocess.TimeoutExpired:
            process.send_signal(kill.number)
    _, said = process.communicate()
    said, _, operations = said.partition("operations: ")
    seconds = time.monotonic() - begun
    return Ended(process.returncode, said, seconds, int(operations or 0))


def leftovers(folder: Path) -> list[str]:
    """Hidden files and what lies in the temporary folder, but for torch's own folder of caches."""
    hidden = [path for path in folder.rglob("*") if path.name.startswith(".")]
    temporary = [
        path for path in (folder / "tmp").iterdir() if not path.name.startswith("torchinductor_")
    ]
    return [str(path.relative_to(folder)) for path in [*hidden, *temporary]]


@dataclass
class Baseline:
    """What a command leaves without a fault, and how long it works."""

    whole: Digests
    before: Digests
    ended: Ended

    def kill(self, draw: random.Random, signals: tuple[str, ...]) -> Kill:
        """When to kill it: at a moment, or at an operation."""
        number = signal.Signals[draw.choice(signals)]
        if draw.random() < 0.5:
            return Kill(number, after=self.ended.seconds * draw.random())
        return Kill(number, operation=draw.randint(1, self.ended.operations))


def baseline(command: Command, base: Path, folder: Path) -> Baseline:
    """Runs a command without a fault."""
    lay_out(command, base, folder)
    before = command.files(folder / command.out) if command.seed else {}
    ended = call(command, folder, command.first)
    if ended.status:
        sys.exit(f"{command.words} failed without a fault: {ended.said}")
    return Baseline(command.files(folder / command.out), before, ended)


@dataclass
class Trial:
    """Kills of a command, and what came of them."""

    kills: list[Kill] = field(default_factory=list)
    wrong: str = ""
    """Empty: nothing."""


def trial(command: Command, reference: Baseline, folder: Path, kills: list[Kill]) -> Trial:
    """Kill a command, run it again, compare.

    A kill that came too late does not count.
    """
    done, out, ended = Trial(), folder / command.out, None
    for kill in kills:
        more = command.again(out) if done.kills else command.first
        ended = call(command, folder, more, kill)
        if ended.status in (0, 2):
            break
        done.kills.append(kill)
        if ended.status not in (-kill.number, 128 + kill.number):
            done.wrong = f"status {ended.status}: {ended.said[-300:]}"
            return done
        try:
            done.wrong = command.sound(out, reference.whole, reference.before, command.files)
        except RejoinderError as error:
            done.wrong = f"can't be read: {error}"
        if done.wrong:
            return done
    if not done.kills:
        return done
    if ended is None or ended.status != 0:
        ended = call(command, folder, command.again(out))
    if ended.status and command.finished not in ended.said:
        done.wrong = f"the second run ended with {ended.status}: {ended.said.strip()[-300:]}"
    elif command.files(out) != reference.whole:
        done.wrong = "other bytes"
    elif left := leftovers(folder):
        done.wrong = f"left over: {', '.join(left[:5])}"
    return done


def watched(command: Command, base: Path, folder: Path) -> Counter[str]:
    """Reads the output of a command over and over while it runs: old, new, refused or wrong."""
    assert command.read is not None  # noqa: S101
    out = folder / command.out
    lay_out(command, base, folder)
    call(command, folder, command.first)
    new = command.read(out)
    shutil.rmtree(folder)
    lay_out(command, base, folder)
    old = command.read(out)
    counts = Counter(runs=1)
    process = start(command, folder, command.first)
    claimed(process, command, folder)
    while process.poll() is None:
        counts["reads"] += 1
        try:
            read = command.read(out)
        except RejoinderError as error:
            counts["refused"] += 1
            print(error)
            continue
        counts["old" if read == old else "new" if read == new else "wrong"] += 1
    process.communicate()
    shutil.rmtree(folder)
    return counts


def watch(names: list[str], base: Path, reads: int) -> bool:
    """Prints how many reads of outputs that were being changed were wrong; whether none was."""
    table = {name: command for name, command in commands(base).items() if command.read}
    counts = {name: Counter[str]() for name in names if name in table}
    while sum(count["reads"] for count in counts.values()) < reads:
        for name, count in counts.items():
            count.update(watched(table[name], base, base.parent / "trial"))
    columns = ("runs", "reads", "old", "new", "refused", "wrong")
    print(f"| command | {' | '.join(columns)} |\n|---|{'--:|' * len(columns)}")
    for name, count in counts.items():
        print(f"| {name} | {' | '.join(f'{count[column]:,}' for column in columns)} |")
    return not any(count["wrong"] for count in counts.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--signals", nargs="+", default=SIGNALS, choices=sorted(set(SIGNALS)))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", help="names of commands")
    parser.add_argument("--reads", type=int, help="read what is being changed; kill nothing")
    args = parser.parse_args()
    # a job in the background ignores SIGINT, and so would the commands
    signal.signal(signal.SIGINT, signal.default_int_handler)
    draw = random.Random(args.seed)  # noqa: S311 -- moments, no secrets
    counts: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as place:
        base = Path(place).resolve() / "base"
        base.mkdir()
        prepare(base)
        table = commands(base)
        names = args.only or list(table)
        if args.reads is not None:
            sys.exit(not watch(names, base, args.reads))
        references = {}
        for name in names:
            references[name] = baseline(table[name], base, base.parent / f"whole {name}")
            ended = references[name].ended
            print(f"{name}: {ended.seconds:.1f} s, {ended.operations} operations", flush=True)
        turn = 0
        while sum(count["kills"] for count in counts.values()) < args.kills:
            name = names[turn % len(names)]
            turn += 1
            folder = base.parent / "trial"
            lay_out(table[name], base, folder)
            kills = [references[name].kill(draw, tuple(args.signals))]
            if draw.random() < 0.3:
                kills.append(references[name].kill(draw, tuple(args.signals)))
            done = trial(table[name], references[name], folder, kills)
            shutil.rmtree(folder)
            if not done.kills:
                continue
            count = counts.setdefault(name, Counter())
            count.update(kills=len(done.kills), trials=1, wrong=bool(done.wrong))
            said = done.wrong or "the same"
            print(f"{name}: {', '.join(map(str, done.kills))}: {said}", flush=True)
    print("| command | kills | trials | same bytes, nothing left over |\n|---|--:|--:|--:|")
    for name, count in counts.items():
        good = count["trials"] - count["wrong"]
        print(f"| {name} | {count['kills']} | {count['trials']} | {good} |")
    sys.exit(1 if any(count["wrong"] for count in counts.values()) else 0)


if __name__ == "__main__":
    main()
