"""`rejoinder evaluate`: scores an encoder on tasks and prints or saves the results.

`rejoinder board`: quality and cost of many encoders.

`rejoinder report`: tables and plots of results files.

`rejoinder compare`: two results files, and which differences are more than chance.

`rejoinder reproduce`: the tables and figures of the paper, with our numbers added.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rejoinder.cli import options, output
from rejoinder.cli.progress import Bar, TrainingProgress, task_bar
from rejoinder.errors import InputError, require

if TYPE_CHECKING:
    from rejoinder.evaluation.report import Comparison
    from rejoinder.evaluation.results import Missing, Result


_SHOWN_GROUPS = 10
_SMALL_GROUP = 100
_DETAILED = 6
"""Number of results up to which all scores and groups are shown."""
_TSV = ("task", "split", "settings", "part", "n", "score", "value", "low", "high")
_WORST = ("task", "split", "item", "predicted", "gold", "text")

Worst = Sequence[tuple[str, float, float, str]]
"""Id, prediction, gold and text of the items with the largest errors."""


@options.prints("json")
def evaluate(
    encoder: Annotated[str | None, typer.Argument()] = None,
    tasks: str | None = None,
    data: options.DataOption = None,
    pairs: options.PairsOption = None,
    split: str = "test",
    form: str | None = None,
    mode: str = "fast",
    pytorch: bool = False,
    nhid: Annotated[int, typer.Option(min=0)] = 0,
    kfold: Annotated[int, typer.Option(min=2)] = 10,
    text: str = "both",
    seed: int = 0,
    out: Path | None = None,
    overwrite: bool = False,
    skip_missing: bool = False,
    worst: Annotated[int, typer.Option(min=0)] = 0,
    adaptation: Path | None = None,
    cache: Path | None = None,
    repeat: Path | None = None,
) -> None:
    """Score an encoder: response selection, SentEval, SemEval STS, community questions.

    Args:
        encoder: Model name or folder, py:MODULE:FUNCTION, st:NAME (sentence-transformers),
            vectors:FILE, openai:MODEL@URL, tei:URL, or baseline:bow, tfidf, random, average:FILE,
            sif:FILE, soft-cosine:FILE, charagram:FILE.
        tasks: Tasks or groups of tasks, joined by commas: response, stsb, sts, senteval, probing,
            cqa, memory, links, contrasts, bias, or a single task such as trec.
        split: Split of the pairs that response ranks: train, dev or test.
        form: Form of the STS data: official or senteval. Default: any.
        mode: How to fit classifiers: fast, or compat (as SentEval does).
        pytorch: With compat, use SentEval's PyTorch classifier and penalties.
        nhid: Hidden units of classifiers.
        kfold: Folds of cross-validation.
        text: Part of the questions of cqa: subject, body or both.
        seed: Seed for drawing negatives and for intervals.
        out: Results file, written after each task. Results in it for the same encoder, data and
            settings are reused; results with other settings stay.
        overwrite: Score results in OUT again; drop results of other encoders.
        skip_missing: Exit with 0 even if some tasks have no data.
        worst: Number of items with the largest errors to show.
        adaptation: Output of `rejoinder adapt`, for an encoder that is not a model folder.
        cache: Folder that keeps embeddings for later runs.
        repeat: Results file: compute its results again and show differences (exit status 1).

    Examples:
        rejoinder evaluate runs/dan/model --tasks response --pairs pairs/
        rejoinder evaluate runs/dan/model --tasks stsb,sts --data data --out dan.json
        rejoinder evaluate baseline:bow --tasks sts --data data
        rejoinder evaluate st:all-MiniLM-L6-v2 --tasks senteval --data data
        rejoinder evaluate tei:http://localhost:8080 --tasks stsb --data data
        rejoinder evaluate py:my_module:my_encode --tasks stsb --data data --worst 20
        rejoinder evaluate --repeat dan.json
    """
    from rejoinder.api.evaluation import evaluate as run

    if repeat is not None:
        with_it = ("repeat", "cache", "skip_missing", "json", "quiet")
        if wrong := ", ".join(options.given_besides(*with_it)):
            raise InputError(f"--repeat takes all settings from the file; leave out {wrong}.")
        missing, differ = _repeat(repeat, cache)
        _report_missing(missing, skip_missing=skip_missing)
        if differ:
            raise typer.Exit(1)
        return
    if encoder is None or tasks is None:
        raise InputError("a model and --tasks are needed, or --repeat results.json.")
    with task_bar() as progress:
        results = run(
            encoder,
            tasks,
            data=data,
            pairs=pairs,
            split=split,
            form=form,
            text=text,
            seed=seed,
            mode=mode,
            pytorch=pytorch,
            nhid=nhid,
            kfold=kfold,
            adaptation=adaptation,
            out=out,
            cache=cache,
            overwrite=overwrite,
            skip_missing=True,
            progress=progress,
        )
    _show_results(results, worst=worst)
    if results.reused:
        output.note(f"{results.reused} of these were in {out}; --overwrite scores them again")
    _report_missing(results.missing, skip_missing=skip_missing)


def _report_missing(missing: "Sequence[Missing]", *, skip_missing: bool) -> None:
    """Prints which tasks lack their data, and exits with 2 unless they may be skipped."""
    for reason in dict.fromkeys(task.reason for task in missing):
        names = ", ".join(task.task for task in missing if task.reason == reason)
        tell = output.note if skip_missing else output.complain
        tell(f"{names} missing: {output.as_options(reason)}")
    if missing and not skip_missing:
        raise typer.Exit(2)


def _repeat(path: Path, cache: Path | None) -> "tuple[Sequence[Missing], int]":
    """Computes the results of a file again and prints what differs; returns how much does."""
    from rejoinder.api.evaluation import repeat

    with task_bar() as progress:
        repeated = repeat(path, cache=cache, progress=progress)
    columns, rows = ("task", "split", "score", "before", "now"), repeated.differences
    summary = f"{repeated.same} scores are the same, {len(rows)} differ"
    if None not in repeated.speeds:
        before, now = repeated.speeds
        summary += f"; {before:,.0f} sentences a second were encoded before, {now:,.0f} now"
    differ = [dict(zip(columns, row, strict=True)) for row in rows]
    if not output.printed_json(
        {"same": repeated.same, "differ": differ, "speeds": repeated.speeds}
    ):
        is_tsv = output.form_of_output() == "tsv"
        if rows or is_tsv:
            output.print_rows(columns, rows)
        (output.status_line if is_tsv else typer.echo)(summary)
    return repeated.missing, len(rows)


def _show_results(results: "Sequence[Result]", *, worst: int = 0) -> None:
    """Prints the results of one encoder as a table, TSV or JSON.

    Each is followed by its `worst` items: those with the largest errors.
    """
    form = output.form_of_output()
    items = [_worst_of(result, worst) for result in results] if worst else []
    if form == "json":
        trees = [result.as_tree() for result in results]
        for tree, rows in zip(trees, items, strict=False):
            tree["worst"] = [dict(zip(_WORST[2:], row, strict=True)) for row in rows]
        output.print_json(trees)
        return
    if form == "tsv":
        from rejoinder.evaluation.results import variants

        labels = variants(results)
        rows = [row for result in results for row in _all_rows(result, labels[result.key])]
        output.print_rows(_TSV, rows)
    else:
        _show_table(results)
    _show_notes(results, to_stderr=form == "tsv")
    listed = [
        (result.task, result.split, *row)
        for result, rows in zip(results, items, strict=False)
        for row in rows
    ]
    if listed:
        typer.echo("")
        output.print_rows(_WORST, listed)
        if form == "table" and not all(row[-1] for row in listed):
            output.print_wrapped("Texts are not kept: --overwrite scores again and shows them.")


def _show_table(results: "Sequence[Result]") -> None:
    from rejoinder.evaluation.results import variants, with_label

    labels = variants(results)
    rows = [
        (with_label(result.task, result.split, labels[result.key]), *row)
        for result in results
        for row in _rows(result, detailed=len(results) <= _DETAILED)
    ]
    parts = {row[1] for row in rows} != {"all"}
    columns = ("task", *(["part"] if parts else []), "n", "score", "value", "95 % interval")
    if not parts:
        rows = [(row[0], *row[2:]) for row in rows]
    spare = ("95 % interval", *(["score"] if len(results) > _DETAILED else []), "n")
    output.print_table(
        str(results[0].encoder.get("name", "")) if results else "", columns, rows, spare
    )


def _rows(result: "Result", *, detailed: bool) -> list[tuple[Any, ...]]:
    """Returns rows of part, n, score, value and interval.

    There is a row for each score and each large group, or for the main score alone.
    """
    rows: list[tuple[Any, ...]] = []
    for name in result.scores if detailed else [result.main]:
        interval = " to ".join(_text(result, name, end) for end in result.intervals.get(name, ()))
        rows.append(("all", result.n, name, _text(result, name, result.scores[name]), interval))
    if not detailed or len(result.groups) < 2:
        return rows
    large = sorted(result.groups.items(), key=lambda item: -item[1].n)
    for group, figures in [item for item in large if item[1].n >= _SMALL_GROUP][:_SHOWN_GROUPS]:
        name = result.main if result.main in figures.scores else next(iter(figures.scores))
        rows.append((group, figures.n, name, _text(result, name, figures.scores[name]), ""))
    return rows


def _text(result: "Result", name: str, value: float) -> str:
    from rejoinder.evaluation.results import score_text

    return score_text(value, percent=result.metric.in_percent(name))


def _all_rows(result: "Result", label: str) -> list[tuple[Any, ...]]:
    """Returns a TSV row for each score of a result and of its groups."""
    head = (result.task, result.split, label)
    rows: list[tuple[Any, ...]] = []
    for name, value in result.scores.items():
        low, high = result.intervals.get(name, ("", ""))
        rows.append((*head, "all", result.n, name, value, low, high))
    for group, figures in result.groups.items():
        for name, value in figures.scores.items():
            rows.append((*head, group, figures.n, name, value, "", ""))
    return rows


def _show_notes(results: "Sequence[Result]", *, to_stderr: bool) -> None:
    """Prints each note once, with all results that it applies to."""
    from rejoinder.evaluation.results import cost_text

    tasks: dict[str, list[str]] = {}
    for result in results:
        for text in result.notes:
            tasks.setdefault(text, []).append(f"{result.task} on {result.split}")
    notes = [f"{', '.join(dict.fromkeys(where))}: {text}" for text, where in tasks.items()]
    dearest = sorted(results, key=lambda one: one.cost.get("sentences", 0))[-1:]
    notes += filter(None, map(cost_text, dearest))
    training = results[0].encoder.get("training") if results else None
    pairs = training.get("pairs") if isinstance(training, Mapping) else None
    if isinstance(training, Mapping) and isinstance(pairs, int) and pairs:
        notes.append(f"trained on {pairs:,} pairs, seed {training.get('seed')}")
    for text in notes:
        (output.note if to_stderr else output.print_wrapped)(text)


def _worst_of(result: "Result", count: int) -> Worst:
    """Returns the items with the largest errors. Items that were read from a file have no texts."""
    items = result.items
    if items is None:
        return []
    error = result.metric.errors(items)
    return [
        (items.ids[row], float(items.predictions[row]), float(items.gold[row]), items.texts[row])
        for row in (-error).argsort(kind="stable")[:count].tolist()
        if error[row] > 0
    ]


@options.prints("json")
def report(
    results: Annotated[list[Path], typer.Argument()],
    out: options.OutOption,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write tables (Markdown), plots (SVG) and a page with all of them.

    The tables include published rows of Conneau and Kiela 2018 and Cer et al. 2017.

    Args:
        results: Results files written by `rejoinder evaluate`.

    Examples:
        rejoinder report dan.json bow.json --out report/
        rejoinder report dan.json bow.json --out report/ --overwrite --json
    """
    from rejoinder.evaluation.report import write_report

    written = write_report(results, out, overwrite=overwrite)
    if not output.printed_json({"out": str(out), "files": [str(path) for path in written]}):
        output.status_line(f"wrote {out / 'index.html'}")


