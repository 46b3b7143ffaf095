"""`rejoinder search`: finds the texts of a file, or of an index, that are nearest to a query."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from rejoinder.cli import messages, options, output
from rejoinder.cli.models import given_model, open_encoder
from rejoinder.cli.use import note_long, note_not_found, note_read_as, print_marked, unknown_texts
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.corpus.texts import Entry
    from rejoinder.index.hits import IndexHit
    from rejoinder.inference.encoder import SentenceEncoder
    from rejoinder.inference.search import Hit
    from rejoinder.scoring.scorer import Found

_SCORES = {"semantic": "cosine", "words": "bm25", "hybrid": "score"}
"""Name of the score of each mode of search."""


@options.prints(
    "json",
    "tsv",
    needs={
        "--index FOLDER": ("--exact", "--mode", "--where", "--context"),
        "--mode hybrid": ("--weight",),
        "--rerank N": ("--scorer-from",),
    },
    excludes=(
        ("--corpus", "--index"), ("--columns", "--index"), ("--exact", "--mode words"),
        ("--exact", "--where"),
    ),
)  # fmt: skip
def search(
    query: Annotated[list[str] | None, typer.Argument()] = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    corpus: str | None = None,
    columns: options.ColumnsOption = None,
    index: Path | None = None,
    queries: str | None = None,
    top_k: Annotated[int, typer.Option(min=1)] = 10,
    mode: Literal["semantic", "words", "hybrid"] | None = None,
    weight: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    exact: bool = False,
    where: options.WhereOption = None,
    context: Annotated[int | None, typer.Option(min=1)] = None,
    rerank: Annotated[int | None, typer.Option(min=1)] = None,
    scorer_from: Path | None = None,
    on_too_long: options.OnTooLongOption = "truncate",
) -> None:
    """Find the sentences of a file, or of an index, that are most similar to a query.

    Args:
        query: Sentences to search for.
        corpus: File of sentences, one per line, or an export of conversations; - is standard input,
            the default.
        index: Folder of `rejoinder index` to search instead of a file.
        queries: File with one query per line; - is standard input.
        top_k: Number of hits per query.
        mode: What to compare in an index: meaning (cosine), words (BM25), or both. Default: both
            for messages, else meaning.
        weight: Share of meaning in a hybrid search. Default: as `finetune` found, else 0.25.
        exact: Compare with all texts of a large index. A file always is.
        context: Also print so many messages before and after each hit, of its thread or channel.
        rerank: Find so many hits, score each again by the words one by one, from 0 to 5, and print
            the best.
        scorer_from: Score again by a scorer of `rejoinder fit-scorer`, fitted with MODEL.

    Examples:
        rejoinder search 'How old are you?' --corpus questions.txt
        rejoinder search --model model/ --queries queries.txt --corpus questions.txt
        rejoinder search 'How old are you?' --index index/
        rejoinder search 'error E1234 while printing' --index index/ --mode hybrid
        rejoinder search 'a book' --index chats/ --context 3
        rejoinder search 'a book' --index chats/ --rerank 50
        rejoinder search 'a book' --index chats/ --where author=ann,since=2024-01-31
    """
    if context is not None and output.asked_for("tsv"):
        raise InputError("--context prints messages around hits, as text or with --json.")
    if rerank is not None and rerank < top_k:
        raise InputError(f"--rerank {rerank} finds fewer than --top-k {top_k}; raise it.")
    compared, count = mode or "semantic", top_k if rerank is None else rerank
    corpus = corpus or "-"
    if index is None and queries == corpus == "-":
        raise InputError("queries and corpus can't both be standard input; name a file for one.")
    wanted = messages.given_texts(query, queries)
    if not wanted:
        raise InputError("a query is needed, as an argument or by --queries FILE.")
    texts: list[str] = []
    rescored = _rescoring(rerank, scorer_from, wanted, top_k)
    # with what is around them, the same words are two results; programs get every row
    folds = context is None and output.form_of_output() == "table"
    if index is not None:
        from rejoinder.index.indexing import Index

        place = given_model(model, model_sha256)
        opened = Index.open(index, place, on_too_long=on_too_long)
        encoder, label = cast("SentenceEncoder", opened.encoder), "id"
        compared = mode or ("hybrid" if opened.has_messages else "semantic")
        find = partial(
            opened.search, mode=compared, weight=weight, exact=exact, context=context or 0
        )
        by_query, copies = messages.distinct(
            partial(_typed, find, wanted, messages.where_conditions(where)), count, folds=folds
        )
        by_query = rescored(encoder, by_query)
        note_read_as(opened, wanted)
        note_not_found(wanted, by_query)
        look_up: messages.Find = opened.find
        are_messages = any(hit.about for hits in by_query for hit in hits)
        places: list[list[Any]] = [[hit.id for hit in hits] for hits in by_query]
    else:
        entries = list(messages.stream_entries(corpus, columns))
        texts = [entry.encoded for entry in entries]
        encoder, label = open_encoder(model, model_sha256, on_too_long), "line"
        nearest, copies = _search_in(entries, encoder, wanted, count, folds=folds)
        nearest = rescored(encoder, nearest)
        note_read_as(encoder, wanted)
        by_query, look_up = messages.hits_among(entries, nearest), messages.finder(entries)
        are_messages = bool(entries and entries[0].about)
        places = [[hit.index + 1 for hit in hits] for hits in nearest]
    marked = compared != "semantic"
    score = _SCORES[compared] if rerank is None else "score"
    if are_messages:
        messages.print_messages(
            look_up, wanted, by_query, score, marked=marked, context=bool(context), copies=copies
        )
        return
    rows: list[tuple[Any, ...]] = [
        (text, rank, round(hit.score, 6), place, hit.text)
        for text, hits, of_hits in zip(wanted, by_query, places, strict=True)
        for rank, (hit, place) in enumerate(zip(hits, of_hits, strict=True), 1)
    ]
    names: tuple[str, ...] = ("query", "rank", score, label, "text")
    sides = {"query": [row[0] for row in rows], "text": [row[-1] for row in rows]}
    unknown = unknown_texts(encoder, [*wanted, *sides["text"]])
    if output.form_of_output() == "table":
        for text, of_query in groupby(rows, itemgetter(0)):
            cells = [
                (
                    *row[1:-1],
                    messages.marked_text(row[-1], text, marked=marked)
                    + messages.times(row[-1], copies),
                )
                for row in of_query
            ]
            output.print_table(text, names[1:], cells)
            typer.echo()
    else:
        if marked and output.asked_for("json"):
            names = (*names, "matches")
            rows = [(*row, messages.matches_of(row[0], row[-1])) for row in rows]
        print_marked(names, rows, unknown, **sides)
    output.note_unknown(unknown, wanted, "queries")
    output.note_unknown(unknown, sides["text"], "hits")
    note_long(encoder, wanted, "queries")
    note_long(encoder, texts, "sentences")


def _typed(
    find: "Callable[..., list[list[IndexHit]]]",
    queries: list[str],
    where: Mapping[str, list[str]],
    most: int,
) -> "list[list[IndexHit]]":
    """Returns what is found for queries that may name conditions (`index.where.read_query`)."""
    from rejoinder.index.where import read_query

    read = [read_query(query) for query in queries]
    if not any(named for _, named in read):
        return find(queries, most, where=where)
    return [find(text, most, where={**where, **named})[0] for text, named in read]


def _search_in(
    entries: "list[Entry]",
    encoder: "SentenceEncoder",
    queries: list[str],
    top_k: int,
    *,
    folds: bool,
) -> "tuple[list[list[Hit]], dict[str, int]]":
    """Returns the hits of each query, and how often texts are there if they fold."""
    shown = [entry.text for entry in entries]
    places, copies = (
        messages.firsts_of(list(map(messages.folded, shown)))
        if folds
        else (list(range(len(shown))), {})
    )
    texts = [entries[place].encoded for place in places]
    found = encoder.search(queries, texts, top_k)
    return [[replace(hit, index=places[hit.index]) for hit in hits] for hits in found], copies


def _rescoring(
    rerank: int | None, scorer_from: Path | None, queries: list[str], top_k: int
) -> "Callable[[SentenceEncoder, list[list[Found]]], list[list[Found]]]":
    """Returns what chooses the hits to print: all, or with `--rerank` the best by a scorer."""
    if rerank is None:
        return lambda _, hits: hits
    from rejoinder.scoring.scorer import Scorer

    return lambda encoder, hits: Scorer(scorer_from, encoder).rerank(queries, hits, top_k)
