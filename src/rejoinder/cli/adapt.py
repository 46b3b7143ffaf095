"""`rejoinder adapt`: a linear map behind an encoder, fitted on the STS Benchmark."""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

_EPILOG = """Examples:

rejoinder adapt runs/dan/model --sts ../shared/data --out adapted/

rejoinder adapt st:all-MiniLM-L6-v2 --sts ../shared/data --out minilm-adapted/

rejoinder evaluate st:all-MiniLM-L6-v2 --adaptation minilm-adapted/ \\
--tasks stsb,sts --data ../shared/data
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("adapt", epilog=_EPILOG)(adapt)


def adapt(
    encoder: Annotated[
        str, typer.Argument(help="Model folder, or any encoder that `rejoinder evaluate` takes.")
    ],
    sts: Annotated[
        Path,
        typer.Option(help="Folder of sts-train.csv and sts-dev.csv, or a folder of data sets."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder to write: the adapted model, or of other encoders the adaptation alone."
        ),
    ],
    form: Annotated[
        str | None, typer.Option(help="STS data as official or senteval; default: either.")
    ] = None,
    learning_rate: Annotated[
        float, typer.Option(help="Learning rate of Adam, for the map.")
    ] = 3e-4,
    penalty: Annotated[
        float, typer.Option(help="Weight of the squared distance of the map from the identity.")
    ] = 1e-3,
    seed: Annotated[int, typer.Option(help="Seed of the order of pairs.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what OUT holds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_tsv: Annotated[bool, typer.Option("--tsv", help="Print tab-separated lines.")] = False,
) -> None:
    """Fit u* = W u on the training pairs of the STS Benchmark; its dev pairs say when to stop."""
    from rejoinder.adaptation.fitting import FitSettings
    from rejoinder.adaptation.linear import FILE
    from rejoinder.adaptation.sts import adapt as fit
    from rejoinder.api.encoders import load_encoder
    from rejoinder.cli.output import form_of, print_rows, stderr
    from rejoinder.datasets.sts import read_stsb
    from rejoinder.files.atomic import new_folder
    from rejoinder.files.claims import claim_output
    from rejoinder.models.folder import write_model
    from rejoinder.runtime.encoder import SentenceEncoder

    printed = form_of(as_json=as_json, as_tsv=as_tsv)
    settings = FitSettings(learning_rate=learning_rate, penalty=penalty, seed=seed)
    with claim_output(out, overwrite=overwrite):
        train, dev = (read_stsb(sts, split, form) for split in ("train", "dev"))
        opened = load_encoder(encoder)
        begun = time.perf_counter()
        adaptation = fit(opened, train, dev, settings)
        seconds = round(time.perf_counter() - begun, 1)
        if isinstance(opened, SentenceEncoder):
            write_model(out, replace(opened.model, adaptation=adaptation), overwrite=overwrite)
        else:
            with new_folder(out, overwrite=overwrite) as folder:
                adaptation.write(folder / FILE)
    facts = adaptation.describe()
    if printed == "json":
        told = {"out": str(out), "seconds": seconds, "adaptation": facts}
        typer.echo(json.dumps(told, ensure_ascii=False))
        return
    row = ("dev", len(dev), facts["dev_pearson_before"], facts["dev_pearson_after"])
    print_rows(
        ("STS-B, eq. (2)", "pairs", "Pearson before", "after"),
        [row],
        printed,
        f"{facts['encoder']['name']}, adapted on {len(train):,} pairs",
    )
    stderr().print(f"wrote {out} ({facts['epochs']} epochs kept, {seconds} s)")
