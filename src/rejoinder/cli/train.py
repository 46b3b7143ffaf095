"""`rejoinder train`: trains an encoder from a config and pairs."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli.options import OverwriteOption, PairsOption, ThreadsOption, epilog, prints
from rejoinder.cli.output import asked_for, duration, print_table, set_output, status_line
from rejoinder.errors import InputError, RejoinderError, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rejoinder.api.training import Run, SessionOptions

EXAMPLES = epilog(
    "rejoinder train --config dan-modern --pairs pairs/ --out runs/dan",
    "rejoinder train --config dan-modern --pairs pairs/ --out runs/dan --resume",
    "rejoinder train --config demo --pairs pairs/ --out runs/d phases.0.steps=500",
    "rejoinder train --config demo --pairs pairs/ --out runs/three --seed 1,2,3",
)


@prints("json", excludes=[("--exclude-leaks", "--no-exclude-leaks")])
def train(
    out: Annotated[Path, "Folder of the run; the model is OUT/model."],
    config: Annotated[
        str | None,
        "TOML file, or the name of a shipped config (`rejoinder config list`); with "
        "--resume, the config of the run by default.",
    ] = None,
    pairs: PairsOption = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to replace.")
    ] = None,
    resume: Annotated[
        bool,
        "Continue from the last checkpoint. Begin seeds not begun yet.",
    ] = False,
    stop_at: Annotated[
        int | None, typer.Option(min=1, help="Step to stop at; resume the run later.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Minutes to stop after; the model is exported.")
    ] = None,
    seed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,...",
            help="Seed. Several make a run each, and show the spread of the scores.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        "Folder of data sets: the files of \\[\\[tasks]] are below it. If it holds the "
        "STS Benchmark, evaluations include its dev split.",
    ] = None,
    device: Annotated[str, "auto, cpu or cuda."] = "auto",
    threads: ThreadsOption = None,
    exclude_leaks: Annotated[
        bool,
        "Leave out pairs with evaluation sentences, whatever CONFIG is.",
    ] = False,
    no_exclude_leaks: Annotated[bool, "Train on such pairs too."] = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Train an encoder on inputs and their responses."""
    require("train", "polars", "torch", "pydantic")
    from rejoinder.api.training import train as train_run
    from rejoinder.api.training import train_seeds
    from rejoinder.cli.progress import TrainingProgress
    from rejoinder.training.workers import worker_leads

    leads = worker_leads()
    if not leads:
        set_output(quiet=True)
    seeds = _numbers(seed or ())
    settings = list(overrides or ())
    if exclude_leaks or no_exclude_leaks:
        settings.append(f"training.exclude_leaks={str(exclude_leaks).lower()}")
    if len(seeds) == 1:
        settings.append(f"training.seed={seeds[0]}")
    with TrainingProgress(_steps(config, out, settings, seeds)) as shown:
        options: SessionOptions = {
            "pairs": pairs,
            "data": data,
            "overrides": settings,
            "device": device,
            "threads": threads,
            "stop_at": stop_at,
            "minutes": minutes,
            "resume": resume,
            "overwrite": overwrite,
            "reporter": shown,
            "progress": shown.preparation,
        }
        if len(seeds) > 1:
            runs = train_seeds(config, seeds, out=out, **options)
        else:
            runs = {0: train_run(config, out=out, **options)}
    if not leads:
        return
    _print_summaries(runs.values(), "instead of --overwrite" if overwrite else "")
    last = list(runs.values())[-1]
    if last.interrupted is not None:
        raise typer.Exit(128 + last.interrupted)
    if asked_for("json"):
        trees = {number: asdict(run) for number, run in runs.items()}
        typer.echo(json.dumps(trees if len(seeds) > 1 else asdict(last), default=str))
    elif len(seeds) > 1:
        _print_spread(runs)


def _numbers(seed: "Sequence[str]") -> list[int]:
    """Returns the seeds that `--seed` gives, each once."""
    if len(seed) > 1:
        raise InputError(f"--seed is given several times; write --seed {','.join(seed)} instead.")
    try:
        return list(dict.fromkeys(int(number) for text in seed for number in text.split(",")))
    except ValueError:
        raise InputError(
            f"--seed is {seed[0]!r}; a whole number is expected, or several joined by commas, "
            "such as 1,2,3."
        ) from None


def _steps(
    config: str | None, out: Path, settings: "Sequence[str]", seeds: "Sequence[int]"
) -> int | None:
    """Returns the number of steps of a run, for the bar; None if there is no config to read."""
    from rejoinder.api.training import place_of_run
    from rejoinder.training.config.loading import load_config

    runs = map(place_of_run, (out, *(out / f"seed-{seed}" for seed in seeds)))
    begun = (run / "config.toml" for run in runs)
    source = config or next((path for path in begun if path.is_file()), None)
    if source is None:
        return None
    with suppress(RejoinderError):  # `train` says it, once for all workers
        return load_config(source, settings).steps
    return None


def _print_summaries(runs: "Iterable[Run]", instead: str) -> None:
    for run in runs:
        if run.model is None:
            status_line(
                f"stopped at step {run.steps:,}; continue with the same command and --resume "
                f"{instead}".rstrip()
            )
        else:
            status_line(
                f"{run.steps:,} steps in {duration(run.seconds)}, from {run.pairs:,} pairs "
                f"({run.leaks:,} left out); the model is {run.model}"
            )
        if run.workers_before != run.workers:
            status_line(
                f"warning: {run.workers} workers continued what {run.workers_before} began: the "
                "order of batches changed, and results differ from those of the same number"
            )
        if run.warning:
            status_line(f"warning: {run.warning}")


def _print_spread(runs: "Mapping[int, Run]") -> None:
    """Prints each dev score by seed, with mean and standard deviation over the seeds."""
    from statistics import mean, stdev

    rows = []
    for name in next(iter(runs.values())).scores:
        values = [run.scores[name] for run in runs.values() if name in run.scores]
        rows.append((name, *values, mean(values), stdev(values)))
    print_table("on dev", ("", *(f"seed {seed}" for seed in runs), "mean", "sd"), rows)
