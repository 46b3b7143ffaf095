"""The model folder: what is written is read back, and each kind of damage is told apart."""

import hashlib
import json
import os
import re
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rejoinder.encoders import BIGRAM_ROWS
from rejoinder.errors import InputError, ModelError
from rejoinder.io.files.hashed import sealed
from rejoinder.models import folder as folders
from rejoinder.models.adaptation import Adaptation
from rejoinder.models.folder import read_model, write_model
from tiny_models import WORDS, bilstm_model, dan_model, head_table, transformer_model

TABLE, LAYER = "encoder.table.weight", "encoder.dnn.layers.0.weight"
HEAD = "heads.responses.layers.0.weight"
EXPORT = {"from": {"name": "a", "sha256": "0"}, "dropped": []}
TEXTS = ["How old are you?", "", "my cat is twenty"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("models") / "model"
    write_model(place, dan_model())
    return place


@pytest.fixture
def model(written, tmp_path):
    return shutil.copytree(written, tmp_path / "model")


def edit_config(model, change):
    """Change the config and, as somebody who writes one by hand would, its seal."""
    path = model / "config.json"
    config = json.loads(path.read_text("utf-8"))
    change(config)
    config.pop("sha256", None)
    path.write_text(json.dumps(sealed(config)), "utf-8")


def edit_tensors(model, change):
    """Change the weights and, as somebody who exports them by hand would, their hash."""
    path = model / "weights.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    sign(model, "weights.safetensors")


def sign(model, name):
    content = (model / name).read_bytes()
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    edit_config(model, lambda config: config["files"].update({name: facts}))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"buckets": 0},
        {"unknown_buckets": 9},
        {"buckets": 0, "unknown_buckets": 9},
        {"layers": (), "head": (4, 6)},
        {"head": ()},
        {"layers": (6,), "head": (6,)},
        {"residual": False, "dtype": np.float16},
    ],
)
def test_what_is_written_is_read_back(tmp_path, options):
    model = dan_model(**options)
    write_model(tmp_path / "model", model)
    again = read_model(tmp_path / "model")
    assert (again.name, again.dim, again.sha256 != "") == (model.name, model.dim, True)
    assert again.encoder == model.encoder
    assert again.heads == model.heads
    assert again.training == model.training
    assert again.tensors.keys() == model.tensors.keys()
    for name, tensor in model.tensors.items():
        assert again.tensors[name].dtype == tensor.dtype
        np.testing.assert_array_equal(again.tensors[name], tensor)
    assert again.features(TEXTS).ids.tolist() == model.features(TEXTS).ids.tolist()


@pytest.mark.parametrize(
    ("tiny", "options"),
    [
        (transformer_model, {}),
        (bilstm_model, {}),
        (bilstm_model, {"dim": 0, "dtype": np.float16}),
    ],
)
def test_what_runs_through_torch_is_read_back(tmp_path, tiny, options):
    model = tiny(**options)
    write_model(tmp_path / "model", model)
    again = read_model(tmp_path / "model")
    assert (again.encoder, again.dim) == (model.encoder, model.dim)
    assert again.tensors.keys() == model.tensors.keys()
    for name, tensor in model.tensors.items():
        assert again.tensors[name].dtype == tensor.dtype
        np.testing.assert_array_equal(again.tensors[name], tensor)
    assert again.features(TEXTS).ids.tolist() == model.features(TEXTS).ids.tolist()


def test_a_folder_holds_no_pickle_and_says_what_it_is(written):
    names = {path.name for path in written.iterdir()}
    assert names == {"config.json", "weights.safetensors", "vocabulary.txt", "MODEL_CARD.md"}
    config = json.loads((written / "config.json").read_text("utf-8"))
    assert config["format_version"] == 2
    assert set(config["files"]) == {"weights.safetensors", "vocabulary.txt"}
    assert config["adaptation"] is None
    card = (written / "MODEL_CARD.md").read_text("utf-8")
    assert "# tiny" in card
    assert "1,234" in card


def test_the_same_model_gives_the_same_bytes(written, tmp_path):
    write_model(tmp_path / "again", dan_model())
    for path in written.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def adaptation_of(dim):
    matrix = np.eye(dim, dtype=np.float32) + np.float32(0.01)
    facts = {"kind": "linear", "pairs": 7, "data": {"name": "stsb", "split": "train"}}
    return Adaptation(matrix, facts, np.array([3, 9], np.uint64))


