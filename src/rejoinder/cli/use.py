"""`rejoinder similarity`, `search`, `rank` and `info`: use a trained model."""

from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rejoinder.cli.lines import as_text, read_lines, read_pairs, stream_texts
from rejoinder.cli.models import model_folder, note_too_long, open_encoder
from rejoinder.cli.options import (
    ColumnsOption,
    ModelOption,
    ModelSha256Option,
    OnTooLongOption,
    epilog,
    prints,
)
from rejoinder.cli.output import (
    asked_for,
    form_of_output,
    note,
    print_json,
    print_rows,
    print_table,
)
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.index.hits import IndexHit
    from rejoinder.index.indexing import Index
    from rejoinder.inference.encoder import SentenceEncoder

_LISTED = 5
"""Number of pairs that a note names."""
_ABOUT = ("author", "time", "source", "thread", "answers", "link")
"""What is known about a message of an export."""
_MOST_CHARACTERS = 240
"""Characters of a message that a table shows."""
_SCORES = {"semantic": "cosine", "words": "bm25", "hybrid": "score"}
"""Name of the score of each mode of search."""

SIMILARITY_EXAMPLES = epilog(
    "rejoinder similarity 'How old are you?' 'What is your age?'",
    "rejoinder similarity --model model/ 'How old are you?' 'What is your age?'",
    "rejoinder similarity --model model/ --pairs pairs.tsv --tsv",
)
SEARCH_EXAMPLES = epilog(
    "rejoinder search 'How old are you?' --corpus questions.txt",
    "rejoinder search --model model/ --queries queries.txt --corpus questions.txt",
    "rejoinder search 'How old are you?' --index index/",
    "rejoinder search 'error E1234 while printing' --index index/ --mode hybrid",
)
RANK_EXAMPLES = epilog(
    "rejoinder rank 'How old are you?' --responses replies.txt",
    "rejoinder rank --model model/ 'How old are you?' --top-k 3 < replies.txt",
)
INFO_EXAMPLES = epilog(
    "rejoinder info",
    "rejoinder info model/",
    "rejoinder info model/ --json",
)


@prints("json", "tsv")
def similarity(
    first: Annotated[str | None, typer.Argument(help="A sentence.")] = None,
    second: Annotated[str | None, typer.Argument(help="Another sentence.")] = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    pairs: Annotated[
        str | None,
        "File with two sentences per line, separated by a tab; - is stdin.",
    ] = None,
    angular: Annotated[bool, "Also print the angle, from -pi to 0 (eq. 1, Yang)."] = False,
    on_too_long: OnTooLongOption = "truncate",
) -> None:
    """Compute the similarity of two sentences: the cosine, and as a score from 0 to 5."""
    if pairs is not None and first is not None:
        raise InputError("sentences are given as arguments or by --pairs FILE, not both.")
    if pairs is not None:
        rows = read_pairs(pairs)
    elif first is not None and second is not None:
        rows = [(as_text(first), as_text(second))]
    else:
        raise InputError("two sentences are needed, or --pairs FILE with two per line.")
    encoder = open_encoder(model, model_sha256, on_too_long)
    firsts, seconds = map(list, zip(*rows, strict=True))
    left, right = encoder.encode(firsts), encoder.encode(seconds)
    values = {"cosine": encoder.similarity_pairwise(left, right)}
    values["score"] = 5 * values["cosine"].clip(0)
    if angular:
        values["angular"] = encoder.similarity_pairwise(left, right, "angular")
    numbers = ([round(value, 6) for value in column.tolist()] for column in values.values())
    unknown = _unknown(encoder, [*firsts, *seconds])
    _print(
        ("first", "second", *values), list(zip(firsts, seconds, *numbers, strict=True)),
        unknown, first=firsts, second=seconds,
    )  # fmt: skip
    pairs_of = [number for number, row in enumerate(rows, 1) if unknown.intersection(row)]
    _note_unknown(unknown, [*firsts, *seconds], "sentences", f" ({_numbered(pairs_of)})")
    swapped = [number for number, row in enumerate(rows, 1) if encoder.confuses(*row)]
    if swapped:
        note(
            f"the same words in another order ({_numbered(swapped)}): the model can't tell such "
            "sentences apart"
        )
    _note_long(encoder, [*firsts, *seconds], "sentences")


