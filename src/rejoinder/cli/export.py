"""`rejoinder export`: writes a smaller model, and shows what it loses."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from rejoinder.cli import options
from rejoinder.cli.output import asked_for, note, print_json, print_rows, status_line
from rejoinder.errors import InputError

EXAMPLES = options.epilog(
    "rejoinder export runs/dan/model --dtype int8 --out small/",
    "rejoinder export runs/dan/model --dtype int8 --out small/ --data data",
    "rejoinder export rejoinder-base --max-words 20000 --out small/",
    "rejoinder export runs/dan/model --letter-buckets 8192 --spelling --out spelt/",
    "rejoinder export runs/dan/model --saturation 3 --out shorter/",
    "rejoinder export runs/dan/model --to model2vec --out m2v/",
    "rejoinder export rejoinder-base --to sentence-transformers --out base-st/",
    "rejoinder export runs/transformer/model --to onnx --out transformer-onnx/",
)


@options.prints("json", "tsv")
def export(
    model: Annotated[
        str, typer.Argument(help="Name of a model, or its folder, such as RUN/model.")
    ],
    out: options.OutOption,
    to: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Write a folder for another library: sentence-transformers, model2vec or onnx.",
        ),
    ] = None,
    dtype: Annotated[
        str | None,
        "Type of the weights: float32, float16 or int8 (of the embedding table; other "
        "matrices are then float16). Default: as it is.",
    ] = None,
    dim: Annotated[
        int | None,
        "Keep the first DIM dimensions; for a model trained with nested_dims.",
    ] = None,
    any_dim: Annotated[bool, "Cut to --dim a model that was not trained for it."] = False,
    max_words: Annotated[int | None, "Keep the most frequent words, that many."] = None,
    unknown_buckets: Annotated[
        int | None,
        "Keep that many buckets of unknown words; 0: none.",
    ] = None,
    letter_buckets: Annotated[
        int | None,
        "Read unknown words by their letters instead, in that many buckets; 0: no longer.",
    ] = None,
    spelling: Annotated[
        bool | None,
        typer.Option(
            "--spelling/--no-spelling",
            help="Read misspelt words as the known words that they stand for. Default: as it does.",
        ),
    ] = None,
    saturation: Annotated[
        float | None,
        "Shorten long rows, of length n in medians, to (1 + K) n / (n + K); such as 3.",
    ] = None,
    name: Annotated[str | None, "Name of the new model. Default: as it is."] = None,
    data: options.DataOption = None,
    pairs: options.PairsOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write a smaller model, or a model for another library.

    --data shows what it loses of the Pearson correlation on STS-B dev (angular),
    --pairs what it loses of P@1 of 100 on the dev split, of 10,000 inputs at most.
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
        if asked_for("json"):
            print_json(facts)
        else:
            print_rows(tuple(facts), [tuple(facts.values())])
        status_line(f"wrote {out}")
        return
    from rejoinder.api import export as library

    exported = library.export(model, out, data=data, pairs=pairs, **settings)
    before, after, changes = exported.before, exported.after, exported.changes
    if asked_for("json"):
        sizes = {"before": asdict(before), "after": asdict(after)}
        dropped = list(exported.dropped)
        print_json({"out": str(out), **sizes, "changes": dict(changes), "dropped": dropped})
        return
    names = list(before.scores)
    rows: list[list[object]] = [
        [where, _megabytes(size.bytes), size.rows, size.dim, size.dtype]
        + [size.scores.get(score, "–") for score in names]
        for where, size in ((model, before), (str(out), after))
    ]
    if names:
        rows.append(["change", "", "", "", "", *(changes.get(name, "–") for name in names)])
    print_rows(("model", "MB", "rows", "dim", "dtype", *names), rows)
    for head in exported.dropped:
        note(f"the head of {head} was left out: it reads dimensions that are gone")
    if data is None and pairs is None:
        note("--data FOLDER and --pairs FOLDER show what STS-B dev and P@1 lose")
    status_line(f"wrote {out}")


def _megabytes(size: int) -> float:
    return round(size / 1e6, 2)
