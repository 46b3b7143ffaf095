"""What `make demo` runs: from a dump of conversations to a model that knows what is alike.

    python examples/demo.py
    python examples/demo.py --data ../shared/data/conversations/chitchat.jsonl.zst

Each step is a command that you can type yourself; it is printed before it runs. The last step is
the Python of the README. The dump that comes with the project goes to `demo/`, a dump of yours to
`demo/yours/`; each run replaces the one before it.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

from rejoinder.cli.main import app
from rejoinder.cli.output import print_table
from rejoinder.corpus.shards import open_pairs
from rejoinder.errors import RejoinderError
from rejoinder.runtime.encoder import SentenceEncoder
from rejoinder.text.normalize import as_series, normalize

ROOT = Path(__file__).resolve().parent.parent
SMALL_DUMP = ROOT / "examples" / "small.jsonl"
SMALL_DUMP_BYTES = 4_000_000
"""Below this a dump gives a tenth of its threads to each of dev and test, not a fortieth."""
FEW_PAIRS = 50_000
"""Below this a few hundred steps of a small model see all there is to see."""
LARGE_RUN = ("phases.0.steps=400", "--minutes", "2.5")
"""Of the config `dan-modern`, what fits a demonstration: some steps, in so many minutes."""
QUESTIONS = (
    "How old are you?",
    "What is your name?",
    "Where do you live?",
    "What do you do for a living?",
    "Do you have any pets?",
    "Thank you so much!",
)
NEIGHBOURS = 3


def main() -> None:
    """Extract, train, evaluate, search; then say where everything lies."""
    parser = argparse.ArgumentParser(description="The whole way, in minutes.")
    parser.add_argument("--data", help="a dump of yours; default: examples/small.jsonl")
    parser.add_argument("--out", type=Path, help="folder to write; default: demo, or demo/yours")
    chosen = parser.parse_args()
    data, out = chosen.data or str(SMALL_DUMP), chosen.out or place_of(chosen.data)
    begun = time.monotonic()
    try:
        model = demonstrate(data, out)
    except RejoinderError as error:
        print(f"rejoinder: {error}", file=sys.stderr)
        sys.exit(2)
    say_next(model, out, time.monotonic() - begun)


def place_of(data: str | None) -> Path:
    """Where the demonstration of a dump goes: one of yours leaves the project's own alone."""
    return Path("demo") if data is None else Path("demo") / "yours"


def demonstrate(data: str, out: Path) -> Path:
    """The four steps; returns the model's folder."""
    pairs, run = out / "pairs", out / "run"
    small = Path(data).is_file() and Path(data).stat().st_size < SMALL_DUMP_BYTES
    split = ("--split", "80,10,10") if small else ()
    command("extract", data, "--out", str(pairs), *split, "--overwrite")
    few = open_pairs(pairs).count("train") < FEW_PAIRS
    config = "demo" if few else "dan-modern"
    settings = () if few else LARGE_RUN
    command(
        "train", "--config", config, "--pairs", str(pairs), "--out", str(run),
        *settings, "--overwrite",
    )  # fmt: skip
    model = run / "model"
    command(
        "evaluate", str(model), "--tasks", "response", "--pairs", str(pairs),
        "--out", str(out / "results.json"), "--overwrite",
    )  # fmt: skip
    show_neighbours(model, pairs)
    return model


def command(*words: str) -> None:
    """Say a command, and run it as the command line would."""
    print(f"\n$ rejoinder {shlex.join(words)}", flush=True)
    app(list(words), standalone_mode=False)


def show_neighbours(model: Path, pairs: Path) -> None:
    """For some questions, the messages of the test split that the model holds for most alike."""
    print("\nMessages of the test split that are most alike to a question:", flush=True)
    encoder = SentenceEncoder.load(model)
    messages = open_pairs(pairs).frame("test", ["input"]).get_column("input")
    distinct = dict(zip(normalize(messages).to_list(), messages.to_list(), strict=True))
    for question in normalize(as_series(QUESTIONS)).to_list():
        distinct.pop(question, None)  # a question is not its own neighbour
    found = encoder.search(QUESTIONS, list(distinct.values()), NEIGHBOURS)
    rows = [
        (question if not place else "", hit.score, hit.text)
        for question, hits in zip(QUESTIONS, found, strict=True)
        for place, hit in enumerate(hits)
    ]
    print_table("", ("question", "cosine", "message"), rows)


def say_next(model: Path, out: Path, seconds: float) -> None:
    """Where things lie and what to try."""
    print(
        f"""
Done in {seconds / 60:.1f} minutes. The model is {model}, the run {model.parent}, the pairs \
{out / "pairs"}, the scores {out / "results.json"}.

Try next:
  rejoinder similarity {model} 'How old are you?' 'What is your age?'
  printf 'I am twenty.\\nIn Oslo.\\nPizza!\\n' | rejoinder rank {model} 'How old are you?'
  rejoinder info {model}
  rejoinder train --help

  from rejoinder import SentenceEncoder
  encoder = SentenceEncoder.load("{model}")
  print(encoder.encode("How old are you?").shape)"""
    )


if __name__ == "__main__":
    main()
