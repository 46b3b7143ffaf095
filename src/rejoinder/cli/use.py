"""`rejoinder similarity`, `rank` and `info`: use a trained model.

`rejoinder search`: finds the texts of a file, or of an index, that are nearest to a query.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from rejoinder.cli import messages, options, output
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.corpus.texts import Entry
    from rejoinder.index.hits import IndexHit
    from rejoinder.index.indexing import Index
    from rejoinder.inference.encoder import SentenceEncoder
    from rejoinder.inference.search import Hit
    from rejoinder.scoring.scorer import Found

_LISTED = 5
"""Number of pairs or words that a note names."""
_READ = 100
"""Number of pairs of which words are named that are read as others."""


@options.prints("json", "tsv", needs={"--scorer or --scorer-from FOLDER": ("--why",)})
def similarity(
    first: Annotated[str | None, typer.Argument()] = None,
    second: Annotated[str | None, typer.Argument()] = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    pairs: str | None = None,
    scorer: bool = False,
    scorer_from: options.ScorerFromOption = None,
    why: bool = False,
    on_too_long: options.OnTooLongOption = "truncate",
) -> None:
    """Compute the similarity of two sentences, as a cosine and as a score from 0 to 5.

    Args:
        first: A sentence.
        second: Another sentence.
        pairs: File with two sentences per line, separated by a tab; - is stdin.
        scorer: Score word by word, too, as people would, and print the interval that contains nine
            of ten human scores.
        why: With a scorer, print what moved the score.

    Examples:
        rejoinder similarity 'How old are you?' 'What is your age?'
        rejoinder similarity --model model/ 'How old are you?' 'What is your age?'
        rejoinder similarity --model model/ --pairs pairs.tsv --tsv
        rejoinder similarity --scorer --why 'He plays a guitar.' 'He plays no guitar.'
    """
    if pairs is not None and first is not None:
        raise InputError("sentences are given as arguments or by --pairs FILE, not both.")
    if pairs is not None:
        rows = options.read_pairs(pairs)
    elif first is not None and second is not None:
        rows = [(options.as_text(first), options.as_text(second))]
    else:
        raise InputError("two sentences are needed, or --pairs FILE with two per line.")
    by_scorer = scorer or scorer_from is not None
    encoder = options.open_encoder(model, model_sha256, on_too_long)
    firsts, seconds = map(list, zip(*rows, strict=True))
    left, right = encoder.encode(firsts), encoder.encode(seconds)
    values = {"cosine": encoder.similarity_pairwise(left, right).tolist()}
    if by_scorer:
        values |= _scored(encoder, scorer_from, firsts, seconds, why=why)
    else:
        values["score"] = [5 * max(value, 0.0) for value in values["cosine"]]
    numbers = (
        [round(value, 6) if isinstance(value, float) else value for value in column]
        for column in values.values()
    )
    unknown = unknown_texts(encoder, [*firsts, *seconds])
    print_marked(
        ("first", "second", *values), list(zip(firsts, seconds, *numbers, strict=True)),
        unknown, first=firsts, second=seconds,
    )  # fmt: skip
    pairs_of = [number for number, row in enumerate(rows, 1) if unknown.intersection(row)]
    output.note_unknown(unknown, [*firsts, *seconds], "sentences", f" ({_numbered(pairs_of)})")
    note_read_as(encoder, [*firsts[:_READ], *seconds[:_READ]])
    swapped = [number for number, row in enumerate(rows, 1) if encoder.confuses(*row)]
    if swapped and not by_scorer:
        output.note(f"the model can't tell the order of words ({_numbered(swapped)})")
    note_long(encoder, [*firsts, *seconds], "sentences")


def _scored(
    encoder: "SentenceEncoder", folder: Path | None, first: list[str], second: list[str], *,
    why: bool,
) -> dict[str, list[Any]]:  # fmt: skip
    """Returns the columns of a scorer: the score, its interval, and what moved it if `why`."""
    from rejoinder.scoring.scorer import Scorer

    pairs = Scorer(folder, encoder).explain(first, second)
    columns: dict[str, list[Any]] = {
        name: [getattr(pair, name) for pair in pairs] for name in ("score", "low", "high")
    }
    if why:
        moves = [{name: round(by, 2) for name, by in pair.families().items()} for pair in pairs]
        columns["why"] = moves if output.asked_for("json") else [_as_words(each) for each in moves]
    return columns


def _as_words(moves: dict[str, float]) -> str:
    """Returns what moved a score most, as words."""
    return ", ".join(f"{name} {by:+.2f}" for name, by in [*moves.items()][:_LISTED])


@options.prints("json", "tsv")
def rank(
    message: Annotated[str, typer.Argument()],
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    responses: str = "-",
    columns: options.ColumnsOption = None,
    top_k: Annotated[int | None, typer.Option(min=1)] = None,
    context: list[str] | None = None,
    on_too_long: options.OnTooLongOption = "truncate",
) -> None:
    """Rank responses by how well they answer a message.

    Args:
        message: The message to answer.
        responses: File of responses, one per line, or an export of conversations; - is standard
            input.
        top_k: Number of responses to print. Default: all.
        context: Turn before the message. Repeatable, oldest turn first; the last five turns are
            read.

    Examples:
        rejoinder rank 'How old are you?' --responses replies.txt
        rejoinder rank --model model/ 'How old are you?' --top-k 3 < replies.txt
        rejoinder rank 'And you?' --context 'How old is he?' --responses a.txt
    """
    entries, message = list(options.stream_entries(responses, columns)), options.as_text(message)
    texts, turns = [entry.encoded for entry in entries], list(map(options.as_text, context or []))
    encoder = options.open_encoder(model, model_sha256, on_too_long)
    hits = encoder.rank(message, texts, top_k, context=turns)
    if entries and entries[0].about:
        ranked = messages.hits_among(entries, [hits])
        messages.print_messages(
            messages.finder(entries), [message], ranked, "score", ("message", "response")
        )
        return
    rows = [
        (position, round(hit.score, 6), hit.index + 1, hit.text)
        for position, hit in enumerate(hits, 1)
    ]
    best = [row[-1] for row in rows]
    unknown = unknown_texts(encoder, [message, *best])
    print_marked(
        ("rank", "score", "line", "response"), rows, unknown,
        message=[message] * len(rows), response=best,
    )  # fmt: skip
    output.note_unknown(unknown, [message], "messages")
    note_read_as(encoder, [message])
    output.note_unknown(unknown, best, "responses")
    note_long(encoder, [message, *turns], "messages")
    note_long(encoder, texts, "responses")


@options.prints("json", "tsv")
def info(
    model: Annotated[str | None, typer.Argument(metavar="MODEL")] = None,
    model_sha256: options.ModelSha256Option = None,
) -> None:
    """Show a model's kind, size, licence and training data.

    Args:
        model: Model name, folder or https address.

    Examples:
        rejoinder info
        rejoinder info model/
        rejoinder info model/ --json
    """
    from rejoinder.inference.outputs import computed_by
    from rejoinder.models.card import licence_of, stated_in_card, terms_of, training_rows
    from rejoinder.models.folder import folder_bytes, read_model

    folder = options.model_folder(model, model_sha256)
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
    if output.printed_json({**facts, "training": training}):
        return
    facts |= {name: training.get(name) for name in ("pairs", "leaks_dropped", "steps", "seed")}
    if contents.adaptation is not None:
        facts["adaptation"] = contents.adaptation.summary()
    shown = [(name, _plain(value)) for name, value in facts.items() if value not in (None, {}, [])]
    output.print_rows(("key", "value"), shown)


def unknown_texts(encoder: "SentenceEncoder", texts: list[str]) -> set[str]:
    """Returns those of `texts` that have no known word, or more unknown words than known ones."""
    distinct = list(dict.fromkeys(texts))
    flags = encoder.unknown(distinct) | (encoder.unknown_share(distinct) > 0.5)
    return {text for text, unknown in zip(distinct, flags, strict=True) if unknown}


def print_marked(
    columns: tuple[str, ...], rows: list[Any], unknown: set[str], **sides: list[str]
) -> None:
    """Prints rows. JSON also names the `sides`, texts by name, that are unknown in a row."""
    if output.asked_for("json"):
        columns = (*columns, "unknown")
        told = zip(*sides.values(), strict=True)
        names = [[name for name, t in zip(sides, row, strict=True) if t in unknown] for row in told]
        rows = [(*row, named) for row, named in zip(rows, names, strict=True)]
    output.print_rows(columns, rows)


def note_read_as(reader: "SentenceEncoder | Index", texts: list[str]) -> None:
    """Notes which words are read as others, such as misspelt ones."""
    read = reader.read_as(texts[: 2 * _READ])
    words = list(dict.fromkeys(f"{one} as {other}" for row in read for one, other in row.items()))
    if words:
        output.note(f"reads {', '.join(words[:_LISTED])}{', …' if len(words) > _LISTED else ''}")


def note_not_found(queries: list[str], found: Sequence[Sequence[object]]) -> None:
    """Notes for which queries nothing was found."""
    for query in (query for query, hits in zip(queries, found, strict=True) if not hits):
        output.note(f"nothing close to {query!r} was found")


def note_long(encoder: "SentenceEncoder", texts: list[str], name: str) -> None:
    """Notes how many texts are longer than the model reads."""
    options.note_too_long(encoder, int(encoder.too_long(texts).sum()), len(texts), name)


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
    """Find the sentences in a file or an index that are most similar to a query.

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
        exact: Compare with all texts of a large index, as is always done with a file.
        context: Also print this many messages before and after each hit, of its thread or channel.
        rerank: Find this many hits, score each again word by word, from 0 to 5, and print the best.
        scorer_from: Score again with a scorer from `rejoinder fit-scorer`, fitted with MODEL.

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
    wanted = options.given_texts(query, queries)
    if not wanted:
        raise InputError("a query is needed, as an argument or by --queries FILE.")
    texts: list[str] = []
    rescored = _rescoring(rerank, scorer_from, wanted, top_k)
    # with what is around them, the same words are two results; programs get every row
    folds = context is None and output.form_of_output() == "table"
    if index is not None:
        from rejoinder.index.indexing import Index

        opened = Index.open(
            index, options.given_model(model, model_sha256), on_too_long=on_too_long
        )
        encoder, label = cast("SentenceEncoder", opened.encoder), "id"
        compared = mode or ("hybrid" if opened.has_messages else "semantic")
        find = partial(
            opened.search, mode=compared, weight=weight, exact=exact, context=context or 0
        )
        by_query, copies = messages.distinct(
            partial(_typed, find, wanted, options.where_conditions(where)), count, folds=folds
        )
        by_query = rescored(encoder, by_query)
        note_read_as(opened, wanted)
        note_not_found(wanted, by_query)
        look_up: messages.Find = opened.find
        are_messages = any(hit.about for hits in by_query for hit in hits)
        places: list[list[Any]] = [[hit.id for hit in hits] for hits in by_query]
    else:
        entries = list(options.stream_entries(corpus, columns))
        texts = [entry.encoded for entry in entries]
        encoder, label = options.open_encoder(model, model_sha256, on_too_long), "line"
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
    plain = [text for text, named in read if not named]
    found = iter(find(plain, most, where=where) if plain else [])
    return [
        find(text, most, where={**where, **named})[0] if named else next(found)
        for text, named in read
    ]


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
