"""`results.json`: what is written is read; what was damaged, cut or edited is refused."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rejoinder.errors import BusyError, InputError, StorageError
from rejoinder.evaluation.metrics import Items, metric_of
from rejoinder.evaluation.report import compare
from rejoinder.evaluation.results import (
    Group,
    Result,
    open_results,
    read_results,
    variants,
    write_results,
)
from rejoinder.io.files.hashed import sealed, sha256_of

NAMES = [f"s:{row}" for row in range(40)]
PREDICTED = np.random.default_rng(0).integers(0, 2, 40).astype(np.float64)
GOLD = np.random.default_rng(1).integers(0, 2, 40).astype(np.float64)
FOLDS = np.arange(40) % 3


def made_up(main="accuracy", encoder="mine", **changes):
    """A result whose scores follow from its items."""
    items = Items(NAMES, PREDICTED, GOLD, [""] * 40, FOLDS if main == "accuracy" else None)
    scores = {**metric_of(main).recompute(items), "dev_accuracy": 50.0}
    result = Result(
        task="mr/senteval", split="all", n=40, main=main, scores=scores,
        intervals={main: (0.0, 1.0)}, groups={"g": Group(3, {"x": 1.0})}, seed=0,
        data={"sha256": "0" * 64}, encoder={"name": encoder}, settings={"seed": 0},
        run={"encoder": encoder}, items=items,
    )  # fmt: skip
    return replace(result, **changes)


MAINS = ["accuracy", "map", "pearson", "pearson_trained", "pearson_weighted_mean", "recall_1_t2i",
         "P@1", "ndcg@10"]  # fmt: skip


@pytest.mark.parametrize("main", MAINS)
def test_what_is_written_is_read(main, tmp_path):
    path = tmp_path / "r.json"
    written = write_results(path, [made_up(main)])
    assert read_results(path) == written
    [found] = read_results(path)
    assert found.items.predictions.tolist() == PREDICTED.tolist()


@pytest.mark.parametrize("main", MAINS)
def test_a_score_that_does_not_follow_from_its_predictions_is_refused(main, tmp_path):
    path = tmp_path / "r.json"
    result = made_up(main)
    for name in metric_of(main).recompute(result.items):
        edited = {**result.scores, name: result.scores[name] + 0.01}
        write_results(path, [replace(result, scores=edited)])
        with pytest.raises(InputError, match=rf"r.json: results\[0\]: {name} is .* give"):
            read_results(path)


def test_the_accuracy_of_folds_is_the_mean_of_theirs():
    right = PREDICTED == GOLD
    means = [round(100 * float(right[fold == FOLDS].mean()), 2) for fold in range(3)]
    assert made_up().scores["accuracy"] == pytest.approx(np.mean(means))


def edit(path, change):
    """Change the tree of a file, as by hand."""
    tree = json.loads(path.read_text())
    change(tree)
    path.write_text(json.dumps(tree))


def reseal(tree):
    """Give the first result the hash of what it has alone and shares."""
    row = tree["results"][0]
    row.pop("sha256")
    own = {part: row.get(part, {}) for part in tree["shared"]}
    parts = {
        part: tree["shared"][part] | value if isinstance(value, dict) else value
        for part, value in own.items()
    }
    row["sha256"] = sealed(row | parts)["sha256"]


@pytest.fixture
def path(tmp_path):
    """A results file of one result."""
    path = tmp_path / "r.json"
    write_results(path, [made_up()])
    return path


def test_what_does_not_follow_from_predictions_is_sealed(path):
    edit(path, lambda tree: tree["results"][0]["scores"].update(dev_accuracy=99.0))
    with pytest.raises(InputError, match=r"results\[0\] was changed"):
        read_results(path)


def test_wrong_and_missing_parts_are_named(path):
    whole = path.read_text()
    for key in made_up().as_tree():

        def change(tree, key=key):
            tree["results"][0][key] = [[]]
            reseal(tree)

        edit(path, change)
        with pytest.raises(InputError, match=rf"r\.json: results\[0\].*{key}"):
            read_results(path)
        path.write_text(whole)

        def remove(tree, key=key):
            (tree["shared"] if key in tree["shared"] else tree["results"][0]).pop(key)

        edit(path, remove)
        with pytest.raises(InputError, match=r"r\.json: results\[0\]"):
            read_results(path)
        path.write_text(whole)


def test_what_results_have_in_common_is_written_once(tmp_path):
    path, encoder = tmp_path / "r.json", {"name": "mine", "training": {"words": ["a"] * 9_000}}
    many = [
        replace(made_up(task=f"t{row}", machine={"cores": 2, "load": 7}, run={}), encoder=encoder)
        for row in range(9)
    ]
    many[0] = replace(many[0], versions={"numpy": "2"}, machine={"cores": 2.0, "load": 7})
    assert write_results(path, many) == read_results(path)
    assert len(path.read_text()) < 2 * len(json.dumps(encoder))
    tree = json.loads(path.read_text())
    shared = {"encoder": encoder, "versions": {}, "machine": {"load": 7}, "run": {}}
    assert tree["shared"] == shared
    write_results(path, [])
    assert read_results(path) == []


def test_a_result_in_the_file_of_another_encoder_is_refused(path, tmp_path):
    other = tmp_path / "other.json"
    write_results(other, [made_up(encoder="other")])
    edit(path, lambda tree: tree.update(results=json.loads(other.read_text())["results"]))
    with pytest.raises(InputError, match=r"results\[0\] was changed"):
        read_results(path)


def test_a_file_of_format_3_is_read_and_written_as_format_4(tmp_path):
    shutil.copytree(Path(__file__).parent / "format_3", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "results.json"
    before = read_results(path)
    assert [(one.task, one.scores[one.main]) for one in before] == [
        ("contrasts/names", 7.5), ("bias/age", 0.0)]  # fmt: skip
    assert [one.encoder["name"] for one in before] == ["baseline:bow"] * 2
    text = path.read_text().replace('"name": "baseline:bow"', '"name": "other"', 1)
    (tmp_path / "edited.json").write_text(text)
    with pytest.raises(InputError, match=r"results\[0\] was changed"):
        read_results(tmp_path / "edited.json")
    with open_results(path) as file:
        file.add(before[0])
    assert json.loads(path.read_text())["format_version"] == 4
    assert read_results(path) == before[::-1]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite_are_refused(number, path):
    path.write_text(path.read_text().replace('"seconds": 0.0', f'"seconds": {number}'))
    with pytest.raises(InputError, match=r"r\.json"):
        read_results(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "can't be read as results"),
        ("[]", "not a results file"),
        ('{"format_version": 2, "run": {}, "results": []}', "of format version 2; .* reads 3"),
        ('{"format_version": 3}', "r.json .*results"),
        ('{"format_version": 4, "results": [5]}', r"r.json .*results\[0\]"),
        ('{"format_version": 4, "results": [], "shared": {"run": 5}}', "r.json .*shared"),
    ],
)
def test_files_of_another_kind_are_refused(content, said, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(InputError, match=said):
        read_results(path)


def test_an_unknown_main_score_is_an_error(tmp_path):
    path = tmp_path / "r.json"
    write_results(path, [made_up(main="accuracy")])

    def change(tree):
        row = tree["results"][0]
        row["main"] = "bleu"
        row["scores"]["bleu"] = 1.0
        reseal(tree)

    edit(path, change)
    with pytest.raises(InputError, match=r"results\[0\].*'bleu'"):
        read_results(path)


def test_predictions_that_repeat_an_id_are_refused(tmp_path):
    with pytest.raises(InputError, match="'s:1'"):
        Result("t", "s", 2, "map", {}, {}, {}, 0, {}, items=Items(
            ["s:1", "s:1"], PREDICTED[:2], GOLD[:2], ["", ""]))  # fmt: skip


def test_results_of_several_settings_share_a_file(tmp_path):
    path = tmp_path / "r.json"
    fast, compat = (
        made_up(settings={"seed": seed, "classifiers": {"mode": mode, "kfold": 2}})
        for seed, mode in ((0, "fast"), (7, "compat"))
    )
    other = made_up(data={"sha256": "1" * 64}, settings=fast.settings)
    with open_results(path) as file:
        for result in (fast, compat, other, replace(fast, date="later")):
            file.add(result)
    found = read_results(path)
    assert [one.key for one in found] == [compat.key, other.key, fast.key]
    assert found[-1].date == "later"
    assert variants(found) == {
        compat.key: "mode compat, seed 7, data 00000000",
        other.key: "mode fast, seed 0, data 11111111",
        fast.key: "mode fast, seed 0, data 00000000",
    }
    compared = compare(path, path)
    assert len(compared.tasks) == 3
    assert not compared.left_out
    assert {one.difference for one in compared.tasks} == {0}


def test_results_of_other_settings_are_compared_with_a_note_where_nothing_else_is_there(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    write_results(first, [made_up(settings={"seed": 0})])
    write_results(second, [made_up(settings={"seed": 7}, encoder="other")])
    [one] = compare(first, second).tasks
    assert "seed 0 against 7" in one.note
    write_results(first, [made_up(settings={"seed": seed}) for seed in (1, 2)])
    with pytest.raises(InputError, match=r"mr/senteval on all.* 2 "):
        compare(first, second)


def test_results_on_another_form_of_the_data_are_compared_with_a_note(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    for path, form in ((first, "official"), (second, "senteval")):
        write_results(path, [made_up(data={"name": "mr", "form": form, "sha256": form})])
    [one] = compare(first, second).tasks
    assert "form official against senteval" in one.note


def test_files_without_a_common_task_are_refused_with_the_tasks_of_each(tmp_path):
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    write_results(first, [made_up()])
    write_results(second, [made_up(task="cr/senteval")])
    with pytest.raises(InputError, match=r"a\.json.*mr/senteval.*b\.json.*cr/senteval"):
        compare(first, second)


def test_predictions_of_a_replaced_result_are_removed(tmp_path):
    path = tmp_path / "r.json"
    with open_results(path) as file:
        file.add(made_up())
        items = Items(NAMES, GOLD, GOLD, [""] * 40)
        scores = {"accuracy": 100.0, "f1": 100.0}
        file.add(made_up(items=items, scores=scores))
    assert len(list((tmp_path / "r.predictions").iterdir())) == 1
    assert read_results(path)[0].scores == scores


def test_a_full_disk_leaves_no_predictions_that_no_result_names(tmp_path, monkeypatch):
    path = tmp_path / "r.json"

    def full(*_arguments):
        raise StorageError("no space is left on the device")

    with open_results(path) as file:
        file.add(made_up())
        before = sorted((tmp_path / "r.predictions").glob("*.parquet"))
        with monkeypatch.context() as patched:
            patched.setattr("rejoinder.evaluation.results.write_text", full)
            with pytest.raises(StorageError):
                file.add(made_up(task="mpqa/senteval", items=Items(NAMES, GOLD, GOLD, [""] * 40)))
        assert sorted((tmp_path / "r.predictions").glob("*.parquet")) == before
    assert [result.task for result in read_results(path)] == ["mr/senteval"]


def test_threads_that_add_to_one_file_lose_nothing(tmp_path):
    path = tmp_path / "r.json"

    def add(task):
        with open_results(path) as file:
            file.add(made_up(task=task))

    tasks = ("mr/senteval", "mpqa/senteval", "cr/senteval", "subj/senteval")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, tasks))
    assert sorted(result.task for result in read_results(path)) == sorted(tasks)


def test_another_encoder_is_refused_or_takes_the_place(tmp_path):
    path = tmp_path / "r.json"
    write_results(path, [made_up()])
    with open_results(path) as file:
        with pytest.raises(InputError, match=r"mine.*other"):
            file.keep({"name": "other"}, overwrite=False)
        file.keep({"name": "other"}, overwrite=True)
        file.add(made_up(encoder="other"))
    [one] = read_results(path)
    assert one.encoder == {"name": "other"}


def test_a_file_is_held_from_reading_to_writing(tmp_path):
    path = tmp_path / "r.json"
    code = f"""
