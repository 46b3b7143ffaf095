"""Memory of training, encoding and serving over half an hour, all three at the same time.

    python benchmarks/soak.py --pairs pairs/ --minutes 30 --cores 0.4 --out notebook/assets

Each is the command line's own process. Encoding reads texts from a pipe, serving answers four
clients, a request in ten of which is malformed; no text comes twice. Together they get as much
processor time as `--cores` says: a process that had more is stopped for a moment. The clock starts
when all have begun their work. Resident memory (Linux) is sampled every two seconds. Writes
`soak.json` and `soak.svg`, prints Markdown, and ends with status 1 where memory grew by more than
5 % after the first two minutes, or a process ended.
"""

import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from random import Random

from rejoinder.evaluation.report import COLOURS, new_figure, svg_of
from rejoinder.io.files.atomic import write_text

CONFIG = """
[text]
min_count = 2
[encoder]
kind = "dan"
width = 64
layers = [128, 128]
[head]
layers = [128]
[training]
log_every = 10
checkpoint_every = 200
evaluate_every = 500
[[phases]]
steps = 100_000_000
batch_size = 128
learning_rate = 0.01
"""
WORDS = "how old are you what is your age where do you live i like the music of this town".split()  # noqa: SIM905
TICK, SAMPLE = 0.05, 2.0
"""Seconds between two looks at the processor time, and at memory."""
SETTLED, GROWTH = 120.0, 0.05
MALFORMED = (
    b"",
    b"{",
    b'{"inputs": [1, null]}',
    b'{"inputs": {"a": 1}}',
    b"\xff" * 500,
    b"[" * 999,
)