@prints("json", "tsv")
def search(
    query: Annotated[list[str] | None, typer.Argument(help="Sentences to search for.")] = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    corpus: Annotated[
        str | None,
        "File of sentences, one per line; - is standard input, the default.",
    ] = None,
    columns: ColumnsOption = None,
    index: Annotated[
        Path | None, "Folder of `rejoinder index` to search instead of a file."
    ] = None,
    queries: Annotated[str | None, "File with one query per line; - is standard input."] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Number of hits per query.")] = 10,
    mode: Annotated[
        Literal["semantic", "words", "hybrid"],
        "What to compare in an index: meaning (cosine), words (BM25), or both.",
    ] = "semantic",
    weight: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Share of meaning in a hybrid search. Default: 0.5."),
    ] = None,
    exact: Annotated[
        bool,
        "Compare with all texts of a large index. A file always is.",
    ] = False,
    on_too_long: OnTooLongOption = "truncate",
) -> None:
    """Find the sentences of a file, or of an index, that are most similar to a query."""
    if index is not None and corpus is not None:
        raise InputError("--corpus FILE and --index FOLDER both name what to search; give one.")
    if columns is not None and index is not None:
        raise InputError("--columns is for --corpus; an index has its texts.")
    _refuse_without_effect(index, mode, weight, exact=exact)
    corpus = corpus or "-"
    if index is None and queries == corpus == "-":
        raise InputError("queries and corpus can't both be standard input; name a file for one.")
    wanted = [*map(as_text, query or []), *(read_lines(queries) if queries else [])]
    if not wanted:
        raise InputError("a query is needed, as an argument or by --queries FILE.")
    texts: list[str] = []
    if index is not None:
        from rejoinder.index.indexing import Index

        place = None if model is None else model_folder(model, model_sha256)
        opened = Index.open(index, place, on_too_long=on_too_long)
        encoder, where = opened.encoder, "id"
        by_query = opened.search(
            wanted, top_k, mode=mode, weight=0.5 if weight is None else weight, exact=exact
        )
        if any(hit.about for hits in by_query for hit in hits):
            _print_messages(opened, wanted, by_query, _SCORES[mode])
            return
        found: list[list[tuple[float, str | int, str]]] = [
            [(hit.score, hit.id, hit.text) for hit in hits] for hits in by_query
        ]
    else:
        texts = list(stream_texts(corpus, columns))
        encoder, where = open_encoder(model, model_sha256, on_too_long), "line"
        found = [
            [(hit.score, hit.index + 1, hit.text) for hit in hits]
            for hits in encoder.search(wanted, texts, top_k)
        ]
    rows = [
        (text, rank, round(score, 6), place, hit)
        for text, hits in zip(wanted, found, strict=True)
        for rank, (score, place, hit) in enumerate(hits, 1)
    ]
    names = ("query", "rank", _SCORES[mode], where, "text")
    unknown = _unknown(encoder, [*wanted, *(row[-1] for row in rows)])
    if form_of_output() == "table":
        for text, of_query in groupby(rows, itemgetter(0)):
            print_table(text, names[1:], [row[1:] for row in of_query])
            typer.echo()
    else:
        sides = {"query": [row[0] for row in rows], "text": [row[-1] for row in rows]}
        _print(names, rows, unknown, **sides)
    _note_unknown(unknown, wanted, "queries")
    _note_unknown(unknown, [row[-1] for row in rows], "hits")
    _note_long(encoder, wanted, "queries")
    _note_long(encoder, texts, "sentences")


def _print_messages(
    index: "Index", queries: list[str], found: "list[list[IndexHit]]", score: str
) -> None:
    """Prints messages of an export: who wrote them, when and where, and what they answer."""
    answered = iter(index.find([hit.about.get("answers", "") for hits in found for hit in hits]))
    rows = [
        {
            "query": query,
            "rank": rank,
            score: round(hit.score, 6),
            "id": hit.id,
            "text": hit.text,
            **{name: hit.about.get(name) for name in _ABOUT},
            "time": _minute(hit.about.get("time")),
            "answered": next(answered),
        }
        for query, hits in zip(queries, found, strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    if form_of_output() != "table":
        blank = None if asked_for("json") else ""
        names = ("query", "rank", score, "id", "text", *_ABOUT, "answered")
        values = [[blank if row[name] is None else row[name] for name in names] for row in rows]
        print_rows(names, values)
        return
    shown = ("rank", score, "time", "author", "source", "text", "answered")
    titles = ("rank", score, "time (UTC)", "author", "in", "text", "in answer to")
    for query, of_query in groupby(rows, itemgetter("query")):
        cells = [[_shortened(row[name]) for name in shown] for row in of_query]
        print_table(query, titles, cells)
        typer.echo()


def _shortened(value: Any) -> Any:
    """Returns the beginning of a long text, of mails above all; JSON and TSV have all of it."""
    if isinstance(value, str):
        return shorten(value, _MOST_CHARACTERS, placeholder=" …")
    return "" if value is None else value


def _minute(time: float | None) -> str | None:
    return None if time is None else f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}"


def _refuse_without_effect(
    index: Path | None, mode: str, weight: float | None, *, exact: bool
) -> None:
    """Refuses options that would not change a search.

    Raises:
        InputError: there is one.
    """
    if exact and index is None:
        raise InputError("--exact is for --index; the search in a file is always exact.")
    if exact and mode == "words":
        raise InputError("--exact is for search by meaning; search by words is always exact.")
    if mode != "semantic" and index is None:
        raise InputError(f"--mode {mode} is for --index; a file is searched by meaning.")
    if weight is not None and mode != "hybrid":
        raise InputError(f"--weight is for --mode hybrid, and the mode is {mode}.")


@prints("json", "tsv")
def rank(
    message: Annotated[str, typer.Argument(help="The message to answer.")],
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    responses: Annotated[str, "File of responses, one per line; - is standard input."] = "-",
    columns: ColumnsOption = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Number of responses to print. Default: all.")
    ] = None,
    on_too_long: OnTooLongOption = "truncate",
) -> None:
    """Rank responses by how well they answer a message."""
    texts, message = list(stream_texts(responses, columns)), as_text(message)
    encoder = open_encoder(model, model_sha256, on_too_long)
    rows = [
        (position, round(hit.score, 6), hit.index + 1, hit.text)
        for position, hit in enumerate(encoder.rank(message, texts, top_k), 1)
    ]
    best = [row[-1] for row in rows]
    unknown = _unknown(encoder, [message, *best])
    _print(
        ("rank", "score", "line", "response"), rows, unknown,
        message=[message] * len(rows), response=best,
    )  # fmt: skip
    _note_unknown(unknown, [message], "messages")
    _note_unknown(unknown, best, "responses")
    _note_long(encoder, [message], "messages")
    _note_long(encoder, texts, "responses")