@options.prints("json")
def board(
    results: Annotated[list[Path], typer.Argument()],
    out: options.OutOption,
    about: Path | None = None,
    overwrite: options.OverwriteOption = False,
    seed: int = 0,
) -> None:
    """Write a page that compares encoders by quality and cost, and shows whose scores are tied.

    Each pair of encoders is tested on the predictions of every task that both have results for.

    Args:
        results: Results files written by `rejoinder evaluate`.
        about: TOML file with a table for each encoder, named as in its results: title, licence,
            data, supervised.
        seed: Seed of the bootstrap.

    Examples:
        rejoinder board dan.json bow.json --out board/
        rejoinder board results/*.json --about about.toml --out board/ --overwrite
    """
    from rejoinder.evaluation.board import write_board

    with Bar("comparisons") as bar:
        page = write_board(
            results, out, about, overwrite=overwrite, seed=seed,
            progress=lambda done, pairs: bar.show("comparing", done, pairs),
        )  # fmt: skip
    if not output.printed_json({"out": str(out), "files": [str(page)]}):
        output.status_line(f"wrote {page}")


_COMPARED = (
    *("task", "split", "settings", "score", "n", "first", "second", "difference"),
    *("low", "high", "p", "p_holm", "test", "separable", "note"),
)


@options.prints("json")
def compare(
    first: Annotated[Path, typer.Argument()],
    second: Annotated[Path, typer.Argument()],
    seed: int = 0,
) -> None:
    """Compare two encoders on every task that both have results for.

    Correlations are compared by Williams' test, or by a bootstrap if they are means over subsets;
    accuracies by McNemar's test. Holm's method corrects p for the number of tasks.

    Args:
        first: Results file of `rejoinder evaluate`.
        second: Results file of another encoder.
        seed: Seed of the bootstrap.

    Examples:
        rejoinder evaluate baseline:bow --tasks stsb --data data --out bow.json
        rejoinder compare dan.json bow.json
    """
    from dataclasses import asdict

    from rejoinder.evaluation.report import compare as run

    form = output.form_of_output()
    compared = run(first, second, seed=seed)
    if form == "json":
        rows = [
            {**asdict(row), "difference": row.difference, "separable": row.separable}
            for row in compared.tasks
        ]
        output.print_json(rows)
    elif form == "tsv":
        output.print_rows(_COMPARED, [_tsv_row(row) for row in compared.tasks])
    else:
        _show(f"{first.name} against {second.name}", compared.tasks)
    for sentence in compared.left_out:
        output.note(sentence)


