"""`rejoinder train`: a config and pairs to a run and its model."""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.files.claims import refuse_occupied

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rejoinder.protocols import Encodes
    from rejoinder.training.loop import Evaluate
    from rejoinder.training.preparation import Data
    from rejoinder.training.run import RunOptions, RunResult
    from rejoinder.training.settings import RunConfig

_EPILOG = """Examples:

rejoinder train --config dan-modern --pairs pairs/ --out runs/dan

rejoinder train --config dan-modern --pairs pairs/ --out runs/dan --resume

rejoinder train --config dan-modern --pairs pairs/ --out runs/three
--seed 1 --seed 2 --seed 3 phases.0.steps=2000
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("train", epilog=_EPILOG)(train)


def train(
    out: Annotated[Path, typer.Option(help="Folder of the run; the model is OUT/model.")],
    config: Annotated[
        str | None,
        typer.Option(
            help="TOML file, or the name of a shipped config (`rejoinder config list`); with "
            "--resume, the config of the run by default."
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Folder that `rejoinder extract` wrote, for the task responses."),
    ] = None,
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings to replace.")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Continue from the last checkpoint; begin the seeds not begun yet."
        ),
    ] = False,
    stop_at: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many steps, to be resumed.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Stop after so many minutes and export.")
    ] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(help="Seed; given several times, one run each and the spread over them."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of data sets: the files of \\[\\[tasks]] are below it, and with the STS "
            "Benchmark in it evaluations have its dev figures."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    threads: Annotated[
        int | None, typer.Option(min=1, help="CPU threads; default: all cores.")
    ] = None,
    exclude_leaks: Annotated[
        bool | None,
        typer.Option(help="Drop pairs with evaluation sentences; default: as the config says."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT.")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train an encoder on message/reply pairs."""
    from rejoinder.errors import InputError
    from rejoinder.files.claims import claim
    from rejoinder.training.loop import Limits
    from rejoinder.training.run import RunOptions, open_data

    options = RunOptions(Limits(stop_at, minutes * 60 if minutes else None), device, threads)
    seeds = list(dict.fromkeys(seed or []))
    settings = list(overrides or ())
    if exclude_leaks is not None:
        settings.append(f"training.exclude_leaks={str(exclude_leaks).lower()}")
    if resume and overwrite:
        raise InputError("--resume continues a run and --overwrite replaces it; leave one out.")
    if config is None and not resume:
        raise InputError(
            "--config is missing: a TOML file, or a name that `rejoinder config list` shows."
        )
    if len(seeds) > 1 and not resume:
        refuse_occupied(out, overwrite=overwrite)
    with claim(out):
        source = open_data(pairs, data)
        runs: list[tuple[Path, bool, RunConfig]] = []
        for value in seeds or (None,):
            run = out / f"seed-{value}" if len(seeds) > 1 else out
            chosen = settings if value is None else [*settings, f"training.seed={value}"]
            begun = resume and (run / "config.toml").is_file()
            if resume and not begun and (len(seeds) < 2 or config is None):
                raise InputError(_nothing_to_resume(run))
            runs.append((run, begun, _load(config, run, chosen)))
        results: dict[int, RunResult] = {}
        for run, begun, loaded in runs:
            if begun:
                result = _go_on(run, source, options, loaded)
            else:
                result = _from_start(loaded, source, run, options, overwrite=overwrite)
            _say(result)
            results[loaded.training.seed] = result
            if result.interrupted is not None:
                raise typer.Exit(128 + result.interrupted)
    if len(seeds) > 1:
        _say_spread(results, json_output=json_output)
    elif json_output:
        typer.echo(json.dumps(asdict(result), default=str))


def _load(config: str | None, run: Path, settings: "Sequence[str]") -> "RunConfig":
    from rejoinder.training.config import load_config

    return load_config(run / "config.toml" if config is None else config, tuple(settings))