def test_an_adaptation_is_kept(written, tmp_path):
    place = tmp_path / "adapted"
    write_model(place, replace(read_model(written), adaptation=adaptation_of(5)))
    again = read_model(place)
    assert again.describe()["adaptation"] == adaptation_of(5).describe()
    np.testing.assert_array_equal(again.adaptation.matrix, adaptation_of(5).matrix)
    config = json.loads((place / "config.json").read_text("utf-8"))
    content = (place / "adaptation.safetensors").read_bytes()
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    assert config["files"]["adaptation.safetensors"] == facts
    assert config["adaptation"]["pairs"] == 7
    assert "| adapted on | stsb train, 7 pairs |" in (place / "MODEL_CARD.md").read_text("utf-8")
    for name in ("weights.safetensors", "vocabulary.txt"):
        assert (place / name).read_bytes() == (written / name).read_bytes()


def test_an_adaptation_for_another_width_is_named_and_nothing_written(tmp_path):
    with pytest.raises(ModelError, match=r"\b4 dim.*\b5\b"):
        write_model(tmp_path / "model", replace(dan_model(), adaptation=adaptation_of(4)))
    assert list(tmp_path.iterdir()) == []
    write_model(tmp_path / "model", replace(dan_model(), adaptation=adaptation_of(5)))
    adaptation_of(4).write(tmp_path / "model" / "adaptation.safetensors")
    sign(tmp_path / "model", "adaptation.safetensors")
    with pytest.raises(ModelError, match=r"\b4 dim"):
        read_model(tmp_path / "model")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda place: (place / "adaptation.safetensors").unlink(), "missing"),
        (lambda place: (place / "adaptation.safetensors").write_bytes(b"x"), "cut or changed"),
        (
            lambda place: edit_config(place, lambda c: c.update(adaptation=None)),
            r"files lists .*adaptation\.safetensors; such a model has vocabulary\.txt, weights",
        ),
        (
            lambda place: edit_config(place, lambda c: c["files"].popitem()),
            "such a model has adaptation.safetensors, vocab",
        ),
        (
            lambda place: edit_config(place, lambda c: c["adaptation"].update(pairs=8)),
            "the table adaptation differs from adaptation.safetensors",
        ),
    ],
)
def test_a_damaged_adaptation_is_named(tmp_path, damage, said):
    write_model(tmp_path / "model", replace(dan_model(), adaptation=adaptation_of(5)))
    damage(tmp_path / "model")
    with pytest.raises(ModelError, match=said):
        read_model(tmp_path / "model")


def test_an_occupied_place_is_refused_and_left_alone(model):
    before = (model / "weights.safetensors").read_bytes()
    with pytest.raises(InputError, match="overwrite=True"):
        write_model(model, dan_model(seed=1))
    assert (model / "weights.safetensors").read_bytes() == before
    write_model(model, dan_model(seed=1), overwrite=True)
    assert (model / "weights.safetensors").read_bytes() != before


def replaced_during(monkeypatch, name, folder, new):
    """Replaces a model just before the first call of a function of `models.folder`."""
    function, calls = getattr(folders, name), []

    def replacing(*args, **options):
        calls.append(name)
        if len(calls) == 1:
            write_model(folder, new, overwrite=True)
        return function(*args, **options)

    monkeypatch.setattr(folders, name, replacing)


@pytest.mark.parametrize("name", ["read_config", "check_file", "read_tensors", "load_features"])
@pytest.mark.parametrize("options", [{"seed": 7}, {"seed": 7, "layers": (6,), "head": (6,)}])
def test_a_reader_gets_one_model_while_another_process_replaces_it(
    model, monkeypatch, name, options
):
    new = replace(dan_model(**options), name="new")
    replaced_during(monkeypatch, name, model, new)
    read = read_model(model)
    assert read.name == "new"
    for key, tensor in new.tensors.items():
        np.testing.assert_array_equal(read.tensors[key], tensor)
    assert read.sha256 == hashlib.sha256((model / "weights.safetensors").read_bytes()).hexdigest()


