"""The long fuzzer: checks that unusual and damaged inputs are read or refused.

    python benchmarks/fuzz.py --inputs 200000 --seed 0            # all areas, two processes
    python benchmarks/fuzz.py --inputs 5000 --areas texts config
    python benchmarks/fuzz.py --areas texts --seed 0 --only 1234  # one again, with its traceback

Input n of an area depends on the seed, the area and n alone. An input is accepted, refused with one
sentence (a `RejoinderError`), or a find: any other exception, a wrong value, more than a minute.
The generators and checks are in `tests/fuzzing/`. Ends with a table, and status 1 after any find.
"""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from random import Random
from types import FrameType

TESTS = Path(__file__).resolve().parent.parent / "tests"
Check = Callable[[Random], bool]
"""Checks one input: true where it was accepted, false where it was refused; raises for a find."""


@dataclass(frozen=True)
class Area:
    """A part of the package under fuzzing."""

    module: str
    """Its `checker(folder)` gives the check; the folder is for temporary files."""
    share: float
    """Of the inputs: what an input costs decides it."""


AREAS = {
    "config": Area("fuzzing.config", 0.25),
    "labelled data": Area("fuzzing.datasets", 0.02),
    "texts": Area("fuzzing.texts", 0.02),
    "JSON lines": Area("fuzzing.dumps", 0.005),
    "models": Area("fuzzing.model_folders", 0.009),
    "results": Area("fuzzing.results", 0.0007),
    "run folder": Area("fuzzing.run_folders", 0.0003),
    "left over": Area("fuzzing.left_overs", 0.002),
    "links": Area("fuzzing.links", 0.02),
    "bombs": Area("fuzzing.bombs", 0.0003),
    "rules": Area("fuzzing.rules", 0.25),
    "dump files": Area("fuzzing.dump_files", 0.03),
    "exports": Area("fuzzing.exports", 0.01),
    "index texts": Area("fuzzing.index_texts", 0.25),
    "index folder": Area("fuzzing.index_folders", 0.015),
    "index lists": Area("fuzzing.index_lists", 0.015),
    "requests": Area("fuzzing.requests", 0.15),
    "patterns": Area("fuzzing.patterns", 0.05),
}
_SECONDS_AN_INPUT = 60
_EVERY = 5.0
"""Seconds between two lines of progress."""
_COLUMNS = ("inputs", "refused", "accepted", "finds")


@dataclass
class Tally:
    """What came of the inputs of an area."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    """Of all processes together, without setting up."""


def main() -> None:
    arguments = _arguments()
    # the processes compute side by side: one thread each
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = "1"
    if arguments.only is not None:
        sys.exit(_once(arguments.areas, arguments.seed, arguments.only))
    tallies = _run(_inputs(arguments.areas, arguments.inputs), arguments.seed, arguments.jobs)
    print(table(tallies))
    sys.exit(1 if any(tally.counts["finds"] for tally in tallies.values()) else 0)


def table(tallies: dict[str, Tally]) -> str:
    """Markdown: an area a row, and all of them."""
    total = Tally()
    for tally in tallies.values():
        total.counts += tally.counts
        total.seconds += tally.seconds
    lines = [f"| area | {' | '.join(_COLUMNS)} | seconds |", "|---|" + "--:|" * 5]
    for name, tally in {**tallies, "all": total}.items():
        cells = [f"{tally.counts[column]:,}" for column in _COLUMNS]
        lines.append(f"| {name} | {' | '.join(cells)} | {tally.seconds:,.0f} |")
    return "\n".join(lines)


def _inputs(areas: list[str], count: int) -> dict[str, int]:
    """Inputs of each area, `count` in all."""
    whole = sum(AREAS[name].share for name in areas)
    inputs = {name: int(count * AREAS[name].share / whole) for name in areas}
    inputs[areas[0]] += count - sum(inputs.values())
    return inputs


def _chunks(inputs: dict[str, int]) -> Iterator[tuple[str, range]]:
    """Parts of the inputs of all areas in turn, the small areas among the large."""
    parts = 60
    for part in range(parts):
        for name, count in inputs.items():
            low, high = (count * edge // parts for edge in (part, part + 1))
            if low < high:
                yield name, range(low, high)


def _run(inputs: dict[str, int], seed: int, jobs: int) -> dict[str, Tally]:
    tallies = {name: Tally() for name in inputs}
    chunks = list(_chunks(inputs))
    all_of, done, begun = sum(inputs.values()), 0, time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool,
    ):
        futures = {
            pool.submit(_chunk, name, seed, numbers, folder): (name, numbers)
            for name, numbers in chunks
        }
        shown = begun
        for future in as_completed(futures):
            name, numbers = futures[future]
            counts, finds, seconds = future.result()
            for find in finds:
                print(find, flush=True)
            tallies[name].counts += counts
            tallies[name].seconds += seconds
            done += len(numbers)
            if time.monotonic() - shown > _EVERY or done == all_of:
                shown = time.monotonic()
                print(f"{done:,} of {all_of:,} inputs, {shown - begun:.0f} s", flush=True)
    return tallies


_checks: dict[str, Check] = {}
"""Of this process, by area: setting one up may take seconds."""


def _check(area: str, folder: str) -> Check:
    if area not in _checks:
        if str(TESTS) not in sys.path:
            sys.path.insert(0, str(TESTS))
        warnings.filterwarnings("error", category=RuntimeWarning, module="rejoinder")
        module = importlib.import_module(AREAS[area].module)
        _checks[area] = module.checker(Path(tempfile.mkdtemp(dir=folder)))
    return _checks[area]


def _chunk(
    area: str, seed: int, numbers: range, folder: str
) -> tuple[Counter[str], list[str], float]:
    """What came of some inputs, a line for each find, and the seconds that they took."""
    check, counts, finds = _check(area, folder), Counter[str](), list[str]()
    begun = time.perf_counter()
    for number in numbers:
        counts["inputs"] += 1
        try:
            with _limit():
                accepted = check(_random(seed, area, number))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of a Rust library is not an Exception
            counts["finds"] += 1
            finds.append(
                f"FIND {type(error).__name__}: {str(error)[:200]}\n"
                f"     python benchmarks/fuzz.py --areas {area!r} --seed {seed} --only {number}"
            )
        else:
            counts["accepted" if accepted else "refused"] += 1
    return counts, finds, time.perf_counter() - begun


def _once(areas: list[str], seed: int, number: int) -> int:
    """One input of each area again; the number of finds."""
    finds = 0
    with tempfile.TemporaryDirectory() as folder:
        for area in areas:
            check = _check(area, folder)
            try:
                accepted = check(_random(seed, area, number))
            except BaseException:
                traceback.print_exc()
                finds += 1
            else:
                print(f"{area} {number}: {'accepted' if accepted else 'refused'}")
    return min(finds, 1)


def _random(seed: int, area: str, number: int) -> Random:
    return Random(f"{seed}/{area}/{number}")  # noqa: S311


@contextmanager
def _limit() -> Iterator[None]:
    """An input that takes more than a minute raises TimeoutError."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no end after {_SECONDS_AN_INPUT} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_SECONDS_AN_INPUT)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--inputs", type=int, default=200_000, help="of all areas together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", nargs="+", choices=AREAS, default=list(AREAS))
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", type=int, help="check this one input of each area again")
    return parser.parse_args()


if __name__ == "__main__":
    main()
