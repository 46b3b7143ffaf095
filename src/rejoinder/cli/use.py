"""`rejoinder similarity`, `search`, `rank`, `info`: a trained model at work."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.lines import as_text, read_lines, read_pairs
from rejoinder.cli.output import form_of, note, note_unknown, print_rows

if TYPE_CHECKING:
    from rejoinder.runtime.encoder import SentenceEncoder

Model = Annotated[Path, typer.Argument(help="Model folder, as RUN/model.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsTsv = Annotated[bool, typer.Option("--tsv", help="Print tab-separated lines.")]

_LISTED = 5
"""Sentences without a known word that are pointed at."""

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

printf 'Yes.\\nI am 20.\\n' |
rejoinder rank model/ 'How old are you?' --responses -
"""
_INFO = """Examples:

rejoinder info model/

rejoinder info model/ --json
"""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("similarity", epilog=_SIMILARITY)(similarity)
    app.command("search", epilog=_SEARCH)(search)
    app.command("rank", epilog=_RANK)(rank)
    app.command("info", epilog=_INFO)(info)


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

    if pairs is not None and first is not None:
        raise InputError("sentences and --pairs exclude each other.")
    if pairs is not None:
        rows = read_pairs(pairs)
    elif first is not None and second is not None:
        rows = [(as_text(first), as_text(second))]
    else:
        raise InputError("two sentences are needed, or --pairs FILE with two a line.")
    import numpy as np

    encoder = _load(model)
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    left, right = (encoder.encode([row[side] for row in rows]) for side in (0, 1))
    cosine = np.clip((left * right).sum(axis=1, dtype=np.float64), -1.0, 1.0)
    angular = 0.0 - np.arccos(cosine)
    shown = [
        (*row, round(one, 6), round(other, 6))
        for row, one, other in zip(rows, cosine.tolist(), angular.tolist(), strict=True)
    ]
    unknown = _unknown(encoder, [sentence for row in rows for sentence in row])
    names = [_names(unknown, first=row[0], second=row[1]) for row in rows]
    _print(("first", "second", "cosine", "angular"), shown, names, form)
    which = [f"{name} of pair {number}" for number, row in enumerate(names, 1) for name in row]
    listed = ", ".join(which[:_LISTED]) + (", …" if len(which) > _LISTED else "")
    note_unknown(len(which), 2 * len(rows), "sentences", f"the cosine is 0 ({listed})")


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

    if queries == corpus == "-":
        raise InputError("queries and corpus can't both be standard input; name a file for one.")
    wanted = [*map(as_text, query or []), *(read_lines(queries) if queries else [])]
    if not wanted:
        raise InputError("a query is needed, as an argument or with --queries FILE.")
    texts = read_lines(corpus)
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    encoder = _load(model)
    found = encoder.search(wanted, texts, top_k)
    rows = [
        (text, place, round(hit.score, 6), hit.index + 1, hit.text)
        for text, hits in zip(wanted, found, strict=True)
        for place, hit in enumerate(hits, 1)
    ]
    unknown = _unknown(encoder, [*wanted, *(row[-1] for row in rows)])
    names = [_names(unknown, query=row[0], text=row[-1]) for row in rows]
    _print(("query", "rank", "cosine", "line", "text"), rows, names, form)
    count = sum(text in unknown for text in wanted)
    note_unknown(count, len(wanted), "queries", "their cosine with anything is 0")
    count = sum(row[-1] in unknown for row in rows)
    note_unknown(count, len(rows), "hits", "their cosine with anything is 0")


def rank(
    model: Model,
    message: Annotated[str, typer.Argument(help="The message that is answered.")],
    responses: Annotated[str, typer.Option(help="One response a line; - is standard input.")] = "-",
    as_json: AsJson = False,
    as_tsv: AsTsv = False,
) -> None:
    """Order responses by how well they answer a message."""
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    texts, message = read_lines(responses), as_text(message)
    encoder = _load(model)
    ranked = encoder.rank(message, texts)
    rows = [
        (place, round(hit.score, 6), hit.index + 1, hit.text) for place, hit in enumerate(ranked, 1)
    ]
    unknown = _unknown(encoder, [message, *texts])
    names = [_names(unknown, message=message, response=row[-1]) for row in rows]
    _print(("rank", "score", "line", "response"), rows, names, form)
    if message in unknown:
        note("no known word in the message: every score is 0")
    count = sum(text in unknown for text in texts)
    note_unknown(count, len(texts), "responses", "their score is 0")


def info(model: Model, as_json: AsJson = False, as_tsv: AsTsv = False) -> None:
    """Say what a model is and what it was trained on."""
    from rejoinder.models.folder import read_model

    contents = read_model(model)  # not as an encoder, which for some kinds needs torch
    facts = contents.describe()
    training = facts.pop("training")
    facts |= {
        "text": contents.features.config(),
        "encoder": dict(contents.encoder),
        "heads": {name: dict(head) for name, head in contents.heads.items()},
        "parameters": sum(tensor.size for tensor in contents.tensors.values()),
        "bytes": sum(file.stat().st_size for file in model.iterdir()),
    }
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if form == "json":
        typer.echo(json.dumps({**facts, "training": training}, ensure_ascii=False))
        return
    said = {name: training.get(name) for name in ("pairs", "leaks_dropped", "steps", "seed")}
    if contents.adaptation is not None:
        said["adaptation"] = contents.adaptation.summary()
    rows = [(name, _plain(value)) for name, value in (facts | said).items()]
    print_rows(("", "value"), rows, form)


def _load(model: Path) -> "SentenceEncoder":
    from rejoinder.runtime.encoder import SentenceEncoder

    return SentenceEncoder.load(model)


def _unknown(encoder: "SentenceEncoder", texts: list[str]) -> set[str]:
    """Those of `texts` in which the model knows nothing."""
    each = list(dict.fromkeys(texts))
    return {text for text, unknown in zip(each, encoder.unknown(each), strict=True) if unknown}


def _names(unknown: set[str], **texts: str) -> list[str]:
    """The names of the texts that are `unknown`."""
    return [name for name, text in texts.items() if text in unknown]


def _print(
    columns: tuple[str, ...], rows: list[tuple[Any, ...]], unknown: list[list[str]], form: str
) -> None:
    """Rows as asked for; JSON says in addition which texts of a row hold no known word."""
    if form == "json":
        columns = (*columns, "unknown")
        rows = [(*row, names) for row, names in zip(rows, unknown, strict=True)]
    print_rows(columns, rows, form)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {item}" for name, item in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