from pathlib import Path
from rejoinder.evaluation.results import open_results
with open_results(Path({str(path)!r})):
    print("held", flush=True)
    input()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        busy = pytest.raises(BusyError, match="is being written by another command")
        with busy, open_results(path):
            pass
        holder.communicate(b"\n")
    with open_results(path) as file:
        file.add(made_up())


def test_a_place_that_can_t_be_written_is_refused_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StorageError, match="can't be written"),
        open_results(tmp_path / "file" / "r.json"),
    ):
        pass
    with pytest.raises(InputError, match="is not a file"), open_results(tmp_path):
        pass
    (tmp_path / "r.predictions").write_text("")
    with pytest.raises(StorageError, match=r"r\.predictions"), open_results(tmp_path / "r.json"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"file", "r.predictions"}


def test_an_input_in_the_folder_of_predictions_is_refused(tmp_path):
    vectors = tmp_path / "r.predictions" / "vectors.parquet"
    vectors.parent.mkdir()
    vectors.write_bytes(b"vectors")
    for given in (vectors, vectors.parent):
        refused = pytest.raises(InputError, match=r"r\.predictions")
        with refused, open_results(tmp_path / "r.json", inputs=[str(given)]):
            pass
    assert vectors.read_bytes() == b"vectors"
    with open_results(tmp_path / "r.json", inputs=[tmp_path, "py:module:name", None]):
        pass  # an output may lie in a folder that is read


