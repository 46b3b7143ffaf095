"""`rejoinder similarity`, `search`, `rank` and `info`: use a trained model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli.lines import as_text, read_lines, read_pairs, stream_texts
from rejoinder.cli.models import model_folder, note_too_long, open_encoder
from rejoinder.cli.options import (
    ColumnsOption,
    JsonOption,
    ModelOption,
    ModelSha256Option,
    OnTooLongOption,
    QuietOption,
    TsvOption,
    set_quiet,
)
from rejoinder.cli.output import form_of, note, print_rows
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.index.indexing import Index
    from rejoinder.inference.encoder import SentenceEncoder

_LISTED = 5
"""Number of sentences without a known word that a note names."""

SIMILARITY_EXAMPLES = """Examples:

rejoinder similarity 'How old are you?' 'What is your age?'

rejoinder similarity --model model/ 'How old are you?' 'What is your age?'

rejoinder similarity --model model/ --pairs pairs.tsv --tsv
"""
SEARCH_EXAMPLES = """Examples:

rejoinder search 'How old are you?' --corpus questions.txt

rejoinder search --model model/ --queries queries.txt --corpus questions.txt

rejoinder search 'How old are you?' --index index/
"""
RANK_EXAMPLES = """Examples:

rejoinder rank 'How old are you?' --responses replies.txt

printf 'Yes.\\nI am 20.\\n' |
rejoinder rank --model model/ 'How old are you?' --responses -
"""
INFO_EXAMPLES = """Examples:

rejoinder info

rejoinder info model/

rejoinder info model/ --json
"""


def similarity(
    first: Annotated[str | None, typer.Argument(help="A sentence.")] = None,
    second: Annotated[str | None, typer.Argument(help="Another sentence.")] = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="File with two sentences per line, separated by a tab; - is stdin."),
    ] = None,
    angular: Annotated[
        bool, typer.Option("--angular", help="Also print the angle, from -pi to 0 (eq. 1, Yang).")
    ] = False,
    on_too_long: OnTooLongOption = "truncate",
    as_json: JsonOption = False,
    as_tsv: TsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compute the similarity of two sentences: the cosine, and as a score from 0 to 5."""
    set_quiet(quiet)
    if pairs is not None and first is not None:
        raise InputError("sentences are given as arguments or by --pairs FILE, not both.")
    if pairs is not None:
        rows = read_pairs(pairs)
    elif first is not None and second is not None:
        rows = [(as_text(first), as_text(second))]
    else:
        raise InputError("two sentences are needed, or --pairs FILE with two per line.")
    encoder = open_encoder(model, model_sha256, on_too_long)
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    left, right = (encoder.encode([row[side] for row in rows]) for side in (0, 1))
    values = {"cosine": encoder.similarity_pairwise(left, right)}
    values["score"] = 5 * values["cosine"].clip(0)
    if angular:
        values["angular"] = encoder.similarity_pairwise(left, right, "angular")
    columns = [[round(value, 6) for value in column.tolist()] for column in values.values()]
    shown = [
        (*row, *numbers) for row, numbers in zip(rows, zip(*columns, strict=True), strict=True)
    ]
    unknown = _unknown(encoder, [sentence for row in rows for sentence in row])
    names = [_names(unknown, first=row[0], second=row[1]) for row in rows]
    _print(("first", "second", *values), shown, names, form)
    listed = [f"{name} of pair {number}" for number, row in enumerate(names, 1) for name in row]
    examples = ", ".join(listed[:_LISTED]) + (", …" if len(listed) > _LISTED else "")
    _note_unknown(len(listed), 2 * len(rows), "sentences", f" ({examples})")
    swapped = [number for number, row in enumerate(rows, 1) if encoder.confuses(*row)]
    if swapped:
        note(
            f"the same words in another order (pair {', '.join(map(str, swapped[:_LISTED]))}): the "
            "model can't tell such sentences apart"
        )
    _note_long(encoder, "sentences", [sentence for row in rows for sentence in row])


