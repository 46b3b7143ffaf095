"""Times the same commands with two trees of the project, in turn, on the same machine.

    git worktree add ../before 8a207402     # then build its kernels there
    python benchmarks/trees.py ../before . --reddit RC_2021-02.bz2 --pairs pairs/ --data data/

Prints the processor seconds of both for each command, the median of the rounds, and their ratio.
Each command starts anew, so that the times have what loading takes. The texts are the sentences of
the pairs, repeated with a number at their ends where more are wanted.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain, count, islice
from pathlib import Path

RUN = "import sys; from rejoinder.cli.main import run; sys.exit(run())"


def texts_of(pairs: Path) -> Iterator[str]:
    """Yields the texts of pairs, then again and again with numbers."""
    import polars as pl

    frame = pl.read_parquet(pairs / "**/*.parquet", columns=["input", "response"])
    texts = [" ".join(text.split()) for row in frame.iter_rows() for text in row]
    return chain(texts, (f"{text} {number}" for number in count(2) for text in texts))


def commands(made: Path, arguments: argparse.Namespace) -> dict[str, list[object]]:
    """The commands by name; OUT stands for a new path, INDEX for the index of a tree."""
    few, many, queries = made / "few.txt", made / "many.txt", made / "queries.txt"
    for path, number in ((few, 100_000), (many, arguments.texts), (queries, 1_000)):
        path.write_text("\n".join(islice(texts_of(arguments.pairs), number)) + "\n", "utf-8")
    return {
        "one sentence": ["encode", "How old are you?"],
        "encode 100,000": ["encode", "--sentences", few, "--out", "OUT.npy"],
        "extract": ["extract", arguments.reddit, "--out", "OUT"],
        "train the paper's DAN": [
            *("train", "--config", "dan-paper", "--pairs", arguments.pairs, "--out", "OUT"),
            *("--no-exclude-leaks", f"phases.0.steps={arguments.steps}", "phases.1.steps=1"),
        ],
        "judge": [
            *("evaluate", "rejoinder-base", "--tasks", "stsb,mr", "--data", arguments.data),
            *("--out", "OUT.json"),
        ],
        "index": ["index", many, "--out", "OUT"],
        **{
            f"search {mode}": ["search", "--queries", queries, "--index", "INDEX", "--mode", mode]
            for mode in ("semantic", "words", "hybrid")
        },
    }


def seconds(tree: Path, words: list[object], made: Path, number: int) -> float:
    """Runs a command with the code of a tree; returns its processor seconds."""
    paths = {"OUT": str(made / f"out-{number}"), "INDEX": str(made / f"index-{hash(tree)}")}
    given = [re.sub("|".join(paths), lambda name: paths[name[0]], str(word)) for word in words]
    program = [sys.executable, "-c", RUN, *given]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{words}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--reddit", type=Path, required=True, help="a month of comments")
    parser.add_argument("--pairs", type=Path, required=True, help="a folder of pairs")
    parser.add_argument("--data", type=Path, required=True, help="the sets of the judge")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=1_000_000, help="texts of the index")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    trees = [arguments.before.resolve(), arguments.after.resolve()]
    with tempfile.TemporaryDirectory() as folder:
        made, numbers = Path(folder), count()
        todo = commands(made, arguments)
        for tree in trees:
            seconds(tree, ["index", made / "many.txt", "--out", "INDEX"], made, next(numbers))
        print("| command | before | after | ratio |\n|---|--:|--:|--:|")
        for name, words in todo.items():
            rounds = [
                [seconds(tree, words, made, next(numbers)) for tree in trees]
                for _ in range(arguments.rounds)
            ]
            before, after = (statistics.median(column) for column in zip(*rounds, strict=True))
            print(f"| {name} | {before:.2f} | {after:.2f} | {after / before:.3f} |", flush=True)


if __name__ == "__main__":
    main()