def test_an_unreadable_file_is_replaced_only_on_demand(tmp_path):
    path = tmp_path / "r.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="overwrite=True"), open_results(path):
        pass
    with open_results(path, overwrite=True) as file:
        file.add(made_up())
    assert len(read_results(path)) == 1


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pl.Series("prediction", [float("nan")] * 40), "a prediction is not finite"),
        (pl.Series("prediction", [1e200] * 40), "a prediction is not finite, or beyond"),
        (pl.Series("gold", [float("inf")] * 40), "a gold is not finite"),
        (pl.Series("fold", ["a"] * 40), "columns .*fold"),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_predictions_that_can_not_be_are_refused_though_their_hash_fits(column, said, tmp_path):
    path = tmp_path / "r.json"
    written = write_results(path, [made_up("map")])
    put_items(path, table_of(path, written[0]).with_columns(column))
    with pytest.raises(InputError, match=said):
        read_results(path)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_result_of_no_items_is_refused(tmp_path):
    path = tmp_path / "r.json"
    written = write_results(path, [made_up("map")])
    put_items(path, table_of(path, written[0]).head(0), n=0)
    with pytest.raises(InputError, match="has 0 items"):
        read_results(path)


def table_of(path, result):
    return pl.read_parquet(path.parent / result.predictions["file"])


def put_items(path, frame, **changes):
    """Replace the predictions of a file's only result, and mend all hashes."""

    def change(tree):
        row = tree["results"][0]
        place = path.parent / row["predictions"]["file"]
        frame.write_parquet(place)
        row["predictions"]["sha256"] = sha256_of(place.read_bytes())
        row.update(changes)
        reseal(tree)

    edit(path, change)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_of_predictions_that_is_no_path_is_refused(name, tmp_path):
    path = tmp_path / "r.json"
    write_results(path, [made_up()])

    def change(tree):
        tree["results"][0]["predictions"]["file"] = name
        reseal(tree)

    edit(path, change)
    with pytest.raises(InputError, match=r"r\.json"):
        read_results(path)
