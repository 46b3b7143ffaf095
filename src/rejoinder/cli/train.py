"""`rejoinder train`: trains an encoder from a config and pairs.

`rejoinder finetune`: trains a model further on your pairs.

`rejoinder adapt`: fits a linear map of an encoder's embeddings on the STS Benchmark.

`rejoinder fit-scorer`: fits a scorer of pairs of texts on pairs that people scored.

`rejoinder config`: shows, checks and lists the configs of `rejoinder train`.
"""

import json
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar, TrainingProgress
from rejoinder.errors import ConfigError, InputError, RejoinderError, require

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rejoinder.api.training import Run, SessionOptions


@options.prints("json", excludes=[("--exclude-leaks", "--no-exclude-leaks")])
def train(
    out: Path,
    config: str | None = None,
    pairs: options.PairsOption = None,
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
    resume: bool = False,
    stop_at: Annotated[int | None, typer.Option(min=1)] = None,
    minutes: Annotated[float | None, typer.Option(min=0.01)] = None,
    seed: Annotated[list[str] | None, typer.Option(metavar="N,...")] = None,
    data: Path | None = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
    exclude_leaks: bool = False,
    no_exclude_leaks: bool = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    r"""Train an encoder on inputs and their responses.

    Args:
        out: Folder of the run; the model is OUT/model.
        config: TOML file, or the name of a shipped config (`rejoinder config list`); with --resume,
            the config of the run by default.
        overrides: Settings to replace.
        resume: Continue from the last checkpoint, and start seeds that have no run yet.
        stop_at: Step to stop at; resume the run later.
        minutes: Stop after this many minutes, and export the model.
        seed: Seed. Several seeds train a run each, and show the spread of the scores.
        data: Folder of data sets, with the files of \[\[tasks]]. If it has the STS Benchmark,
            evaluations include its dev split.
        device: auto, cpu or cuda.
        exclude_leaks: Leave out pairs with evaluation sentences, whatever CONFIG says.
        no_exclude_leaks: Train on such pairs, too.

    Examples:
        rejoinder train --config dan-modern --pairs pairs/ --out runs/dan
        rejoinder train --config dan-modern --pairs pairs/ --out runs/dan --resume
        rejoinder train --config demo --pairs pairs/ --out runs/d phases.0.steps=500
        rejoinder train --config demo --pairs pairs/ --out runs/three --seed 1,2,3
    """
    require("train", "polars", "torch", "pydantic")
    from rejoinder.api.training import train as train_run
    from rejoinder.api.training import train_seeds
    from rejoinder.training.workers import worker_leads

    leads = worker_leads()
    if not leads:
        output.set_output(quiet=True)
    seeds = _numbers(seed or ())
    settings = list(overrides or ())
    if exclude_leaks or no_exclude_leaks:
        settings.append(f"training.exclude_leaks={str(exclude_leaks).lower()}")
    if len(seeds) == 1:
        settings.append(f"training.seed={seeds[0]}")
    with TrainingProgress(_steps(config, out, settings)) as shown:
        session: SessionOptions = {
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
            runs = train_seeds(config, seeds, out=out, **session)
        else:
            runs = {0: train_run(config, out=out, **session)}
    if not leads:
        return
    _print_summaries(runs.values(), "instead of --overwrite" if overwrite else "")
    last = list(runs.values())[-1]
    if last.interrupted is not None:
        raise typer.Exit(128 + last.interrupted)
    if output.asked_for("json"):
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
        raise InputError(f"--seed {seed[0]!r}: write whole numbers, as in 1,2,3.") from None


def _steps(config: str | None, out: Path, settings: "Sequence[str]") -> int | None:
    """Returns the number of steps of a run, for the bar; None if there is no config to read."""
    from rejoinder.api.training import CONFIG, place_of_run
    from rejoinder.training.config.loading import load_config

    with suppress(RejoinderError):  # `train` says it, once for all workers
        return load_config(config or place_of_run(out) / CONFIG, settings).steps
    return None


def _print_summaries(runs: "Iterable[Run]", instead: str) -> None:
    for run in runs:
        if run.model is None:
            more = f"continue with the same command and --resume {instead}".rstrip()
            output.status_line(f"stopped at step {run.steps:,}; {more}")
        else:
            done = (
                f"{run.steps:,} steps in {output.duration(run.seconds)}, from {run.pairs:,} pairs"
            )
            output.status_line(f"{done} ({run.leaks:,} left out); the model is {run.model}")
        if run.workers_before != run.workers:
            began = f"{run.workers} workers continued what {run.workers_before} began"
            output.status_line(f"warning: {began}: the order of batches changed")
        if run.warning:
            output.status_line(f"warning: {run.warning}")


def _print_spread(runs: "Mapping[int, Run]") -> None:
    """Prints each dev score by seed, with mean and standard deviation over the seeds."""
    from statistics import mean, stdev

    rows = []
    for name in next(iter(runs.values())).scores:
        values = [run.scores[name] for run in runs.values() if name in run.scores]
        rows.append((name, *values, mean(values), stdev(values)))
    output.print_table("on dev", ("", *(f"seed {seed}" for seed in runs), "mean", "sd"), rows)


@options.prints("json", "tsv")
def finetune(
    pairs: Path,
    out: Path,
    model: Annotated[str | None, typer.Option("--model", "-m")] = None,
    minutes: Annotated[float, typer.Option(min=0.01)] = 5.0,
    questions: Path | None = None,
    sts: Path | None = None,
    data: Path | None = None,
    seed: options.SeedOption = 0,
    threads: options.ThreadsOption = None,
    force: bool = False,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Fine-tune a model on your own pairs; it is kept if it finds replies better.

    Args:
        pairs: Folder of `rejoinder extract`, with dev and test pairs.
        out: Model folder to write.
        model: Model to start from: a name or a folder. Default: by the languages of the pairs.
        minutes: About how long to train; small data sets take less.
        questions: Groups of questions with the same answer, to train on too: JSON lines with
            `sentences`, or two questions on each line, separated by a tab.
        sts: Graded pairs, to fit a linear map on: JSON lines with `sentence1`, `sentence2` and
            `score` (0 to 5), or the same separated by tabs.
        data: Folder of data sets. If it has the STS Benchmark, its dev split shows how much general
            similarity remains.
        force: Keep a model that got worse.

    Examples:
        rejoinder finetune --pairs pairs/ --out my-model
        rejoinder finetune --pairs pairs/ --out my-model --minutes 20 --data data
        rejoinder finetune --pairs pairs/ --out my-model --questions duplicates.jsonl
        rejoinder evaluate my-model --tasks response --pairs pairs/
    """
    require("train", "polars", "torch", "pydantic")
    from rejoinder.api.finetuning import finetune as run

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
    if not output.printed_json({**asdict(tuned), "folder": tuned.folder and str(tuned.folder)}):
        rows = [
            (name, score, tuned.after[name], tuned.after[name] - score)
            for name, score in tuned.before.items()
        ]
        output.print_rows(
            ("held-out threads", "before", "after", "change"), rows, f"{tuned.model}, fine-tuned"
        )
    if tuned.folder is None:
        scores = ", ".join(
            f"{name} {before:.3f} before, {after:.3f} after"
            for name, (before, after) in tuned.first_found.items()
        )
        worse = f"the first one found is right less often than before ({scores})"
        output.status_line(f"not kept: {worse}. More pairs may help; --force keeps it.")
        raise typer.Exit(1)
    output.status_line(
        f"wrote {out} ({tuned.pairs:,} pairs, {tuned.words:,} new words, {tuned.steps:,} steps in "
        f"{output.duration(tuned.seconds)}, {tuned.share:.0%} of the way)"
    )
    search = tuned.search
    output.status_line(
        f"hybrid search takes {search.weight:g} of meaning: MRR of {search.queries:,} replies "
        f"{search.both:.3f} (meaning alone {search.meaning:.3f}, words alone {search.words:.3f})"
    )


@options.prints("json", "tsv")
def adapt(
    encoder: Annotated[str, typer.Argument()],
    sts: Path,
    out: Path,
    form: str | None = None,
    learning_rate: float = 3e-4,
    penalty: float = 1e-3,
    seed: options.SeedOption = 0,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Fit u* = W u on the training pairs of the STS Benchmark; its dev pairs select W.

    Args:
        encoder: Model name or folder, or any encoder that `rejoinder evaluate` takes.
        sts: Folder of sts-train.csv and sts-dev.csv, or a folder of data sets.
        out: Folder to write: the adapted model, or for other encoders only the adaptation.
        form: Form of the STS data: official or senteval. Default: either.
        learning_rate: Learning rate of Adam, for the map.
        penalty: Weight of the squared distance of the map from the identity.

    Examples:
        rejoinder adapt runs/dan/model --sts data --out adapted/
        rejoinder evaluate adapted/ --tasks stsb,sts --data data
        rejoinder adapt st:all-MiniLM-L6-v2 --sts data --out minilm/
    """
    from rejoinder.api import export
    from rejoinder.models.adaptation import FitSettings

    settings = FitSettings(learning_rate=learning_rate, penalty=penalty, seed=seed)
    start = time.perf_counter()
    adapted = export.adapt(encoder, sts, out=out, form=form, settings=settings, overwrite=overwrite)
    seconds = round(time.perf_counter() - start, 1)
    facts = adapted.describe()["adaptation"]
    if output.printed_json({"out": str(out), "seconds": seconds, "adaptation": facts}):
        return
    output.print_rows(
        ("STS-B, eq. (2)", "pairs", "Pearson before", "after"),
        [("dev", facts["dev_pairs"], facts["dev_pearson_before"], facts["dev_pearson_after"])],
        f"{facts['encoder']['name']}, adapted on {facts['pairs']:,} pairs",
    )
    output.status_line(f"wrote {out} ({facts['epochs']} epochs kept, {seconds} s)")


@options.prints("json", "tsv")
def fit_scorer(
    out: options.OutOption,
    data: options.DataOption = None,
    sets: str = "stsb,sts",
    model: options.ModelOption = None,
    model_sha256: options.ModelSha256Option = None,
    seed: options.SeedOption = 0,
    threads: options.ThreadsOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Fit a scorer for pairs of texts, by embeddings, words, order, numbers, names, negation.

    Args:
        sets: Pairs to fit on: stsb (its train split, counted eight times), sts (STS 2012 to 2015),
            contrasts (sentences that differ in number, name, word, negation or order), files of
            JSON lines with sentence1, sentence2 and score (0 to 5), or the same separated by tabs.

    Examples:
        rejoinder fit-scorer --data data --out scorer/
        rejoinder fit-scorer --sets graded.jsonl --model model/ --out scorer/
        rejoinder similarity --scorer-from scorer/ 'How old are you?' 'Your age?'
        rejoinder evaluate scorer:scorer/ --tasks stsb --data data
    """
    from rejoinder.api.scorer import fit_scorer as fit

    start = time.perf_counter()
    with Bar("fits") as bar:
        fitted = fit(
            out,
            data=data,
            sets=[name for name in sets.split(",") if name],
            encoder=options.open_encoder(model, model_sha256, "truncate"),
            seed=seed,
            threads=threads,
            overwrite=overwrite,
            progress=bar.show,
        )
    seconds, facts = time.perf_counter() - start, fitted.facts
    told = {"pairs": facts.pairs, "leaks_dropped": facts.leaks_dropped, "dev": facts.dev}
    if output.printed_json({"out": str(out), "seconds": round(seconds, 1), **told}):
        return
    rows = [(name, count) for name, count in facts.pairs.items()]
    rows.append(("left out: repeated, or of an evaluation set", facts.leaks_dropped))
    output.print_rows(("pairs", "number"), rows)
    if facts.dev:
        output.print_rows(("STS-B dev", "correlation"), list(facts.dev.items()))
    output.status_line(f"wrote {out} ({output.duration(seconds)})")


_CONFIG_EXAMPLES = options.epilog(
    "rejoinder config list",
    "rejoinder config show dan-modern",
    "rejoinder config show dan-modern encoder.width=300 > my.toml",
    "rejoinder config check my.toml",
)


config_commands = typer.Typer(
    help="Configs of `rejoinder train`: show, check, list.",
    no_args_is_help=True,
    epilog=_CONFIG_EXAMPLES,
)


@config_commands.command("show", epilog=_CONFIG_EXAMPLES)
@options.prints("json")
def show_config(
    config: Annotated[str, typer.Argument(metavar="NAME|FILE")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
) -> None:
    """Show a complete config as TOML: every key that has an effect, with defaults filled in.

    Args:
        config: Name of a shipped config, or a TOML file.
        overrides: Settings to replace.
    """
    from rejoinder.training.config.loading import effective_tree, load_config, to_toml

    loaded = load_config(config, overrides or ())
    if not output.printed_json(effective_tree(loaded)):
        typer.echo(to_toml(loaded), nl=False)


@config_commands.command("check", epilog=_CONFIG_EXAMPLES)
@options.prints("json")
def check_configs(files: Annotated[list[str], typer.Argument(metavar="FILE...")]) -> None:
    """Check configs and report all faults; the exit status is 2 if there are any.

    Args:
        files: TOML files or names of shipped configs.
    """
    from rejoinder.training.config.loading import load_config

    messages: dict[str, str] = {}
    for file in files:
        try:
            load_config(file)
        except RejoinderError as error:
            messages[file] = str(error)
        else:
            output.status_line(f"{file}: no faults")
    if output.asked_for("json"):
        output.print_json({file: _faults(messages.get(file)) for file in files})
    if messages:
        raise ConfigError("\n".join(messages.values()))


def _faults(message: str | None) -> list[str]:
    """Returns the faults that an error reports, without the line that counts them."""
    head, *lines = (message or "").split("\n  ")
    return lines or [head] if head else []


@config_commands.command("list", epilog=_CONFIG_EXAMPLES)
@options.prints("json", "tsv")
def list_configs() -> None:
    """List the shipped configs: name, kind of encoder, purpose."""
    from rejoinder.training.config.loading import encoder_kind, purpose, shipped_names

    rows = [(name, encoder_kind(name), purpose(name)) for name in shipped_names()]
    output.print_rows(("name", "encoder", "purpose"), rows)
