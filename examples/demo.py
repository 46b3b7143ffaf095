"""Trains a small model from a dump of conversations and searches with it (`make demo`).

    python examples/demo.py
    python examples/demo.py --data ../shared/data/conversations/chitchat.jsonl.zst

Each step is a command that you can type yourself. It is printed before it runs. The last step uses
the Python of the README. Output goes to `demo/`, or to `demo/yours/` with `--data`. Each run
replaces the output of the run before.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

from rejoinder import SentenceEncoder
from rejoinder.cli.main import app
from rejoinder.cli.output import duration, print_table
from rejoinder.conversations.answers import with_answers
from rejoinder.conversations.collection import open_collection
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import RejoinderError
from rejoinder.models.find import DEFAULT, shipped_models
from rejoinder.text.columns import as_series, normalize
from slack_export import write_export

ROOT = Path(__file__).resolve().parent.parent
SMALL_DUMP = ROOT / "examples" / "small.jsonl"
SMALL_DUMP_BYTES = 4_000_000
"""Size below which dev and test get 10 % of the threads each, instead of 2.5 %."""
FEW_PAIRS = 50_000
"""Number of training pairs below which a small model and a few hundred steps suffice."""
LARGE_RUN = ("phases.0.steps=400", "--minutes", "2.5")
"""Settings that shorten the run of the larger config to a demonstration."""
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
    """Runs the demonstration and prints what to try next."""
    parser = argparse.ArgumentParser(description="From a dump to a model, in minutes.")
    parser.add_argument("--data", help="your own dump; default: examples/small.jsonl")
    parser.add_argument("--out", type=Path, help="folder to write; default: demo, or demo/yours")
    arguments = parser.parse_args()
    data = arguments.data or str(SMALL_DUMP)
    out = arguments.out or output_folder(arguments.data)
    start = time.monotonic()
    try:
        model = demonstrate(data, out)
    except RejoinderError as error:
        print(f"rejoinder: {error}", file=sys.stderr)
        sys.exit(2)
    print_next_steps(model, out, time.monotonic() - start)


def output_folder(data: str | None) -> Path:
    """Returns the default output folder, which depends on whether a dump is given."""
    return Path("demo") if data is None else Path("demo") / "yours"


def demonstrate(data: str, out: Path) -> Path:
    """Extracts, trains, evaluates and searches. Returns the model folder."""
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
    if data == str(SMALL_DUMP):
        export_to_search(out)
        who_answers_whom(out)
    return model


def export_to_search(out: Path) -> None:
    """From an export of a chat to a search that knows its words, in five commands."""
    print("\nThe same from an export of Slack, with a model that comes with rejoinder:", flush=True)
    export, pairs, model, index = (out / name for name in ("slack.zip", "slack", "mine", "index"))
    write_export(export)
    command("extract", str(export), "--out", str(pairs), "--split", "80,10,10", "--overwrite")
    command("finetune", "--pairs", str(pairs), "--out", str(model), "--overwrite")
    command("index", str(export), "--model", str(model), "--out", str(index), "--overwrite")
    command("search", "How do I get a new password?", "--index", str(index), "--top-k", "3")
    command("suggest", "How do I get a new password?", "--from", str(pairs), "--model", str(model))


CHAT = """\
01/03/24, 19:02 - Dan: Does anybody have the wifi password?
01/03/24, 19:03 - Ann: When do we eat?
01/03/24, 19:05 - Eve: Dan, the password is on the fridge
01/03/24, 19:06 - Bob: At eight, I think
01/03/24, 19:07 - Dan: thanks!
"""


def who_answers_whom(out: Path) -> None:
    """From a chat that does not say what its messages answer to a reply."""
    print("\nA chat of WhatsApp, which does not say who answers whom:\n", flush=True)
    chat = out / "chat.txt"
    chat.write_text(CHAT, "utf-8")
    found = with_answers(open_collection(chat))
    for text, about in zip(found.texts, found.about, strict=True):
        likely = ""
        if "answers" in about:
            answered = found.texts[found.ids.index(about["answers"])]
            likely = f"   (answers {answered!r}, by {about['confidence']:.0%})"
        print(f"  {about['author']}: {text}{likely}")
    command("suggest", "How do I get into the wifi?", "--from", str(chat), "--top-k", "1")


def command(*words: str) -> None:
    """Prints a command and runs it."""
    print(f"\n$ rejoinder {shlex.join(words)}", flush=True)
    app(list(words), standalone_mode=False)


def show_neighbours(model: Path, pairs: Path) -> None:
    """Prints the messages of the test split that are most similar to some questions.

    The results of the model that comes with rejoinder are shown next to them, if this
    installation has it.
    """
    print("\nMessages of the test split that are most similar to a question:", flush=True)
    encoders = {"new model": SentenceEncoder.load(model)}
    if DEFAULT in shipped_models():
        encoders[DEFAULT] = SentenceEncoder()
    messages = open_pairs(pairs).frame("test", ["input"]).get_column("input")
    distinct = dict(zip(normalize(messages).to_list(), messages.to_list(), strict=True))
    for question in normalize(as_series(QUESTIONS)).to_list():
        distinct.pop(question, None)  # a question is not its own neighbour
    corpus = list(distinct.values())
    found = [encoder.search(QUESTIONS, corpus, NEIGHBOURS) for encoder in encoders.values()]
    rows = [
        ("" if rank else question, *(cell for hit in hits for cell in (hit.score, hit.text)))
        for question, *lists in zip(QUESTIONS, *found, strict=True)
        for rank, hits in enumerate(zip(*lists, strict=True))
    ]
    columns = [column for name in encoders for column in ("cosine", f"message ({name})")]
    print_table("", ("question", *columns), rows)


def print_next_steps(model: Path, out: Path, seconds: float) -> None:
    """Prints the paths of the results and commands to try."""
    print(
        f"""
Done in {duration(seconds)}. The model is {model}, the run {model.parent}, the pairs \
{out / "pairs"}, the scores {out / "results.json"}.

Try next:
  rejoinder similarity --model {model} 'How old are you?' 'What is your age?'
  printf 'I am twenty.\\nIn Oslo.\\nPizza!\\n' | rejoinder rank --model {model} 'How old are you?'
  rejoinder info {model}
  rejoinder train --help

  from rejoinder import SentenceEncoder
  encoder = SentenceEncoder.load("{model}")
  print(encoder.encode("How old are you?").shape)"""
    )


if __name__ == "__main__":
    main()