def test_a_reader_waits_while_a_folder_is_between_two_names(model, monkeypatch):
    part, old = (model.with_name(f".model.{name}") for name in ("part", "old"))
    model.rename(old)
    shutil.copytree(old, part)
    function = folders.read_config

    def renaming(folder):
        try:
            return function(folder)
        finally:
            if part.exists():
                part.rename(model)

    monkeypatch.setattr(folders, "read_config", renaming)
    assert read_model(model).name == "tiny"


def test_damage_that_stays_is_reported_once(model, monkeypatch):
    (model / "vocabulary.txt").unlink()
    calls, function = [], folders.read_config
    monkeypatch.setattr(folders, "read_config", lambda at: calls.append(at) or function(at))
    with pytest.raises(ModelError, match=r"vocabulary\.txt"):
        read_model(model)
    assert len(calls) == 1


def test_nothing_is_written_of_a_model_with_nan(tmp_path):
    model = dan_model()
    model.tensors["encoder.dnn.layers.0.bias"][2] = np.nan
    with pytest.raises(ModelError, match=r"layers\.0\.bias .*finite"):
        write_model(tmp_path / "model", model)
    assert list(tmp_path.iterdir()) == []


def test_no_model_folder(tmp_path):
    with pytest.raises(ModelError, match=r"config\.json"):
        read_model(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["weights.safetensors", "vocabulary.txt"])
def test_a_missing_file(model, name):
    (model / name).unlink()
    with pytest.raises(ModelError, match=f"{name} .*missing"):
        read_model(model)


def test_truncated_weights(model):
    path = model / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(ModelError, match=r"weights.*bytes"):
        read_model(model)


@pytest.mark.parametrize("name", ["weights.safetensors", "vocabulary.txt"])
def test_a_flipped_byte(model, name):
    content = bytearray((model / name).read_bytes())
    content[len(content) // 2] ^= 1
    (model / name).write_bytes(content)
    with pytest.raises(ModelError, match=f"{name} .*SHA-256"):
        read_model(model)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "can't be read"),
        ("[]", "format version None"),
        ('{"format_version": 2}', "was changed"),
        ('{"format_version": true}', "format version True"),
        ('{"format_version": 1, "head": {}}', "missing required field `name`"),
        ('{"format_version": 1, "name": NaN}', "NaN"),
        ('{"format_version": 1, "name": "\\ud800"}', "can't be read"),
        ("[" * 200_000, "can't be read: maximum recursion"),
    ],
)
def test_a_damaged_config(model, content, said):
    (model / "config.json").write_text(content)
    with pytest.raises(ModelError, match=said):
        read_model(model)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("format_version",), 5, r"\b5\b.*1 to 4"),
        (("text", "rules"), 99, r"99.*rules"),
        (("text", "kind"), "letters", r"text\.kind is 'letters': .*subwords\|words"),
        (
            ("text", "kind"),
            "subwords",
            r"files lists .*vocabulary\.txt; such a model has subwords\.json",
        ),
        (("text", "rules"), True, r"bool.*rules"),
        (("text", "words"), None, r"text\.words is None: Expected `int`"),
        (("text", "unknown_buckets"), True, r"text\.unknown_buckets is True"),
        (("text", "words"), 12, rf"\b{len(WORDS)}\b.*\b12\b"),
        (("encoder", "kind"), "lstm", "encoder.kind 'lstm' is unknown"),
        (("encoder", "width"), 9, r"encoder\.table\.weight .*\(\d+, 6\)"),
        (("encoder", "width"), "6", r"encoder\.width is '6'"),
        (("encoder", "width"), -6, r"encoder\.width is -6"),
        (("encoder", "width"), 2**70, r"encoder\.width is 1180591620717411303424"),
        (("encoder", "combiner"), "max", r"encoder\.combiner is 'max': .*mean\|sqrtn\|sum"),
        (("encoder", "activation"), ["tanh"], r"encoder\.activation is \['tanh'\]: Expected `str`"),
        (("encoder",), ["dan"], r"encoder is \['dan'\]: Expected `object`"),
        (("heads",), None, "heads is None: Expected `object`"),
        (("heads", "responses"), None, r"heads is .*: Expected `object`, got `null`"),
        (("heads",), {}, r"heads\.responses is missing"),
        (("heads", "entailment"), {}, r"heads\.entailment is \{\}: .* `inputs`"),
        (
            ("heads", "entailment"),
            head_table([], inputs=4),
            r"heads\.entailment has .*\(4,\); needed: \(4, 3\)",
        ),
        (
            ("heads", "entailment"),
            head_table([3], inputs=2),
            r"heads\.entailment has .*\(2, 3\); needed: \(4, 3\)",
        ),
        (("name",), 5, "name is 5: Expected `str`"),
        (("export",), 5, "export is 5: Expected `object"),
        (("export",), {}, r"export is \{\}: .* `from`"),
        (("export",), {"from": {"name": "a"}}, r"export\.from is .*: .* `sha256`"),
        (
            ("export",),
            {**EXPORT, "dropped": "responses"},
            r"export\.dropped is 'responses': Expected `array`",
        ),
        (("export",), {**EXPORT, "dim": "all"}, r"export\.dim is 'all': Expected `int"),
        (("training", "pairs"), "many", r"training\.pairs is 'many'"),
        (
            ("training", "data"),
            {"reddit": "1"},
            r"training\.data.* is \{'reddit': '1'\}: Expected `int`",
        ),
        (("training", "leak_sets"), 5, r"training\.leak_sets is 5: Expected `array"),
        (("encoder", "layers"), [7, 0], r"encoder\.layers\[1\] is 0: Expected `int` >= 1"),
        (("encoder", "residual"), "no", r"encoder\.residual is 'no': Expected `bool`"),
        (("encoder", "layers"), [5], r"encoder.dnn.layers.1.bias"),
        (("heads", "responses", "layers"), [4, 6], r"needed: \(1, 5\)"),
        (("training",), "none", "training is 'none': Expected `object"),
        (("files", "weights.safetensors"), 3, r"files.* is .*: Expected `object`, got `int`"),
        (("files", "../escape"), {"bytes": 0}, r"files .*\.\./escape"),
    ],
)
def test_a_config_that_does_not_fit(model, path, value, said):
    def change(config):
        *tables, last = path
        for name in tables:
            config = config[name]
        config[last] = value

    edit_config(model, change)
    with pytest.raises(ModelError, match=said):
        read_model(model)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (
            ("encoder", "hidden"),
            5,
            r"encoder\.forwards\.weight_ih_l0 has shape \(16, 6\); the config",
        ),
        (("encoder", "dim"), 8, r"encoder.projection.bias"),
        (("encoder", "max_tokens"), 0, r"encoder: max_tokens should be greater .* found 0"),
        (("text", "bigram_buckets"), 9, r"text\.bigram_buckets .*9.*bilstm"),
    ],
)
def test_a_config_that_does_not_fit_a_bilstm(tmp_path, path, value, said):
    model = bilstm_model()
    write_model(tmp_path / "model", model)
    heads = {"heads": {"responses": head_table([4, 8])}} if path[1] == "dim" else {}

    def change(config):
        config[path[0]][path[1]] = value
        config.update(heads)

    edit_config(tmp_path / "model", change)
    with pytest.raises(ModelError, match=said):
        read_model(tmp_path / "model")