def _tsv_row(row: "Comparison") -> tuple[object, ...]:
    return (
        *(row.task, row.split, row.settings, row.score, row.n, row.first, row.second),
        *(row.difference, *row.interval, row.p, row.corrected, row.test),
        *("yes" if row.separable else "no", row.note),
    )


def _show(title: str, compared: "Sequence[Comparison]") -> None:
    """Prints a table for a terminal, then the notes."""
    from rejoinder.evaluation.report import COMPARED

    rows = [row.cells for row in compared]
    output.print_table(title, COMPARED, rows, ("n", "test", "95 % interval", "score", "separable"))
    for row in compared:
        if row.note:
            output.print_wrapped(f"{row.task} on {row.split}: {row.note}")


@options.prints("json")
def reproduce(
    data: Path,
    out: Path,
    encoder: str = "dan",
    budget: str = "quick",
    seed: Annotated[int, typer.Option(min=0)] = 1,
    also: list[Path] | None = None,
    device: str = "auto",
    threads: options.ThreadsOption = None,
) -> None:
    """Print every table and figure of Yang et al. 2018 with our numbers added.

    --json prints results.json, all results with their settings, instead of the tables.
    Repeat the command to continue an interrupted reproduction.

    Args:
        data: Folder of data sets and conversations.
        out: Folder of the report, with the models in work/.
        encoder: dan or transformer.
        budget: Amount of work: smoke (a minute), quick (ten minutes), standard (half an hour), full
            (needs a GPU).
        seed: Seed of all training runs.
        also: Folder of a trained model to add rows for. Repeatable.
        device: auto, cpu or cuda.

    Examples:
        rejoinder reproduce --data data --budget smoke --out report/
        rejoinder reproduce --data data --budget standard --out report/
        rejoinder reproduce --data data --also runs/dan/model --out report/
    """
    require("train", "polars", "torch", "pydantic")
    from rejoinder.io.files.claims import claim
    from rejoinder_papers.budgets import budget_of
    from rejoinder_papers.work import Options, Work
    from rejoinder_papers.writer import write_reproduction

    require("report", "jinja2", "matplotlib")  # missed now, not after hours of training
    options = Options(
        data, out, encoder, budget_of(budget), seed, device, threads, tuple(also or ())
    )

    def tell(stage: str, seconds: float | None) -> None:
        left = f": about {max(round(seconds / 60), 1)} min left" if seconds else ""
        output.status_line(f"{stage}{left}")

    with claim(out):
        work = Work(options, TrainingProgress, tell)
        work.run()
        write_reproduction(work)
    shown = "results.json" if output.asked_for("json") else "tables.md"
    typer.echo((out / shown).read_text("utf-8"))
    output.status_line(f"The page with the figures is {out / 'index.html'}.")