@prints("json", "tsv")
def info(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="Model name, folder or https address.")
    ] = None,
    model_sha256: ModelSha256Option = None,
) -> None:
    """Show what a model is and what it was trained on."""
    from rejoinder.inference.runtimes import computed_by
    from rejoinder.models.folder import folder_bytes, read_model
    from rejoinder.models.terms import licence_of, stated_in_card, terms_of, training_rows

    folder = model_folder(model, model_sha256)
    contents = read_model(folder)  # not SentenceEncoder, which needs torch for some kinds
    facts = contents.describe()
    training = facts.pop("training")
    facts |= {
        "text": contents.features.config(),
        "encoder": dict(contents.encoder),
        "heads": {name: dict(head) for name, head in contents.heads.items()},
        "parameters": sum(tensor.size for tensor in contents.tensors.values()),
        "bytes": folder_bytes(folder),
        "computed_by": computed_by(contents),
        "language": stated_in_card(folder, "language"),
        "licence": licence_of(folder),
        "folder": str(folder),
    }
    rows = training_rows(training, facts["adaptation"])
    facts["data_licences"] = terms_of(rows).reason
    if asked_for("json"):
        print_json({**facts, "training": training})
        return
    facts |= {name: training.get(name) for name in ("pairs", "leaks_dropped", "steps", "seed")}
    if contents.adaptation is not None:
        facts["adaptation"] = contents.adaptation.summary()
    shown = [(name, _plain(value)) for name, value in facts.items() if value not in (None, {}, [])]
    print_rows(("key", "value"), shown)


def _unknown(encoder: "SentenceEncoder", texts: list[str]) -> set[str]:
    """Returns those of `texts` that have no known word, or more unknown words than known ones."""
    distinct = list(dict.fromkeys(texts))
    flags = encoder.unknown(distinct) | (encoder.unknown_share(distinct) > 0.5)
    return {text for text, unknown in zip(distinct, flags, strict=True) if unknown}


def _print(
    columns: tuple[str, ...], rows: list[Any], unknown: set[str], **sides: list[str]
) -> None:
    """Prints rows. JSON also names the `sides`, texts by name, that are unknown in a row."""
    if asked_for("json"):
        columns = (*columns, "unknown")
        told = zip(*sides.values(), strict=True)
        names = [[name for name, t in zip(sides, row, strict=True) if t in unknown] for row in told]
        rows = [(*row, named) for row, named in zip(rows, names, strict=True)]
    print_rows(columns, rows)


def _note_unknown(unknown: set[str], texts: list[str], name: str, which: str = "") -> None:
    """Notes how many `texts` (`name`, a plural noun) have mostly unknown words, if any."""
    if count := sum(text in unknown for text in texts):
        note(
            f"most words of {count:,} of {len(texts):,} {name} are unknown to the model{which}; "
            "are they in the language that it was trained on? Their scores mean little"
        )


def _note_long(encoder: "SentenceEncoder", texts: list[str], name: str) -> None:
    note_too_long(encoder, int(encoder.too_long(texts).sum()), len(texts), name)


def _numbered(pairs: list[int]) -> str:
    """Returns the first few numbers of pairs as words."""
    listed = ", ".join(map(str, pairs[:_LISTED]))
    return f"pair {listed}{', …' if len(pairs) > _LISTED else ''}"


def _plain(value: object) -> str:
    """Returns a value as words: `words 30,000, rules 1`; nothing that is absent or off."""
    if isinstance(value, dict):
        parts = {name: _plain(item) for name, item in value.items()}
        return ", ".join(f"{name.replace('_', ' ')} {part}" for name, part in parts.items() if part)
    if isinstance(value, list | tuple):
        return " ".join(map(_plain, value)) or "none"
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    return f"{value:,}" if isinstance(value, int) else str(value)