@pytest.mark.parametrize("table", ["encoder", "responses", "text"])
def test_a_config_that_lacks_a_key(model, table):
    def table_of(config):
        return config["heads"][table] if table == "responses" else config[table]

    keys = list(table_of(json.loads((model / "config.json").read_text("utf-8"))))
    for key in keys:
        if (table, key) == ("text", "unicode"):
            continue  # for people, not read
        kept = (model / "config.json").read_text("utf-8")
        edit_config(model, lambda config, key=key: table_of(config).pop(key))
        with pytest.raises(ModelError):
            read_model(model)
        (model / "config.json").write_text(kept, "utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: t.update({LAYER: t[LAYER].T.copy()}),
            f"{LAYER} has shape",
        ),
        (lambda t: t.pop("scale"), r"\['scale'\] are missing"),
        (lambda t: t.update(extra=np.zeros(1, np.float32)), r"\['extra'\] are unknown"),
        (lambda t: t[TABLE].__setitem__((3, 2), np.nan), f"{TABLE} contains values that are"),
        (lambda t: t[HEAD].__setitem__((0, 0), np.inf), f"{HEAD} contains values"),
        (
            lambda t: t[BIGRAM_ROWS].__setitem__(1, 10_000),
            r"rows .* of encoder\.bigram_rows",
        ),
        (lambda t: t[BIGRAM_ROWS].__setitem__(1, -2), r"rows .* of encoder\.bigram_rows"),
        (
            lambda t: t.update({TABLE: t[TABLE][:20].copy()}),
            f"has 20 rows, for {len(WORDS)} words",
        ),
        (lambda t: t.update({TABLE: t[TABLE].astype(np.int32)}), "has type int32"),
        (
            lambda t: t.update({TABLE: t[TABLE].astype(np.int8)}),
            r"\['encoder\.table\.scales'\] are missing",
        ),
        (lambda t: t.update({HEAD: t[HEAD].astype(np.int8)}), f"{HEAD} has type int8"),
        (
            lambda t: t.update({"encoder.table.scales": np.ones(len(t[TABLE]), np.float32)}),
            r"\['encoder\.table\.scales'\] are unknown",
        ),
        (lambda t: t.update({TABLE: t[TABLE].astype(np.float64)}), "has type float64"),
        (
            lambda t: t.update(scale=np.array(-20, np.float32)),
            r"scale is -20\.0; it must be above 0",
        ),
        (lambda t: t.update({BIGRAM_ROWS: t[BIGRAM_ROWS].astype(np.float32)}), "has type float32"),
    ],
)
def test_weights_that_do_not_fit(model, change, said):
    edit_tensors(model, change)
    with pytest.raises(ModelError, match=said):
        read_model(model)


