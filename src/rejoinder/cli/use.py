"""`rejoinder encode`, `similarity`, `search`, `rank`, `info`: a trained model at work."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.output import form_of, print_rows

if TYPE_CHECKING:
    from rejoinder.runtime.encoder import SentenceEncoder

Model = Annotated[Path, typer.Argument(help="Model folder, as RUN/model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsTsv = Annotated[bool, typer.Option("--tsv", help="Print tab-separated lines.")]

_ENCODE = """Examples:

rejoinder encode model/ sentences.txt --out embeddings.npy

echo 'How old are you?' | rejoinder encode model/ - --json
"""
_SIMILARITY = """Examples:

rejoinder similarity model/ 'How old are you?' 'What is your age?'

rejoinder similarity model/ --pairs pairs.tsv --tsv
"""
_SEARCH = """Examples:

rejoinder search model/ 'How old are you?' --corpus questions.txt --top-k 5

rejoinder search model/ --queries queries.txt --corpus questions.txt --json
"""
_RANK = """Examples:

rejoinder rank model/ 'How old are you?' --responses replies.txt

printf 'Yes.\\\\nI am 20.\\\\n' | rejoinder rank model/ 'How old are you?' --responses -
"""
_INFO = """Examples:

rejoinder info model/

rejoinder info model/ --json
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("encode", epilog=_ENCODE)(encode)
    app.command("similarity", epilog=_SIMILARITY)(similarity)
    app.command("search", epilog=_SEARCH)(search)
    app.command("rank", epilog=_RANK)(rank)
    app.command("info", epilog=_INFO)(info)


