"""`rejoinder models`: lists the models of this installation.

`rejoinder card`: writes the model card of a model with its results.

`rejoinder export`: writes a smaller model, and shows what it loses.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from rejoinder.cli import options, output
from rejoinder.errors import InputError

_COLUMNS = ("name", "default", "kind", "dim", "bytes", "licence", "folder")


@options.prints("json", "tsv")
def models() -> None:
    """List the models that come with the package: name, dimension, size, licence.

    Examples:
        rejoinder models
        rejoinder models --json
    """
    from rejoinder.models.find import shipped_models

    facts = [_facts(name, folder) for name, folder in shipped_models().items()]
    # a folder of this length would leave the other columns no room
    columns = _COLUMNS[:-1] if output.form_of_output() == "table" else _COLUMNS
    output.print_rows(columns, [[row[name] for name in columns] for row in facts])
    if not facts:
        output.note("this installation has no models; give the path of a model folder")


def _facts(name: str, folder: Path) -> dict[str, Any]:
    from rejoinder.models.card import licence_of
    from rejoinder.models.config import known_kind, read_config
    from rejoinder.models.find import DEFAULT
    from rejoinder.models.folder import folder_bytes

    encoder = read_config(folder)["encoder"]
    kind = known_kind(encoder, str(folder))
    return {
        "name": name,
        "default": name == DEFAULT,
        "kind": kind.name,
        "dim": kind.dim(encoder),
        "bytes": folder_bytes(folder),
        "licence": licence_of(folder),
        "folder": str(folder),
    }


@options.prints("json")
def card(
    model: Annotated[str, typer.Argument(metavar="MODEL")],
    results: Annotated[list[str] | None, typer.Option(metavar="FILE[,FILE]")] = None,
    baseline: Annotated[list[str] | None, typer.Option(metavar="FILE[,FILE]")] = None,
    run: Path | None = None,
    out: Path | None = None,
) -> None:
    """Write a model's card: data, licences, recipe, results with intervals, limits.

    Args:
        model: Model name, or folder such as RUN/model.
        results: Results files of this model.
        baseline: Results files of encoders to compare with.
        run: Run that trained the model, to name its machine and minutes. Default: the model's
            parent folder, if it is a run.
        out: File to write. Default: MODEL_CARD.md of the model.

    Examples:
        rejoinder card runs/dan/model --results dan.json
        rejoinder card runs/dan/model --results dan.json --baseline bow.json
        rejoinder card exported/ --run runs/dan --out card.md
    """
    from rejoinder.api.card import write_card

    own, others = options.split_lists(results or ()), options.split_lists(baseline or ())
    written = write_card(model, results=own, baselines=others, run=run, out=out)
    if not output.printed_json({"out": str(written)}):
        output.status_line(f"wrote {written}")


@options.prints("json", "tsv")
def export(
    model: Annotated[str, typer.Argument()],
    out: options.OutOption,
    to: Annotated[str | None, typer.Option(metavar="TARGET")] = None,
    dtype: str | None = None,
    dim: int | None = None,
    any_dim: bool = False,
    max_words: int | None = None,
    unknown_buckets: int | None = None,
    letter_buckets: int | None = None,
    spelling: Annotated[bool | None, typer.Option("--spelling/--no-spelling")] = None,
    saturation: float | None = None,
    name: str | None = None,
    data: options.DataOption = None,
    pairs: options.PairsOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write a smaller model, or a model for another library.

    --data shows the loss in Pearson correlation on STS-B dev (angular),
    --pairs the loss in P@1 of 100 on the dev split, for at most 10,000 inputs.

    Args:
        model: Name of a model, or its folder, such as RUN/model.
        to: Write a folder for another library: sentence-transformers, model2vec or onnx.
        dtype: Type of the weights: float32, float16 or int8 (for the embedding table; other
            matrices are then float16). Default: unchanged.
        dim: Keep the first DIM dimensions; for a model trained with nested_dims.
        any_dim: Cut to --dim a model that was not trained for it.
        max_words: Keep this many words, the most frequent ones.
        unknown_buckets: Keep this many buckets of unknown words; 0: none.
        letter_buckets: Read unknown words by their letters instead, in this many buckets; 0: no
            longer.
        spelling: Read misspelt words as the intended known words. Default: unchanged.
        saturation: Shorten long rows: a row n times as long as the median becomes (1 + K) n /
            (n + K) times as long. Try 3.
        name: Name of the new model. Default: unchanged.

    Examples:
        rejoinder export runs/dan/model --dtype int8 --out small/
        rejoinder export runs/dan/model --dtype int8 --out small/ --data data
        rejoinder export rejoinder-base --max-words 20000 --out small/
        rejoinder export runs/dan/model --letter-buckets 8192 --spelling --out spelt/
        rejoinder export runs/dan/model --saturation 3 --out shorter/
        rejoinder export runs/dan/model --to model2vec --out m2v/
        rejoinder export rejoinder-base --to sentence-transformers --out base-st/
        rejoinder export runs/transformer/model --to onnx --out transformer-onnx/
    """
    settings: dict[str, Any] = {
        "dtype": dtype, "dim": dim, "any_dim": any_dim, "max_words": max_words,
        "unknown_buckets": unknown_buckets, "letter_buckets": letter_buckets,
        "spelling": spelling, "saturation": saturation, "name": name, "overwrite": overwrite,
    }  # fmt: skip
    if to is not None:
        if data is not None or pairs is not None:
            raise InputError("--data and --pairs score smaller models; leave them out with --to.")
        from rejoinder.interfaces.targets import export_to

        made = export_to(model, out, to, **settings)
        facts = {
            "out": str(out), "to": to, "MB": _megabytes(made.bytes), "dim": made.dim,
            "python": made.python,
        }  # fmt: skip
        if not output.printed_json(facts):
            output.print_rows(tuple(facts), [tuple(facts.values())])
        output.status_line(f"wrote {out}")
        return
    from rejoinder.api import export as library

    exported = library.export(model, out, data=data, pairs=pairs, **settings)
    before, after, changes = exported.before, exported.after, exported.changes
    if output.asked_for("json"):
        sizes = {"before": asdict(before), "after": asdict(after)}
        dropped = list(exported.dropped)
        output.print_json({"out": str(out), **sizes, "changes": dict(changes), "dropped": dropped})
        return
    names = list(before.scores)
    rows: list[list[object]] = [
        [where, _megabytes(size.bytes), size.rows, size.dim, size.dtype]
        + [size.scores.get(score, "–") for score in names]
        for where, size in ((model, before), (str(out), after))
    ]
    if names:
        rows.append(["change", "", "", "", "", *(changes.get(name, "–") for name in names)])
    output.print_rows(("model", "MB", "rows", "dim", "dtype", *names), rows)
    for head in exported.dropped:
        output.note(f"the head of {head} was left out: it reads removed dimensions")
    if data is None and pairs is None:
        output.note("--data FOLDER and --pairs FOLDER show what STS-B dev and P@1 lose")
    output.status_line(f"wrote {out}")


def _megabytes(size: int) -> float:
    return round(size / 1e6, 2)