def test_a_vocabulary_of_another_length(tmp_path):
    write_model(tmp_path / "model", dan_model(buckets=0))
    path = tmp_path / "model" / "vocabulary.txt"
    path.write_text(path.read_text("utf-8") + "more\n", "utf-8")
    sign(tmp_path / "model", "vocabulary.txt")
    with pytest.raises(ModelError, match=rf"\b{len(WORDS) + 1}\b"):
        read_model(tmp_path / "model")
    edit_config(tmp_path / "model", lambda config: config["text"].update(words=len(WORDS) + 1))
    with pytest.raises(ModelError, match=rf"encoder\.table\.weight .*\({len(WORDS)}, 6\)"):
        read_model(tmp_path / "model")


def test_weights_that_are_something_else(model):
    (model / "weights.safetensors").write_bytes(b"not tensors")
    sign(model, "weights.safetensors")
    with pytest.raises(ModelError, match=r"weights\.safetensors .*read"):
        read_model(model)


def test_an_edited_config_is_refused(model):
    path = model / "config.json"
    written = path.read_text("utf-8")
    path.write_text(written.replace('"steps": 5', '"steps": 6'), "utf-8")
    with pytest.raises(ModelError, match=r"config\.json .*SHA-256"):
        read_model(model)
    path.write_text(json.dumps(json.loads(written)), "utf-8")  # another layout, the same content
    assert read_model(model).training["steps"] == 5
    unsealed = json.loads(written)
    del unsealed["sha256"]
    path.write_text(json.dumps(unsealed), "utf-8")
    with pytest.raises(ModelError, match="SHA-256"):
        read_model(model)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_files_get_the_mode_that_the_umask_allows(tmp_path, umask, mode):
    model = replace(dan_model(), adaptation=adaptation_of(5))
    before = os.umask(umask)
    try:
        write_model(tmp_path / "model", model)
    finally:
        os.umask(before)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "model").iterdir()
    }
    assert len(modes) == 5
    assert set(modes.values()) == {mode}


def test_a_file_in_place_of_a_folder_is_named(model):
    with pytest.raises(ModelError, match=r"config\.json .*file"):
        read_model(model / "config.json")


def test_nothing_is_written_of_a_model_of_an_unknown_kind(tmp_path):
    model = replace(dan_model(), encoder={**dan_model().encoder, "kind": "gru"})
    with pytest.raises(ModelError, match=r"'gru' .*'bilstm', 'dan', 'transformer'"):
        write_model(tmp_path / "model", model)
    assert list(tmp_path.iterdir()) == []


def test_the_page_on_formats_shows_the_config_as_it_is(written):
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text("utf-8")
    section = page.partition("## model/")[2]
    shown = re.findall(r"```json\n(.*?)```", section, re.DOTALL)[0]
    config = json.loads((written / "config.json").read_text("utf-8"))
    assert list(json.loads(shown)) == list(config)
    for table in ("text", "heads"):
        assert json.loads(shown)[table].keys() == config[table].keys()
    assert json.loads(shown)["training"].keys() >= config["training"].keys()