@dataclass
class Soaked:
    """A process under load, and what it used."""

    name: str
    process: subprocess.Popen[bytes]
    unit: str
    """What `done` counts."""
    done: int = 0
    stopped: bool = False
    ending: bool = False
    samples: list[tuple[float, float]] = field(default_factory=list)
    """Seconds since the start, and MB of resident memory."""

    def resident(self) -> float:
        """MB of resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def processor_seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def hold(self, stop: bool) -> None:
        """Stops the process, or lets it go on."""
        if stop != self.stopped:
            self.stopped = stop
            with suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGSTOP if stop else signal.SIGCONT)

    def end(self) -> None:
        """Asks the process to end, and waits for it."""
        self.ending = True
        self.hold(False)
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def texts(seed: int) -> Iterator[str]:
    """Texts of known words and words that were never seen."""
    draw = Random(seed)  # noqa: S311
    for number in count():
        words = draw.choices(WORDS, k=draw.randint(1, 30))
        yield " ".join([*words, f"x{number:x}y{seed}"])


def begin(
    name: str,
    unit: str,
    words: list[str],
    folder: Path,
    stdin: int | None = None,
    stderr: int | None = None,
) -> Soaked:
    """Starts a command in `folder`."""
    command = [sys.executable, "-m", "rejoinder", *words]
    process = subprocess.Popen(command, cwd=folder, stdin=stdin, stderr=stderr)
    return Soaked(name, process, unit)


def training(folder: Path, pairs: Path) -> Soaked:
    """Trains without end, with checkpoints and evaluations."""
    (folder / "c.toml").write_text(CONFIG, "utf-8")
    words = ["train", "--config", "c.toml", "--pairs", str(pairs.resolve()), "--out", "run"]
    quiet = subprocess.DEVNULL
    return begin("training", "steps", [*words, "--threads", "1"], folder, stderr=quiet)


def encoding(folder: Path, model: str, rate: int) -> Soaked:
    """Encodes what a thread writes to its standard input, `rate` texts a second at most."""
    words = ["encode", "--model", model, "--sentences", "-", "--out", "e.npy", "--quiet"]
    soaked = begin("encoding", "texts", words, folder, stdin=subprocess.PIPE)
    lines = soaked.process.stdin

    def feed() -> None:
        begun, source = time.monotonic(), texts(1)
        with suppress(BrokenPipeError, ValueError):
            while lines is not None:
                lines.write("".join(f"{next(source)}\n" for _ in range(200)).encode())
                soaked.done += 200
                time.sleep(max(0.0, begun + soaked.done / rate - time.monotonic()))

    threading.Thread(target=feed, daemon=True).start()
    return soaked


def serving(folder: Path, model: str, rate: int) -> Soaked:
    """Serves four clients in threads, `rate` requests a second at most."""
    words = ["serve", model, "--port", "0"]
    soaked = begin("serving", "requests", words, folder, stderr=subprocess.PIPE)
    for line in soaked.process.stderr or ():
        if b"http://127.0.0.1:" in line:
            port = int(line.split(b"http://127.0.0.1:")[1].split()[0].rstrip(b"/)"))
            break
    else:
        raise SystemExit("the server did not start")

    def ask(client: int) -> None:
        draw, source = Random(client), texts(client)  # noqa: S311
        begun, asked = time.monotonic(), 0
        with suppress(OSError, http.client.HTTPException):
            while True:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
                for _ in range(100):
                    body = json.dumps({"inputs": [next(source) for _ in range(4)]}).encode()
                    bad = draw.random() < 0.1
                    body = draw.choice(MALFORMED) if bad else body
                    headers = {"Content-Type": "application/json"}
                    connection.request("POST", "/embed", body, headers)
                    answer = connection.getresponse()
                    answer.read()
                    if (answer.status != 200) != bad and not soaked.ending:
                        print(f"serving: status {answer.status} for {body!r}", file=sys.stderr)
                    asked += 1
                    soaked.done += 1
                    time.sleep(max(0.0, begun + 4 * asked / rate - time.monotonic()))
                connection.close()

    for client in range(4):
        threading.Thread(target=ask, args=(client,), daemon=True).start()
    return soaked


def follow(all_soaked: list[Soaked], seconds: float, cores: float) -> bool:
    """Samples memory and holds processes back; returns false if one of them ended."""
    begun = sampled = time.monotonic()
    used = {soaked.name: soaked.processor_seconds() for soaked in all_soaked}
    while (now := time.monotonic() - begun) < seconds:
        for soaked in all_soaked:
            if soaked.process.poll() is not None:
                print(f"{soaked.name} ended with {soaked.process.returncode}", file=sys.stderr)
                return False
            allowed = used[soaked.name] + cores / len(all_soaked) * now
            soaked.hold(soaked.processor_seconds() > allowed)
        if time.monotonic() - sampled >= SAMPLE:
            sampled = time.monotonic()
            for soaked in all_soaked:
                soaked.samples.append((round(now, 1), round(soaked.resident(), 1)))
        time.sleep(TICK)
    return True


def steps_of(folder: Path) -> int:
    """Steps that the training has logged."""
    lines = (folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
    return int(json.loads(lines[-1])["step"])


def summary(samples: list[tuple[float, float]]) -> dict[str, float]:
    """MB in the minute after the first two, in the last minute, and at most after two minutes.

    Minutes are compared by their medians: a sample may fall into an evaluation or a batch.
    """
    end = samples[-1][0]
    first = statistics.median(mb for at, mb in samples if SETTLED <= at < SETTLED + 60)
    last = statistics.median(mb for at, mb in samples if at > end - 60)
    most = max(mb for at, mb in samples if at >= SETTLED)
    return {"first": first, "last": last, "most": most, "growth": last / first - 1}


def plot(all_soaked: list[Soaked]) -> str:
    """SVG of memory over time."""
    figure, axes = new_figure(6.4, 3.6)
    for soaked, colour in zip(all_soaked, COLOURS, strict=False):
        at, mb = zip(*soaked.samples, strict=True)
        axes.plot([seconds / 60 for seconds in at], mb, color=colour, label=soaked.name)
    axes.axvline(SETTLED / 60, color="grey", linewidth=0.8, linestyle=":")
    axes.set_xlabel("minutes")
    axes.set_ylabel("resident memory, MB")
    axes.set_ylim(bottom=0)
    axes.legend()
    return svg_of(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--model", default="rejoinder-small")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--cores", type=float, default=2.0, help="processor time of all together")
    parser.add_argument("--texts", type=int, default=2_000, help="encoded a second, at most")
    parser.add_argument("--requests", type=int, default=200, help="sent a second, at most")
    parser.add_argument("--out", type=Path, default=Path(), help="folder of soak.json, soak.svg")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder, all_soaked = Path(place), list[Soaked]()
        try:
            all_soaked.append(training(folder, args.pairs))
            all_soaked.append(encoding(folder, args.model, args.texts))
            all_soaked.append(serving(folder, args.model, args.requests))
            while not (folder / "run" / "metrics.jsonl").is_file():
                if all_soaked[0].process.poll() is not None:
                    raise SystemExit("the training did not start")
                time.sleep(SAMPLE)
            good = follow(all_soaked, 60 * args.minutes, args.cores)
        finally:
            for soaked in all_soaked:
                soaked.end()
        all_soaked[0].done = steps_of(folder)
    report = {}
    print("| | MB in the third minute | MB in the last | growth | at most | work |")
    print("|---|--:|--:|--:|--:|--:|")
    for soaked in all_soaked:
        found = summary(soaked.samples)
        good = good and found["growth"] <= GROWTH
        report[soaked.name] = {**found, "done": soaked.done, "samples": soaked.samples}
        print(
            f"| {soaked.name} | {found['first']:.0f} | {found['last']:.0f} | "
            f"{found['growth']:+.1%} | {found['most']:.0f} | {soaked.done:,} {soaked.unit} |"
        )
    write_text(args.out / "soak.json", json.dumps(report) + "\n")
    write_text(args.out / "soak.svg", plot(all_soaked))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
