"""Adds results and the training time to the model card of a model folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rejoinder.errors import InputError, TrainingError, require
from rejoinder.io.files.atomic import write_text
from rejoinder.io.files.claims import refuse_inputs
from rejoinder.io.files.storage import resolved
from rejoinder.models.card import FILE, UNNAMED, Measured, model_card
from rejoinder.models.config import WEIGHTS, read_config
from rejoinder.models.find import find_model, shipped_models

if TYPE_CHECKING:
    from rejoinder.evaluation.results import Result

_PAIRS = {"sts", "stsb", "stsb-unrepeated"}
_CLASSES = {"senteval", "probing", "snli"}
_RANKED = {"response", "cqa", "coco"}
_UNCHECKED = "not checked for sentences"
_REMEDY = "Leave the run out, or name another."


def write_card(
    model: Path | str,
    *,
    results: Sequence[Path | str] = (),
    baselines: Sequence[Path | str] = (),
    run: Path | str | None = None,
    out: Path | str | None = None,
) -> Path:
    """Rewrites `MODEL_CARD.md` of a model folder, with results and the training time.

    Args:
        model: the name or folder of a model. Its other files stay as they are.
        results: results files of `evaluate` for this model.
        baselines: results files of other encoders. Their results on the same tasks, data and
            settings are shown next to the model's.
        run: the folder of the run that trained the model, for the machine and the minutes. None
            takes the folder that contains `model`, if that is a run.
        out: a file to write instead.

    Returns:
        The file that was written.

    Raises:
        ModelError: `model` is not a model folder, or is damaged.
        InputError: a file is not a results file, or holds results of another model.
        TrainingError: the run is damaged, or did not train the model.
        StorageError: the card can't be written.
    """
    folder = find_model(model)
    config = read_config(folder)
    own = [result for path in results for result in _own_results(Path(path), config)]
    if baselines and not own:
        raise InputError(
            "`baseline` FILE needs `results` FILE of the model to compare with; give both."
        )
    machine, minutes = _machine(folder, None if run is None else Path(run), config)
    tables = _tables(own, baselines) if own else ""
    measured = Measured(tables, list(_index(own)), machine, minutes)
    names = {place.resolve(): name for name, place in shipped_models().items()}
    card = model_card(config, measured, name=names.get(folder.resolve(), UNNAMED))
    path = folder / FILE if out is None else Path(out)
    read = [*results, *baselines, *([] if resolved(path) == resolved(folder / FILE) else [folder])]
    refuse_inputs(path, read)
    write_text(path, card)
    return path


def _own_results(path: Path, config: dict[str, Any]) -> "list[Result]":
    """Reads results, and refuses results of another model."""
    require("eval", "polars")
    from rejoinder.evaluation.results import read_results

    results = read_results(path)
    for result in results[:1]:  # a file has one encoder
        given = (result.encoder.get("sha256"), result.encoder.get("adaptation"))
        if given != (config["files"][WEIGHTS]["sha256"], config.get("adaptation")):
            raise InputError(
                f"{path} holds results of another model, {result.encoder.get('name')}; evaluate "
                "this one, or name the file with `baseline`."
            )
    return results


def _tables(own: "Sequence[Result]", baselines: Sequence[Path | str]) -> str:
    """Returns the main scores as Markdown, and a line that lists what was not checked for leaks."""
    from rejoinder.evaluation.report import overview
    from rejoinder.evaluation.results import read_results

    keys = {result.key for result in own}
    others = [read_results(Path(path)) for path in baselines]
    runs = [own, *([result for result in run if result.key in keys] for run in others)]
    shown = [run for run in runs if run]
    text = overview(shown).markdown()
    unchecked = dict.fromkeys(
        result.task for result in own if any(_UNCHECKED in note for note in result.notes)
    )
    if unchecked:
        text += f"\nNot checked for leaks into the training data: {', '.join(unchecked)}.\n"
    about = {f"{run[0].date[:10]}, rejoinder {run[0].versions.get('rejoinder')}" for run in shown}
    return f"{text}\nMeasured {'; '.join(sorted(about))}.\n"


def _index(results: "Sequence[Result]") -> Iterator[dict[str, Any]]:
    """Yields an entry of `model-index` for each result."""
    if not results:
        return
    from rejoinder.evaluation.results import variants, with_label

    labels = variants(results)
    for result in results:
        family, _, protocol = result.task.partition("/")
        label = with_label(protocol or family, result.split, labels[result.key])
        yield {
            "task": {"type": _task_type(result.task)},
            "dataset": {
                "type": family,
                "name": str(result.data.get("name", family)),
                "split": result.split,
            },
            "metrics": [
                {"type": name, "name": f"{name}, {label}", "value": round(value, 6)}
                for name, value in result.scores.items()
            ],
        }


def _task_type(task: str) -> str:
    from rejoinder.evaluation.tasks import task_groups

    within = {name for name, tasks in task_groups().items() if task in tasks}
    if within & _RANKED:
        return "text-ranking"
    is_pairs = within & _PAIRS or task.endswith("regression")
    return "text-classification" if within & _CLASSES and not is_pairs else "sentence-similarity"


def _machine(folder: Path, run: Path | None, config: dict[str, Any]) -> tuple[str, float | None]:
    """Returns the machine and the minutes of a run; an empty string and None if there is no run."""
    if run is None:
        run = folder.absolute().parent
        if not (run / "manifest.json").is_file() or not (run / "config.toml").is_file():
            return "", None
    from rejoinder.training.loop import checkpoint

    manifest = checkpoint.read_manifest(run)
    training = config.get("training") or {}
    if manifest.pairs_sha256 != training.get("pairs_sha256"):
        raise TrainingError(f"{run} was trained on other pairs than {folder}. {_REMEDY}")
    machine, last = manifest.machine, checkpoint.latest(run)
    parts = machine["processor"], f"{machine['cores']} cores", machine["accelerator"]
    minutes = None if last is None else checkpoint.read_seconds(last) / 60
    return ", ".join(str(part) for part in parts if part), minutes