def search(
    query: Annotated[list[str] | None, typer.Argument(help="Sentences to search for.")] = None,
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    corpus: Annotated[
        str | None,
        typer.Option(help="File of sentences, one per line; - is standard input, the default."),
    ] = None,
    columns: ColumnsOption = None,
    index: Annotated[
        Path | None, typer.Option(help="Folder that `rejoinder index` wrote, in place of a file.")
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="File with one query per line; - is standard input.")
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, help="Number of hits per query.")] = 10,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare with all texts of a large index. A file always is."),
    ] = False,
    on_too_long: OnTooLongOption = "truncate",
    as_json: JsonOption = False,
    as_tsv: TsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the sentences of a file, or of an index, that are most similar to a query."""
    set_quiet(quiet)
    if index is not None and corpus is not None:
        raise InputError("--corpus FILE and --index FOLDER are both what to search; give one.")
    if columns is not None and index is not None:
        raise InputError("--columns is for --corpus; an index has its texts.")
    if exact and index is None:
        raise InputError("--exact is for --index; the search in a file is always exact.")
    corpus = corpus or "-"
    if index is None and queries == corpus == "-":
        raise InputError("queries and corpus can't both be standard input; name a file for one.")
    wanted = [*map(as_text, query or []), *(read_lines(queries) if queries else [])]
    if not wanted:
        raise InputError("a query is needed, as an argument or by --queries FILE.")
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if index is not None:
        from rejoinder.index.indexing import Index
        from rejoinder.inference.outputs import checked_way

        place = None if model is None else model_folder(model, model_sha256)
        opened = Index.open(index, place, on_too_long=checked_way(on_too_long))
        _search_index(opened, wanted, top_k, form, exact=exact)
        return
    texts = list(stream_texts(corpus, columns))
    encoder = open_encoder(model, model_sha256, on_too_long)
    rows = [
        (text, rank, round(hit.score, 6), hit.index + 1, hit.text)
        for text, hits in zip(wanted, encoder.search(wanted, texts, top_k), strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    unknown = _unknown(encoder, [*wanted, *(row[-1] for row in rows)])
    names = [_names(unknown, query=row[0], text=row[-1]) for row in rows]
    _print(("query", "rank", "cosine", "line", "text"), rows, names, form)
    count = sum(text in unknown for text in wanted)
    _note_unknown(count, len(wanted), "queries")
    count = sum(row[-1] in unknown for row in rows)
    _note_unknown(count, len(rows), "hits")
    _note_long(encoder, "queries", wanted)
    _note_long(encoder, "sentences", texts)


def _search_index(
    opened: "Index", queries: list[str], top_k: int, form: str, *, exact: bool
) -> None:
    """Prints what an index has for each query."""
    rows = [
        (query, rank, round(hit.score, 6), hit.id, hit.text)
        for query, hits in zip(queries, opened.search(queries, top_k, exact=exact), strict=True)
        for rank, hit in enumerate(hits, 1)
    ]
    unknown = _unknown(opened.encoder, queries)
    names = [_names(unknown, query=row[0]) for row in rows]
    _print(("query", "rank", "cosine", "id", "text"), rows, names, form)
    count = sum(query in unknown for query in queries)
    _note_unknown(count, len(queries), "queries")
    _note_long(opened.encoder, "queries", queries)


def rank(
    message: Annotated[str, typer.Argument(help="The message to answer.")],
    model: ModelOption = None,
    model_sha256: ModelSha256Option = None,
    responses: Annotated[
        str, typer.Option(help="File of responses, one per line; - is standard input.")
    ] = "-",
    columns: ColumnsOption = None,
    top_k: Annotated[
        int | None, typer.Option(min=1, help="Number of responses to print. Default: all.")
    ] = None,
    on_too_long: OnTooLongOption = "truncate",
    as_json: JsonOption = False,
    as_tsv: TsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Rank responses by how well they answer a message."""
    set_quiet(quiet)
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    texts, message = list(stream_texts(responses, columns)), as_text(message)
    encoder = open_encoder(model, model_sha256, on_too_long)
    rows = [
        (position, round(hit.score, 6), hit.index + 1, hit.text)
        for position, hit in enumerate(encoder.rank(message, texts, top_k), 1)
    ]
    unknown = _unknown(encoder, [message, *texts])
    names = [_names(unknown, message=message, response=row[-1]) for row in rows]
    _print(("rank", "score", "line", "response"), rows, names, form)
    _note_unknown(int(message in unknown), 1, "messages")
    _note_unknown(sum(text in unknown for text in texts), len(texts), "responses")
    _note_long(encoder, "messages", [message])
    _note_long(encoder, "responses", texts)


def info(
    model: Annotated[
        str | None, typer.Argument(metavar="MODEL", help="Model name, folder or https address.")
    ] = None,
    model_sha256: ModelSha256Option = None,
    as_json: JsonOption = False,
    as_tsv: TsvOption = False,
    quiet: QuietOption = False,
) -> None:
    """Show what a model is and what it was trained on."""
    from rejoinder.inference.runtimes import computed_by
    from rejoinder.models.folder import folder_bytes, read_model
    from rejoinder.models.terms import licence_of, stated_in_card, terms_of, training_rows

    set_quiet(quiet)
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
    form = form_of(as_json=as_json, as_tsv=as_tsv)
    if form == "json":
        typer.echo(json.dumps({**facts, "training": training}, ensure_ascii=False))
        return
    facts |= {name: training.get(name) for name in ("pairs", "leaks_dropped", "steps", "seed")}
    if contents.adaptation is not None:
        facts["adaptation"] = contents.adaptation.summary()
    shown = [(name, _plain(value)) for name, value in facts.items() if value not in (None, {}, [])]
    print_rows(("key", "value"), shown, form)


def _unknown(encoder: "SentenceEncoder", texts: list[str]) -> set[str]:
    """Returns those of `texts` that have no known word, or more unknown words than known ones."""
    distinct = list(dict.fromkeys(texts))
    flags = encoder.unknown(distinct) | (encoder.unknown_share(distinct) > 0.5)
    return {text for text, unknown in zip(distinct, flags, strict=True) if unknown}


def _note_unknown(count: int, total: int, texts: str, which: str = "") -> None:
    """Prints how many `texts` (a plural noun) have mostly unknown words, if any."""
    if count:
        note(
            f"most words of {count:,} of {total:,} {texts} are unknown to the model{which}; are "
            "they in the language that it was trained on? Their scores mean little"
        )


def _note_long(encoder: "SentenceEncoder", name: str, texts: list[str]) -> None:
    note_too_long(encoder, int(encoder.too_long(texts).sum()), len(texts), name)


def _names(unknown: set[str], **texts: str) -> list[str]:
    """Returns the names of the texts that are `unknown`."""
    return [name for name, text in texts.items() if text in unknown]


def _print(
    columns: tuple[str, ...], rows: list[tuple[Any, ...]], unknown: list[list[str]], form: str
) -> None:
    """Prints rows. JSON also names the texts of a row whose words are mostly unknown."""
    if form == "json":
        columns = (*columns, "unknown")
        rows = [(*row, names) for row, names in zip(rows, unknown, strict=True)]
    print_rows(columns, rows, form)


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
