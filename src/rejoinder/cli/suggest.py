"""`rejoinder suggest`: suggests replies to messages, by what was replied to similar ones."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar, encoding_bar
from rejoinder.errors import InputError

if TYPE_CHECKING:
    from rejoinder.conversations.suggest import Suggestions
    from rejoinder.conversations.suggestions import Fitted, Suggested, Suggestion

_CHARACTERS = 240
_CELLS = ("reply", "answered", "cosine", "alike")


@options.prints("json", "tsv")
def suggest(
    message: Annotated[list[str] | None, typer.Argument()] = None,
    source: Annotated[str, typer.Option("--from", metavar="SOURCE", show_default=False)] = "",
    messages: str | None = None,
    answers: Path | None = None,
    confidence: Annotated[float, typer.Option(min=0, max=1)] = 0.3,
    top_k: Annotated[int, typer.Option(min=1)] = 3,
    where: options.WhereOption = None,
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    columns: options.ColumnsOption = None,
    links: options.LinksOption = None,
    threads: options.ThreadsOption = None,
) -> None:
    """Suggest replies to a message, from past replies to similar messages.

    Args:
        message: Messages to answer.
        source: Past messages and their replies: a folder of pairs, an export of conversations, or
            an index of one. Or a file of canned answers, one per line.
        messages: File with one message per line; - is standard input.
        answers: File of canned answers, one per line: suggest only these.
        confidence: Minimum confidence of a good answer: the probability that it says nearly the
            same as the true reply would.
        top_k: Number of suggestions per message.

    Examples:
        rejoinder suggest 'Where is my parcel?' --from pairs/
        rejoinder suggest 'Where is my parcel?' --from chats/ --where author=ann
        rejoinder suggest --messages new.txt --from index/ --confidence 0.5 --json
        rejoinder suggest 'Where is my parcel?' --from pairs/ --answers canned.txt
        rejoinder suggest 'Where is my parcel?' --from canned.txt
    """
    if not source:
        raise InputError("--from is needed: pairs, an export, an index or a file of answers.")
    wanted = options.given_texts(message, messages)
    if not wanted:
        raise InputError("a message is needed, as an argument or by --messages FILE.")
    from rejoinder.conversations.suggest import Suggestions

    with options.as_files([source]) as [file], encoding_bar() as encoding, Bar("messages") as bar:
        opened = Suggestions.open(
            file, options.given_model(model, model_sha256), answers=answers,
            columns=columns, where=options.where_conditions(where), confidence=confidence,
            links=links, threads=threads, progress=encoding, stage=bar.show,
        )  # fmt: skip
    output.note_left_out(opened.left_out)
    _print(opened, [opened.suggest(one, top_k) for one in wanted])


def _print(opened: "Suggestions", found: "list[Suggested]") -> None:
    form = output.form_of_output()
    if form == "json":
        fitted = None if opened.fitted is None else opened.fitted.to_dict()
        trees = [
            {**vars(one), "suggestions": [each.to_dict() for each in one.suggestions]}
            for one in found
        ]
        output.print_json({"fitted": fitted, "messages": trees})
        return
    if form == "tsv":
        first = "score" if opened.fitted is None else "confidence"
        names = ("message", "rank", first, *_CELLS, "id")
        rows = [
            (one.message, rank, *_cells(best), best.id)
            for one in found
            for rank, best in enumerate(one.suggestions, 1)
        ]
        output.print_rows(names, rows)
        for one in found:
            if one.is_good is False:
                output.note(f"{one.message[:_CHARACTERS]!r}: {_no_good(one)}")
    else:
        for one in found:
            _print_one(one)
    _summarise(opened.fitted, past=opened.has_past)


def _cells(one: "Suggestion") -> tuple[str | float | int, ...]:
    """Returns confidence (the score, where none is known), reply, past message, cosine, count."""
    chance = one.score if one.confidence is None else one.confidence
    cosine = "" if one.similarity is None else round(one.similarity, 3)
    return round(chance, 3), one.reply, one.answered or "", cosine, one.alike


def _print_one(found: "Suggested") -> None:
    if found.is_good is False:
        typer.echo(f"{found.message}\n{_no_good(found)}\n")
        if not found.suggestions:
            return
    past = any(one.answered is not None for one in found.suggestions)
    names = ("score" if found.is_good is None else "confidence", *_CELLS)
    rows = [
        [output.excerpt(cell) if isinstance(cell, str) else cell for cell in _cells(one)]
        for one in found.suggestions
        if not found.is_good or (one.confidence or 0) >= (found.threshold or 0)
    ]
    count = len(names) if past else 2
    output.print_table(found.message, names[:count], [row[:count] for row in rows])
    typer.echo()


def _no_good(found: "Suggested") -> str:
    if not found.suggestions:
        return "no good answer: there is no candidate."
    best = found.suggestions[0]
    needed = f"{best.confidence or 0:.2f}, where {found.threshold:g} is needed"
    return f"no good answer: replies to similar messages differ; the best has confidence {needed}"


def _summarise(fitted: "Fitted | None", *, past: bool) -> None:
    """Prints how far suggestions can be trusted, on standard error."""
    if fitted is None:
        lack = "too few past messages with replies" if past else "no messages that these answered"
        output.note(f"there are {lack}, so it is not known how often suggestions are right")
        return
    told, rest = fitted.outcome, ""
    if told.precision is not None:
        rest = f"; {told.precision:.0%} of these say nearly the same as the true reply, "
        rest += f"{fitted.same_words / told.answered:.0%} in the same words"
    output.status_line(
        f"Fitted on {fitted.fitted_on:,} messages of held-out threads. Of {told.messages:,} "
        f"others, {told.coverage:.0%} get a good answer (confidence {fitted.threshold:g}){rest}"
    )
    if not told.answered:
        output.note("replies differ too much; try a lower --confidence, --where, or --answers")