def encode(
    model: Model,
    file: Annotated[str, typer.Argument(help="One sentence a line; - is standard input.")] = "-",
    out: Annotated[
        Path | None, typer.Option(help="Write a NumPy file (.npy) of shape (N, D) there.")
    ] = None,
    response: Annotated[
        bool, typer.Option("--response", help="Encode as responses, v' of the paper.")
    ] = False,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """Turn sentences into vectors."""
    import io

    import numpy as np

    from rejoinder.atomic import write_bytes

    encoder = _load(model)
    sentences = read_lines(file)
    run = encoder.encode_response if response else encoder.encode
    embeddings = run(sentences, show_progress_bar=sys.stderr.isatty())
    if unknown := encoder.count_unknown(sentences):
        typer.echo(f"rejoinder: {unknown} sentences hold no known word: zero vectors", err=True)
    if out is not None:
        held = io.BytesIO()
        np.save(held, embeddings, allow_pickle=False)
        write_bytes(out, held.getvalue())
        typer.echo(f"wrote {out}: {embeddings.shape[0]} x {embeddings.shape[1]} float32", err=True)
        return
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if form == "json":
        for sentence, row in zip(sentences, embeddings.tolist(), strict=True):
            typer.echo(json.dumps({"text": sentence, "embedding": row}, ensure_ascii=False))
        return
    if form == "tsv":
        for row in embeddings:
            typer.echo("\t".join(f"{value:.7g}" for value in row))
        return
    rows = [
        (sentence, " ".join(f"{value:+.3f}" for value in row[:6]) + " …")
        for sentence, row in zip(sentences, embeddings, strict=True)
    ]
    print_rows(("sentence", f"first 6 of {encoder.dim}"), rows, form)


def similarity(
    model: Model,
    first: Annotated[str | None, typer.Argument(help="A sentence.")] = None,
    second: Annotated[str | None, typer.Argument(help="Another one.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="Two sentences a line, tab between; - is standard input.")
    ] = None,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """Say how alike sentences are: cosine, and its angle (eq. 1 of the paper)."""
    from rejoinder.errors import InputError

    if pairs is None and (first is None or second is None):
        raise InputError("two sentences are needed, or --pairs FILE with two a line.")
    if pairs is not None and first is not None:
        raise InputError("sentences and --pairs exclude each other.")
    rows = [(first or "", second or "")] if pairs is None else _read_pairs(pairs)
    encoder = _load(model)
    left, right = (encoder.encode([row[side] for row in rows]) for side in (0, 1))
    cosine = (left * right).sum(axis=1).clip(-1.0, 1.0)
    import numpy as np

    shown = [
        (*row, round(float(value), 6), round(float(-np.arccos(value)), 6))
        for row, value in zip(rows, cosine, strict=True)
    ]
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    print_rows(("first", "second", "cosine", "angular"), shown, form)


def search(
    model: Model,
    query: Annotated[list[str] | None, typer.Argument(help="Sentences to look for.")] = None,
    corpus: Annotated[str, typer.Option(help="One sentence a line; - is standard input.")] = "-",
    queries: Annotated[str | None, typer.Option(help="File of queries, one a line.")] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Hits a query.")] = 10,
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """Find the sentences of a file most alike to a query; exact."""
    from rejoinder.errors import InputError

    wanted = [*(query or []), *(read_lines(queries) if queries else [])]
    if not wanted:
        raise InputError("a query is needed, as an argument or with --queries FILE.")
    found = _load(model).search(wanted, read_lines(corpus), top_k)
    rows = [
        (text, place, round(hit.score, 6), hit.index + 1, hit.text)
        for text, hits in zip(wanted, found, strict=True)
        for place, hit in enumerate(hits, 1)
    ]
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    print_rows(("query", "rank", "cosine", "line", "text"), rows, form)


def rank(
    model: Model,
    message: Annotated[str, typer.Argument(help="The message that is answered.")],
    responses: Annotated[str, typer.Option(help="One response a line; - is standard input.")] = "-",
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """Order responses by how well they answer a message."""
    ranked = _load(model).rank(message, read_lines(responses))
    rows = [
        (place, round(hit.score, 6), hit.index + 1, hit.text) for place, hit in enumerate(ranked, 1)
    ]
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    print_rows(("rank", "score", "line", "response"), rows, form)


def info(model: Model, as_json: AsJson = False, as_tsv: AsTsv = False) -> None:
    """Say what a model is and what it was trained on."""
    encoder = _load(model)
    facts = dict(encoder.describe())
    training = dict(facts.pop("training"))
    contents = encoder.model
    facts |= {
        "text": contents.features.config(),
        "encoder": dict(contents.encoder),
        "head": dict(contents.head),
        "parameters": sum(tensor.size for tensor in contents.tensors.values()),
        "bytes": sum(file.stat().st_size for file in model.iterdir()),
    }
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if form == "json":
        typer.echo(json.dumps({**facts, "training": training}, ensure_ascii=False))
        return
    said = {name: training.get(name) for name in ("pairs", "leaks_dropped", "steps", "seed")}
    rows = [(name, _plain(value)) for name, value in (facts | said).items()]
    print_rows(("", "value"), rows, form)


def read_lines(place: str) -> list[str]:
    """The lines of a file or of standard input, without their ends; what is not UTF-8 is U+FFFD.

    Raises:
        InputError: the file can't be read, or holds no line.
    """
    from rejoinder.errors import InputError

    try:
        content = sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
    except OSError as error:
        raise InputError(f"{place} can't be read: {error.strerror}.") from None
    lines = content.decode("utf-8", "replace").removesuffix("\n").split("\n")
    lines = [line.removesuffix("\r") for line in lines]
    if lines == [""]:
        name = "standard input" if place == "-" else place
        raise InputError(f"{name} is empty; one sentence a line is expected.")
    return lines


def _read_pairs(place: str) -> list[tuple[str, str]]:
    from rejoinder.errors import InputError

    rows = []
    for number, line in enumerate(read_lines(place), 1):
        parts = line.split("\t")
        if len(parts) != 2:
            raise InputError(
                f"{place} line {number}: {len(parts)} columns; two sentences with a tab between "
                "are expected."
            )
        rows.append((parts[0], parts[1]))
    return rows


def _load(model: Path) -> "SentenceEncoder":
    from rejoinder.runtime.encoder import SentenceEncoder

    return SentenceEncoder.load(model)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
