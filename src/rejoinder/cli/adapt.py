"""`rejoinder adapt`: fits a linear map of an encoder's embeddings on the STS Benchmark."""

import time
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.options import OverwriteOption, SeedOption, epilog, prints
from rejoinder.cli.output import asked_for, print_json, print_rows, status_line

EXAMPLES = epilog(
    "rejoinder adapt runs/dan/model --sts data --out adapted/",
    "rejoinder evaluate adapted/ --tasks stsb,sts --data data",
    "rejoinder adapt st:all-MiniLM-L6-v2 --sts data --out minilm/",
)


@prints("json", "tsv")
def adapt(
    encoder: Annotated[
        str,
        typer.Argument(
            help="Model name or folder, or any encoder that `rejoinder evaluate` takes."
        ),
    ],
    sts: Annotated[
        Path,
        "Folder of sts-train.csv and sts-dev.csv, or a folder of data sets.",
    ],
    out: Annotated[
        Path,
        "Folder to write: the adapted model, or for other encoders the adaptation alone.",
    ],
    form: Annotated[
        str | None,
        "Form of the STS data: official or senteval. Default: either.",
    ] = None,
    learning_rate: Annotated[float, "Learning rate of Adam, for the map."] = 3e-4,
    penalty: Annotated[
        float, "Weight of the squared distance of the map from the identity."
    ] = 1e-3,
    seed: SeedOption = 0,
    overwrite: OverwriteOption = False,
) -> None:
    """Fit u* = W u on the training pairs of the STS Benchmark. Its dev pairs select W."""
    from rejoinder.api import export
    from rejoinder.models.fitting import FitSettings

    settings = FitSettings(learning_rate=learning_rate, penalty=penalty, seed=seed)
    start = time.perf_counter()
    adapted = export.adapt(encoder, sts, out=out, form=form, settings=settings, overwrite=overwrite)
    seconds = round(time.perf_counter() - start, 1)
    facts = adapted.describe()["adaptation"]
    if asked_for("json"):
        print_json({"out": str(out), "seconds": seconds, "adaptation": facts})
        return
    print_rows(
        ("STS-B, eq. (2)", "pairs", "Pearson before", "after"),
        [("dev", facts["dev_pairs"], facts["dev_pearson_before"], facts["dev_pearson_after"])],
        f"{facts['encoder']['name']}, adapted on {facts['pairs']:,} pairs",
    )
    status_line(f"wrote {out} ({facts['epochs']} epochs kept, {seconds} s)")