def _nothing_to_resume(run: Path) -> str:
    seeds = sorted(path.name.removeprefix("seed-") for path in run.glob("seed-*"))
    if seeds:
        given = " ".join(f"--seed {value}" for value in seeds)
        return (
            f"{run} holds runs of several seeds; resume them with the same --seed options: {given}."
        )
    return f"{run} holds no run to resume; leave --resume out to begin one."


def _from_start(
    config: "RunConfig", data: "Data", out: Path, options: "RunOptions", *, overwrite: bool
) -> "RunResult":
    from rejoinder.training.run import removed_if_refused

    _begin(config, data, out, overwrite=overwrite)
    with removed_if_refused(out):
        return _go_on(out, data, options, config)


def _begin(config: "RunConfig", data: "Data", out: Path, *, overwrite: bool) -> None:
    from rejoinder.cli.progress import StageProgress
    from rejoinder.training.run import begin

    with StageProgress("pairs") as preparing:
        begin(config, data, out, overwrite=overwrite, progress=preparing.part_update)


def _go_on(out: Path, data: "Data", options: "RunOptions", config: "RunConfig") -> "RunResult":
    from rejoinder.cli.progress import TrainingProgress
    from rejoinder.training.run import go_on

    with TrainingProgress(config.steps) as reporter:
        return go_on(
            out,
            data,
            options,
            config=config,
            evaluate=_evaluation(config, data),
            reporter=reporter,
        )


def _evaluation(config: "RunConfig", data: "Data") -> "Evaluate":
    """P@N on dev and, where the benchmark is at hand, the STS Benchmark's dev split."""
    from rejoinder.api.pairs import response_pairs
    from rejoinder.datasets.sts import read_stsb
    from rejoinder.errors import DataMissingError
    from rejoinder.evaluation.encoding import Embedder
    from rejoinder.evaluation.tasks.response import rank_responses
    from rejoinder.evaluation.tasks.similarity import score_stsb

    dev = None if data.pairs is None else response_pairs(data.pairs.folder, "dev")
    benchmark = None
    if data.folder is not None:
        with suppress(DataMissingError):  # its figures are an extra
            benchmark = read_stsb(data.folder, "dev")

    def evaluate(encoder: "Encodes") -> "Mapping[str, float]":
        most = config.training.evaluate_pairs
        scores: dict[str, float] = {}
        if dev is not None and len(dev) > 1:
            scores |= rank_responses(Embedder(encoder), dev, max_inputs=most).scores
        if benchmark is not None:
            angular, _ = score_stsb(encoder, benchmark)
            scores["STS-B Pearson"] = angular.scores["pearson"]
        return scores

    return evaluate


def _say(result: "RunResult") -> None:
    from rejoinder.cli.output import stderr

    if result.model is None:
        said = f"stopped at step {result.steps:,}; continue with the same command and --resume"
    else:
        said = (
            f"{result.steps:,} steps in {result.seconds / 60:.1f} minutes, from {result.pairs:,} "
            f"pairs ({result.leaks:,} left out); the model is {result.model}"
        )
    stderr().print(said, markup=False, soft_wrap=True)
    if result.warning:
        stderr().print(f"warning: {result.warning}", markup=False, soft_wrap=True)


def _say_spread(results: "Mapping[int, RunResult]", *, json_output: bool) -> None:
    """Each score on dev, by seed, with mean and standard deviation over the seeds."""
    from statistics import mean, stdev

    from rejoinder.cli.output import print_table

    if json_output:
        tree = {seed: asdict(result) for seed, result in results.items()}
        typer.echo(json.dumps(tree, default=str))
        return
    names = list(next(iter(results.values())).scores)
    rows = []
    for name in names:
        values = [result.scores[name] for result in results.values() if name in result.scores]
        rows.append((name, *values, mean(values), stdev(values)))
    print_table("on dev", ("", *(f"seed {seed}" for seed in results), "mean", "sd"), rows)
