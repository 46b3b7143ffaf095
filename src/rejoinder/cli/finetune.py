"""`rejoinder finetune`: trains a model further on your pairs."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli.options import OverwriteOption, SeedOption, ThreadsOption, epilog, prints
from rejoinder.cli.output import asked_for, duration, print_json, print_rows, status_line
from rejoinder.errors import require

EXAMPLES = epilog(
    "rejoinder finetune --pairs pairs/ --out my-model",
    "rejoinder finetune --pairs pairs/ --out my-model --minutes 20 --data data",
    "rejoinder finetune --pairs pairs/ --out my-model --questions duplicates.jsonl",
    "rejoinder evaluate my-model --tasks response --pairs pairs/",
)


@prints("json", "tsv")
def finetune(
    pairs: Annotated[Path, "Folder of `rejoinder extract`, with dev and test pairs."],
    out: Annotated[Path, "Model folder to write."],
    model: Annotated[
        str, typer.Option("--model", "-m", help="Model to begin with: a name or a folder.")
    ] = "rejoinder-base",
    minutes: Annotated[
        float, typer.Option(min=0.01, help="About how long to train; small data take less.")
    ] = 5.0,
    questions: Annotated[
        Path | None,
        "Groups of questions with the same answer, to train on too: JSON lines with `sentences`, "
        "or two questions on each line, separated by a tab.",
    ] = None,
    sts: Annotated[
        Path | None,
        "Graded pairs, to fit a linear map on: JSON lines with `sentence1`, `sentence2` and "
        "`score` (0 to 5), or the same separated by tabs.",
    ] = None,
    data: Annotated[
        Path | None,
        "Folder of data sets. If it holds the STS Benchmark, its dev split shows how much of the "
        "general similarity was kept.",
    ] = None,
    seed: SeedOption = 0,
    threads: ThreadsOption = None,
    force: Annotated[bool, "Keep a model that got worse."] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Go on training a model on your own pairs; it is kept if it finds replies better."""
    require("train", "polars", "torch", "pydantic")
    from rejoinder.api.finetuning import finetune as run
    from rejoinder.cli.progress import TrainingProgress

    with TrainingProgress(None) as shown:
        tuned = run(
            pairs,
            out=out,
            model=model,
            minutes=minutes,
            questions=questions,
            sts=sts,
            data=data,
            seed=seed,
            threads=threads,
            force=force,
            overwrite=overwrite,
            reporter=shown,
            progress=shown.preparation,
            stage=lambda doing: shown.show(doing, 0),
        )
    if asked_for("json"):
        print_json({**asdict(tuned), "folder": tuned.folder and str(tuned.folder)})
    else:
        rows = [
            (name, score, tuned.after[name], tuned.after[name] - score)
            for name, score in tuned.before.items()
        ]
        print_rows(("held-out threads", "before", "after", "change"), rows, f"{model}, fine-tuned")
    if tuned.folder is None:
        scores = ", ".join(
            f"{name} {before:.3f} before, {after:.3f} after"
            for name, (before, after) in tuned.first_found.items()
        )
        status_line(
            f"not kept: the first one found is right less often than before ({scores}). More pairs "
            "may help; --force keeps it."
        )
        raise typer.Exit(1)
    status_line(
        f"wrote {out} ({tuned.pairs:,} pairs, {tuned.words:,} new words, {tuned.steps:,} steps in "
        f"{duration(tuned.seconds)}, {tuned.share:.0%} of the way)"
    )
    search = tuned.search
    status_line(
        f"hybrid search takes {search.weight:g} of meaning with it: MRR of the replies to "
        f"{search.queries:,} messages {search.both:.3f}; by meaning alone {search.meaning:.3f}, by "
        f"words alone {search.words:.3f}"
    )
