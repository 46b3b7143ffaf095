"""Runs whose files somebody edited, hashes mended: refused in one sentence, before a step."""

import json

import pytest

from fuzzing.run_folders import TinyRun
from rejoinder.errors import TrainingError
from rejoinder.io.files.hashed import sealed
from runs import MULTITASK

STATE = "checkpoints/step-4/state.json"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return TinyRun(tmp_path_factory.mktemp("tiny"))


def edited(files, name, change):
    """The files with a sealed tree changed and sealed anew."""
    tree = json.loads(files[name])
    del tree["sha256"]
    change(tree)
    return {**files, name: json.dumps(sealed(tree)).encode()}


def test_an_untouched_run_ends_with_the_same_bytes(run):
    assert run.resumed(run.files) == run.model


@pytest.mark.parametrize(
    "key",
    [
        "config_sha256",
        "pairs_sha256",
        "files",
        "text",
        "pairs",
        "leaks",
        "labelled",
    ],
)
def test_a_manifest_without_a_key_is_refused(run, key):
    files = edited(run.files, "manifest.json", lambda tree: tree.pop(key))
    with pytest.raises(TrainingError, match=rf"manifest.json is damaged: .*missing.*`{key}`"):
        run.read(files)


def test_a_manifest_of_another_text_than_the_config_is_refused(run):
    many = lambda tree: tree["text"].update(bigram_buckets=2**31)  # noqa: E731
    files = edited(run.files, "manifest.json", many)
    with pytest.raises(TrainingError, match=r"text\.bigram_buckets is 2147483648, and the config"):
        run.read(files)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"step": "4"}, "int.*str.*step"),
        ({"step": -1}, "int.*step"),
        ({"evaluated": 1.5}, "int.*float.*evaluated"),
        ({"seconds": float("inf")}, "float.*seconds"),
        ({"workers": True}, "int.*bool.*workers"),
        ({"positions": {"a": {"window": [0]}}}, r"int.*array.*positions\[.*\]\.window"),
        ({"positions": {"a": {"offset": -1}}}, r"int.*positions\[.*\]\.offset"),
    ],
)
def test_a_number_of_a_checkpoint_that_can_not_be_is_refused(run, change, said):
    with pytest.raises(TrainingError, match=said):
        run.read(edited(run.files, STATE, lambda tree: tree.update(change)))


def test_a_checkpoint_beyond_the_last_step_is_refused(run):
    files = {name.replace("step-4/", "step-7/"): held for name, held in run.files.items()}
    files = edited(files, STATE.replace("4", "7"), lambda tree: tree.update(step=7))
    with pytest.raises(TrainingError, match="is of step 7, and the run has 6"):
        run.read(files)


def test_a_position_in_no_window_is_refused(run):
    def change(tree):
        for position in tree["positions"].values():
            position["window"] = 99

    with pytest.raises(TrainingError, match="the checkpoint is in window 99 of"):
        run.resumed(edited(run.files, STATE, change))


def test_a_log_of_deep_brackets_stops_no_run(run):
    files = {**run.files, "metrics.jsonl": b"[" * 100_000}
    assert run.resumed(files) == run.model


def test_what_stands_in_place_of_the_log_is_refused(run):
    with pytest.raises(TrainingError, match=r"metrics.jsonl is not a file; remove it to resume"):
        run.resumed({**run.files, "metrics.jsonl": None})


def test_a_checkpoint_under_the_name_of_another_step_is_refused(run):
    files = {name.replace("step-4/", "step-999/"): held for name, held in run.files.items()}
    with pytest.raises(TrainingError, match=r"step-999 is of step 4; it was renamed or copied"):
        run.resumed(files)


@pytest.mark.parametrize(
    "change",
    [
        lambda labelled: labelled.pop("nli.jsonl"),
        lambda labelled: labelled["nli.jsonl"].pop("leaks"),
        lambda labelled: labelled.update({"nli.jsonl": 3}),
    ],
)
def test_a_manifest_that_lists_other_labelled_files_is_refused(train, tmp_path, change):
    run = tmp_path / "run"
    train(MULTITASK, run, stop_at=2)
    tree = json.loads((run / "manifest.json").read_text("utf-8"))
    del tree["sha256"]
    change(tree["labelled"])
    (run / "manifest.json").write_text(json.dumps(sealed(tree)), "utf-8")
    with pytest.raises(TrainingError, match=r"nli\.jsonl is not the file|is damaged: .*labelled"):
        train(MULTITASK, run, resume=True)
