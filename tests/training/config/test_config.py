"""Configurations: all faults at once, the nearest key named, back and forth through TOML."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from config_reference import page
from rejoinder.cli.main import app
from rejoinder.encoders import COMBINERS
from rejoinder.encoders.layers import _ACTIVATIONS
from rejoinder.encoders.nn.layers import ACTIVATIONS
from rejoinder.encoders.settings import Activation, Combiner, TransformerConfig
from rejoinder.errors import ConfigError, InputError
from rejoinder.training.config.loading import (
    load_config,
    parse_config,
    purpose,
    shipped_names,
    shipped_text,
    to_toml,
    to_tree,
)
from rejoinder.training.config.settings import Phase, RunConfig
from rejoinder.training.loop.checkpoint import config_hash
from rejoinder.training.loop.model import phase_at
from runs import KINDS

ROOT = Path(__file__).resolve().parents[3]
PHASES = [{"steps": 1}]


def told(tree) -> list[str]:
    """The lines of the error that a tree leads to."""
    with pytest.raises(ConfigError) as caught:
        parse_config(tree, "test")
    first, *lines = str(caught.value).split("\n  ")
    return lines or [first.removeprefix("test: ")]


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_configs_are_right(name):
    config = load_config(name)
    assert config.steps > 0
    assert config.name == name
    first = shipped_text(name).partition("\n")[0]
    assert first.startswith("# ")
    assert first.endswith(".")
    assert 40 < len(purpose(name)) < 95


def test_a_name_is_not_a_path_and_a_path_is_not_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = "[[phases]]\nsteps = 7\n"
    for file in ("demo.toml", "demo"):
        Path(file).write_text(own)
    assert load_config("demo").name == "demo"
    for path in ("demo.toml", "./demo", str(tmp_path / "demo"), Path("demo"), Path("demo.toml")):
        assert load_config(path).steps == 7


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("dan-moden", "no shipped config 'dan-moden' .did you mean 'dan-modern'"),
        ("x", "no shipped config 'x' .known: bilstm-modern, bilstm-nli, .*separator or ends in"),
        ("", "no shipped config ''"),
        ("configs/dan-modern.toml", "No such file or directory. The shipped config is called dan-"),
    ],
)
def test_an_unknown_config_is_met_with_the_nearest(config, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        load_config(config)


def test_the_checkout_has_the_shipped_configs_where_older_pages_name_them():
    if not (ROOT / "configs").is_dir():
        pytest.skip("this checkout has no symbolic links")
    assert load_config(ROOT / "configs/demo.toml") == load_config("demo")


def test_the_papers_configs_are_the_papers():
    dan, transformer = (load_config(f"{n}-paper") for n in ("dan", "transformer"))
    for config in (dan, transformer):
        rows = [(p.steps, p.batch_size, p.learning_rate) for p in config.phases]
        assert rows == [(30_000_000, 128, 0.01), (10_000_000, 256, 0.001)]
        assert (config.optimizer.dense, config.optimizer.table) == ("sgd", "sgd")
        assert not config.objective.mask_duplicates
        assert config.encoder.dim == 500
        assert (config.head.layers, config.head.residual) == ((500, 500), False)
    assert dan.encoder.layers == (300, 300, 500)
    assert dan.text.bigram_buckets > 0
    assert transformer.encoder == TransformerConfig()


RESPONSES = {"objective": "responses", "share": 0.7}
NLI = {"objective": "entailment", "share": 0.2, "data": ["nli.jsonl"]}
GROUPS = {"objective": "paraphrase", "share": 1.0, "data": ["a.jsonl"]}


def test_files_of_tasks_have_their_own_columns_and_labels():
    labels = {"not_entailment": "neutral", "n/a": ""}
    data = ["a.jsonl", {"path": "b.jsonl", "premise": "premises", "labels": labels}]
    tree = {"phases": PHASES, "tasks": [{**NLI, "share": 1.0, "data": data}]}
    config = parse_config(tree, "test")
    [task] = config.mixture
    assert [file.path for file in task.data] == ["a.jsonl", "b.jsonl"]
    assert task.data[1].labels == labels
    assert parse_config(tomllib.loads(to_toml(config)), "again") == config


@pytest.mark.parametrize("kind", KINDS)
def test_a_config_survives_toml(kind):
    config = parse_config(KINDS[kind], "test")
    again = parse_config(tomllib.loads(to_toml(config)), "again")
    assert again == config
    assert config_hash(again) == config_hash(config)


def test_the_tree_and_the_hash_are_those_of_other_versions():
    # what runs and models have stored: a change here is a change of their formats
    config = load_config("demo")
    assert to_tree(config.encoder) == {
        "kind": "dan",
        "width": 128,
        "layers": [],
        "activation": "tanh",
        "residual": False,
        "combiner": "sqrtn",
    }
    assert list(to_tree(config)["phases"][0].items()) == [
        ("steps", 120),
        ("batch_size", 256),
        ("learning_rate", 0.003),
        ("table_learning_rate", 0.2),
        ("warmup_steps", 20),
        ("decay", "linear"),
        ("sif", 0.0),
        ("whitening", 0.0),
    ]
    assert config_hash(config) == (
        "8943134bbdffc5ed4ebbd3d78757fffaf471134e0bc6f0ea0ed103595ea0df7a"
    )


def test_a_string_of_any_characters_survives_toml():
    labels = {'a"b\\c': "", "é ü": "neutral", "x.y": "entailment"}
    data = [{"path": 'back\\slash "quoted" ’', "labels": labels}]
    tree = {"phases": PHASES, "tasks": [{**NLI, "share": 1.0, "data": data}], "name": "a\u2028b"}
    config = parse_config(tree, "test")
    assert parse_config(tomllib.loads(to_toml(config)), "again") == config


def test_all_faults_are_told_together():
    tree = {
        "sead": 1,
        "training": {"sed": 1, "seed": "one"},
        "encoder": {"widht": 3, "layers": [0, 128]},
        "head": {"activation": "foo", "layers": [3]},
        "objective": {"scale": True},
        "phases": [{"stepps": 1}],
        "tasks": [RESPONSES, NLI],
    }
    lines = told(tree)
    for line, facts in zip(
        lines,
        [
            ("encoder.layers.0", "1", "0"),
            ("'encoder.widht'", "'width'"),
            ("head.activation", "'gelu', 'none', 'relu' or 'tanh'", '"foo"'),
            ("objective.scale", "number", "true"),
            ("training.seed", "integer", '"one"'),
            ("'training.sed'", "'seed'"),
            ("phases.0.steps", "missing"),
            ("'phases.0.stepps'", "'steps'"),
            ("'sead'", "'seed'"),
            # and what the tables that are right contradict among themselves
            ("[[tasks]]", "0.7 + 0.2 = 0.9", "1"),
        ],
        strict=True,
    ):
        assert [fact for fact in facts if fact not in line] == [], line


def test_a_single_fault_is_one_sentence():
    with pytest.raises(ConfigError) as caught:
        parse_config({"phases": PHASES, "encoder": {"combiner": "maxi"}}, "x.toml")
    [line] = str(caught.value).splitlines()
    for fact in ("x.toml", "encoder.combiner", '"maxi"', "'sqrtn', 'mean' or 'sum'"):
        assert fact in line


VALUES = [
    # the run would die of these, at the export or in the middle
    ("head.activation", "foo", "'gelu', 'none', 'relu' or 'tanh'", '"foo"'),
    ("encoder.activation", "foo", "'gelu', 'none', 'relu' or 'tanh'", '"foo"'),
    ("entailment.activation", "sigmoid", "'gelu', 'none', 'relu' or 'tanh'", '"sigmoid"'),
    ("head.layers", [0, 128], "head.layers.0", "1", "0"),
    ("encoder.layers", [-3, 128], "encoder.layers.0", "1", "-3"),
    ("text.max_words", 0, "text.max_words", "1", "0"),
    ("text.bigram_buckets", 99999999999, "text.bigram_buckets", "50000000", "99999999999"),
    ("encoder.width", 10**9, "encoder.width", "16384", "1000000000"),
    ("training.seed", 10**20, "training.seed", "4294967295", "100000000000000000000"),
    ("training.seed", -1, "training.seed", "0", "-1"),
    ("name", "a\0b", "name", "U+0000"),
    ("name", "a\nb", "name", "U+000A"),
    ("name", "", "name", "1 character"),
    ("training.init_from", "a\0", "training.init_from", "U+0000"),
    # these it would take, and mean something else by them
    ("text.max_words", -1, "text.max_words", "1", "-1"),
    ("text.min_count", 0, "text.min_count", "1", "0"),
    ("text.unknown_buckets", -1, "text.unknown_buckets", "0", "-1"),
    ("training.log_every", 0, "training.log_every", "1", "0"),
    ("training.evaluate_every", -1, "training.evaluate_every", "0", "-1"),
    ("training.checkpoint_every", -1, "training.checkpoint_every", "0", "-1"),
    ("training.rank_init", -0.1, "training.rank_init", "0", "-0.1"),
    ("training.exclude_leaks", 1, "training.exclude_leaks", "boolean", "1"),
    ("objective.scale", 0.0, "objective.scale", "0", "0.0"),
    ("objective.scale", 200.0, "objective.scale", "objective.max_scale = 100", "200"),
    ("objective.scale", float("nan"), "objective.scale", "finite", "NaN"),
    ("objective.scale", float("inf"), "objective.scale", "finite", "Infinity"),
    ("objective.scale", 10**400, "objective.scale", "1000"),
    ("objective.word_dropout", 1.0, "objective.word_dropout", "1", "1.0"),
    ("entailment.hidden", 0, "entailment.hidden", "1", "0"),
    ("phases", [{"steps": 0}], "phases.0.steps", "1", "0"),
    ("phases", [{"steps": "3"}], "phases.0.steps", "integer", '"3"'),
    ("phases", [{"steps": True}], "phases.0.steps", "integer", "true"),
    ("phases", [{"steps": 5, "batch_size": 1}], "phases.0.batch_size", "2", "1"),
    ("phases", [{"steps": 5, "learning_rate": -1}], "phases.0.learning_rate", "0", "-1"),
    ("phases", [{"steps": 5, "learning_rate": 0}], "phases.0.learning_rate", "0", "learns"),
    ("phases", [{"steps": 5, "table_learning_rate": -0.1}], "0.table_learning_rate", "0", "-0.1"),
    ("phases", [{"steps": 5, "warmup_steps": -1}], "phases.0.warmup_steps", "0", "-1"),
    ("phases", [{"steps": 5, "warmup_steps": 6}], "phases.0.warmup_steps", "5", "6"),
    ("phases", [], "[[phases]]", "steps"),
    ("phases", {"steps": 5}, "phases", '{"steps": 5}'),
    # kinds
    ("encoder.kind", ["dan"], "encoder.kind", "one of dan, transformer, bilstm", '["dan"]'),
    ("encoder.kind", "dann", "encoder.kind", "one of dan, transformer, bilstm", '"dann"'),
    ("encoder", 3, "encoder", "dictionary", "3"),
    ("encoder", {"kind": "transformer", "layers": [3]}, "encoder.layers", "integer", "[3]"),
    ("encoder", {"kind": "transformer", "hidden": 20}, "encoder.hidden", "20", "multiple of 2"),
    ("text.kind", "letters", "text.kind", "one of words, subwords", '"letters"'),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "facts"), [(k, v, f) for k, v, *f in VALUES])
def test_what_can_t_run_is_refused(key, value, facts):
    section, _, name = key.partition(".")
    tree = {"phases": PHASES, section: {name: value} if name else value}
    [found] = told(tree)
    assert [fact for fact in (section, *facts) if fact not in found] == [], found


ENTAILMENT = {"objective": "entailment", "share": 1.0, "data": ["x"]}
RANKING = {**ENTAILMENT, "objective": "entailment-ranking"}
TRANSFORMER = {"encoder": {"kind": "transformer"}, "text": {"kind": "subwords"}}
WITHOUT_EFFECT = [
    ({"text": {"max_tokens": 9}}, "text.max_tokens", "'words'"),
    ({"encoder": {"kind": "transformer"}, "text": {"kind": "subwords", "bigram_buckets": 9}},
     "text.bigram_buckets", "'subwords'"),
    ({"encoder": {"kind": "transformer"}, "text": {"kind": "subwords", "unknown_buckets": 0}},
     "text.unknown_buckets", "'subwords'"),
    ({**TRANSFORMER, "training": {"rank_init": 0.3}}, "training.rank_init", "has no sparse table"),
    ({**TRANSFORMER, "optimizer": {"table": "adagrad"}}, "optimizer.table", "has no sparse table"),
    ({**TRANSFORMER, "phases": [{"steps": 1, "table_learning_rate": 0.1}]},
     "phases.0.table_learning_rate", "has no sparse table"),
    ({"encoder": {"kind": "transformer", "width": 3}, "text": {"kind": "subwords"}},
     "encoder.width", "'transformer'"),
    ({"tasks": [{**RANKING, "retrofit": True}]}, "tasks.0.retrofit", "'entailment-ranking'"),
    ({"tasks": [{**GROUPS, "inflections": True}]}, "tasks.0.inflections", "row_init"),
    ({"encoder": {"kind": "transformer"}, "text": {"kind": "subwords"},
      "training": {"row_init": "cooccurrence"}, "tasks": [{**GROUPS, "inflections": True}]},
     "tasks.0.inflections", "text.kind is not words"),
    ({"tasks": [{**RESPONSES, "share": 1.0, "data": ["x"]}]}, "tasks.0.data", "'responses'"),
    ({"tasks": [{**RESPONSES, "share": 1.0, "name": "x"}]}, "tasks.0.name", "'responses'"),
    ({"tasks": [{**GROUPS, "power": 0.5}]}, "tasks.0.power", "the task has a single file"),
    ({"tasks": [GROUPS], "training": {"id_cache_gb": 9}}, "training.id_cache_gb", "no task"),
    ({"tasks": [{**GROUPS, "batch_size": 9}], "phases": [{"steps": 1, "batch_size": 8}]},
     "phases.0.batch_size", "every task sets batch_size"),
    ({"tasks": [{**GROUPS, "word_dropout": 0.1}], "objective": {"word_dropout": 0.2}},
     "objective.word_dropout", "every task sets word_dropout"),
    ({"tasks": [ENTAILMENT], "objective": {"mask_duplicates": True}}, "objective.mask_duplicates",
     "no task ranks"),
    ({"entailment": {"hidden": 9}}, "entailment.hidden", "no task is entailment"),
    ({"objective": {"max_scale": 9.0}}, "objective.max_scale", "objective.learn_scale is false"),
    ({"head": {"layers": [], "residual": True}}, "head.residual", "head.layers is empty"),
    ({"head": {"layers": [500], "activation": "relu"}}, "head.activation", "has fewer than two"),
    ({"encoder": {"layers": [500], "activation": "relu"}}, "encoder.activation", "fewer than two"),
    ({"encoder": {"width": 500, "layers": [], "residual": True}}, "encoder.residual", "is empty"),
    ({"training": {"compile": True}}, "training.compile", "only a Transformer has blocks"),
    ({"training": {"init_from": "m", "rank_init": 0.3}}, "training.rank_init", "are taken from tr"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "path", "why"), WITHOUT_EFFECT, ids=lambda value: str(value)[:40])
def test_a_key_without_effect_is_refused(tree, path, why):
    [line] = told({"phases": PHASES, **tree})
    assert line.startswith(f"{path} has no effect")
    assert why in line
    assert "leave it out" in line


CONTRADICTIONS = [
    ({"head": {"layers": [3]}},
     "head.layers ends in 3, the encoder in 500: u·v' needs equal dimensions"),
    ({"text": {"kind": "subwords"}},
     'text.kind is "subwords"; encoder.kind "dan" reads "words"'),
    ({"encoder": {"kind": "transformer"}},
     'text.kind is "words"; encoder.kind "transformer" reads "subwords"'),
    ({"encoder": {"kind": "bilstm", "dim": 500}, "text": {"bigram_buckets": 9}},
     "text.bigram_buckets is 9; a bilstm reads no bigrams: set it to 0"),
    ({"encoder": {"kind": "bilstm", "dim": 500}, "text": {"kind": "subwords"}},
     'text.kind is "subwords"; encoder.kind "bilstm" reads "words"'),
    ({"encoder": {"kind": "bilstm"}},
     "head.layers ends in 500, the encoder in 4096: u·v' needs equal dimensions"),
    ({"encoder": {"width": 16_000, "layers": [9, 500]}, "text": {"bigram_buckets": 10_000_000}},
     "text.bigram_buckets and text.unknown_buckets take 596 GiB as rows of 16000; "
     "allowed: up to 64 GiB"),
    ({"tasks": [RESPONSES, NLI]},
     "the shares of [[tasks]] are 0.7 + 0.2 = 0.9; together they must be 1"),
    ({"tasks": [{**NLI, "share": 0.5}, {**NLI, "share": 0.5}]},
     "tasks.1 is called entailment, as tasks.0 is; give it another name"),
    ({"tasks": [{**RESPONSES, "share": 0.5}, {**RESPONSES, "share": 0.5}]},
     "tasks.1 is called responses, as tasks.0 is; keep one"),
    ({"tasks": [{**NLI, "share": 1.0, "data": []}]},
     "tasks.0.data: Tuple should have at least 1 item after validation, not 0; found []"),
    ({"tasks": [{"objective": "paraphrase", "share": 1.0}]},
     "tasks.0.data is missing"),
    ({"tasks": [{**NLI, "share": 1.0, "data": ["x", "y", "x"]}]},
     'tasks.0.data.2 is "x", which the task already has'),
    ({"tasks": [{**NLI, "name": "a.b", "share": 1.0}]},
     'tasks.0.name is "a.b"; a name is letters, digits, - and _'),
    ({"tasks": [{**NLI, "name": "responses", "share": 1.0}]},
     'tasks.0.name is "responses", which is the task of that objective; choose another name'),
    ({"tasks": [{"share": 1.0}]},
     "tasks.0.objective is missing"),
    ({"tasks": [{**NLI, "share": 1.0, "shares": 1.0}]},
     "unknown key 'tasks.0.shares', did you mean 'share'?"),
    ({"steps": 60}, "unknown key 'steps'; it is phases.0.steps."),
    ({"training": {"batch_size": 9}}, "it is tasks.0.batch_size or phases.0.batch_size."),
    ({"tasks": [{**NLI, "batch_size": 1, "share": 1.0}]},
     "tasks.0.batch_size should be greater than or equal to 2; found 1"),
    ({"tasks": [{**NLI, "share": 1.0, "word_dropout": 1.0}]},
     "tasks.0.word_dropout should be less than 1; found 1.0"),
    ({"tasks": [{**NLI, "share": 1.0, "data": [{"path": "x", "labels": {"a": "yes"}}]}]},
     'labels.a should be \'entailment\', \'neutral\', \'contradiction\' or \'\'; found "yes"'),
    ({"tasks": [{**NLI, "share": 1.0, "data": ["a\0"]}]},
     "tasks.0.data.0.path holds the control character U+0000; leave it out"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "line"), CONTRADICTIONS, ids=lambda value: str(value)[:40])
def test_contradictions_are_refused(tree, line):
    [found] = told({"phases": PHASES, **tree})
    assert line in found


_KEYS = st.sampled_from(
    [*RunConfig.model_fields, "kind", "layers", "steps", "data", "objective", "share", "dim", "\0"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.binary()
    | st.dates() | st.sampled_from(["dan", "bilstm", "transformer", "words", "subwords", "tanh"])
    | st.sampled_from(["responses", "entailment", "paraphrase", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(_KEYS | st.text(max_size=5), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip


def is_config_or_error(tree) -> None:
    try:
        config = parse_config(tree, "test")
    except ConfigError as error:
        said = str(error)
    else:
        assert parse_config(tomllib.loads(to_toml(config)), "again") == config
        return
    assert said.startswith("test")
    assert "pydantic" not in said
    said.encode("utf-8")


@settings(max_examples=30)
@given(tree=_VALUES | st.dictionaries(_KEYS, _VALUES, max_size=6))
def test_any_tree_is_a_config_or_one_clear_error(tree):
    is_config_or_error(tree)


@settings(max_examples=50)
@given(data=st.data())
def test_a_value_of_any_kind_at_any_key(data):
    tree = to_tree(parse_config(KINDS[data.draw(st.sampled_from(sorted(KINDS)))], "test"))
    section = data.draw(st.sampled_from(sorted(tree)))
    inside = tree[section]
    if isinstance(inside, list) and inside:
        inside = data.draw(st.sampled_from(inside))
    if isinstance(inside, dict):
        inside[data.draw(st.sampled_from(sorted(inside)))] = data.draw(_VALUES)
    else:
        tree[section] = data.draw(_VALUES)
    is_config_or_error(tree)


def test_the_config_and_both_runtimes_know_the_same_activations():
    assert {*get_args(Activation)} == {*ACTIVATIONS} == {*_ACTIVATIONS}
    assert {*get_args(Combiner)} == {*COMBINERS}


def test_the_page_of_keys_is_that_of_the_code():
    found = (ROOT / "docs/config.md").read_text("utf-8")
    assert found == page(), "write it anew: python tools/config_reference.py > docs/config.md"


@pytest.fixture
def path(tmp_path) -> Path:
    path = tmp_path / "c.toml"
    path.write_text('name = "a"\n[[phases]]\nsteps = 5\n[encoder]\nlayers = [7, 500]\n')
    return path


def test_overrides_replace_values(path):
    overrides = [
        "phases.0.steps=7",
        "name=other",
        "encoder.layers=[9, 500]",
        "encoder.layers.0=11",
        "training.seed = 3",
        "tasks=[{objective = 'responses', share = 0.1}, {objective = 'paraphrase', data = ['x']}]",
        "tasks.0.share=0.25",
        "tasks.1.share=0.75",
    ]
    config = load_config(path, overrides)
    assert (config.steps, config.name, config.training.seed) == (7, "other", 3)
    assert config.encoder.layers == (11, 500)
    assert [task.share for task in config.tasks] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps", "write key=value"),
        ("=3", "write key=value"),
        ("training..seed=3", "write key=value"),
        ("phases.3.steps=1", "'3' is not an index of a list of 1"),
        ("phases.².steps=1", "'²' is not an index of a list of 1"),
        ("phases.-1.steps=1", "'-1' is not an index of a list of 1"),
        ("phases.steps=1", "'steps' is not an index of a list of 1.* phases.0.steps"),
        ("name.x=1", "has no keys"),
        ("training.sed=1", "did you mean 'seed'"),
        ("training.seed=1\ntraining.log_every = 5", "training.seed.*integer"),
        ("training.exclude_leaks=True", 'exclude_leaks.*boolean.*"True"'),
        ("training.seed=" + "9" * 5000, "training.seed.*999"),
        ("training.seed=" + "[" * 5000, "training.seed.*integer"),
        ("training.seed=0x" + "f" * 9000, "training.seed.*a value too large to show"),
        ("name=a\udcff", "name.*string"),
    ],
    ids=lambda value: value[:20],
)
def test_bad_overrides_are_refused(path, override, message):
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(path, [override])
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"none.toml can't be read: No such file or directory\.$"),
        (b"a = = 1", r"is not TOML: Invalid value \(at line 1, column 5\)\.$"),
        (b"a = 1\na = 2", r"is not TOML: Cannot overwrite a value"),
        (b"\x89PNG\r\n\xff\x00", r"bad.toml can't be read: 'utf-8' codec"),
        (b"a = " + b"[" * 5000, r"is not TOML: .*nested"),
        (b"a = " + b"9" * 5000, r"is not TOML: "),
    ],
    ids=["missing", "syntax", "twice", "binary", "nested", "digits"],
)
def test_files_that_are_no_toml_are_refused(tmp_path, content, message):
    path = tmp_path / ("none.toml" if content is None else "bad.toml")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_config(tmp_path):
    with pytest.raises(InputError, match=r"directory"):
        load_config(tmp_path)
    with pytest.raises(InputError, match=r"a\\0b can't be read: embedded null"):
        load_config(Path("a\0b"))


def test_a_byte_order_mark_does_no_harm(tmp_path):
    path = tmp_path / "c.toml"
    path.write_bytes(b"\xef\xbb\xbf" + b"[[phases]]\nsteps = 5\n")
    assert load_config(path).steps == 5


def test_steps_are_counted_through_the_phases():
    phases = [Phase(steps=2), Phase(steps=3)]
    assert [phase_at(phases, step)[1] for step in range(5)] == [0, 1, 0, 1, 2]
    with pytest.raises(IndexError):
        phase_at(phases, 5)


@pytest.mark.parametrize("override", ["head.activation=foo", "training.log_every=0"])
def test_a_refused_command_leaves_no_folder(small_pairs, tmp_path, override):
    out = tmp_path / "runs" / "a"
    command = ["train", "--config", "demo", "--pairs", str(small_pairs)]
    result = CliRunner().invoke(app, [*command, "--out", str(out), override])
    assert isinstance(result.exception, ConfigError)
    assert [*tmp_path.iterdir()] == []


_BLOCKED = """
import sys
from pathlib import Path
from rejoinder.cli.train import train
from rejoinder.errors import MissingExtraError
for name in {blocked}:
    sys.modules[name] = None
try:
    train(config="demo", out=Path({out!r}), pairs=Path("pairs"))
except MissingExtraError as error:
    print(error)
"""


@pytest.mark.parametrize("blocked", [["pydantic"], ["torch"], ["tomli_w"], ["torch", "pydantic"]])
def test_training_without_its_extra_says_what_to_install(blocked, tmp_path):
    # the command's function, as Typer may import Pydantic
    code = _BLOCKED.format(blocked=blocked, out=str(tmp_path / "run"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith(f"{blocked[0]} is not installed: pip install 'rejoinder[train]'")
    assert done.stderr == ""
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_encoders_that_need_torch_need_pydantic_too_and_say_so():
    code = """
import sys
from tiny_models import transformer_model
from rejoinder.errors import MissingExtraError
from rejoinder.inference.encoder import SentenceEncoder
model = transformer_model()
for name in [*sys.modules]:
    if name.startswith(("rejoinder.encoders", "pydantic")):
        del sys.modules[name]
sys.modules["pydantic"] = None
try:
    SentenceEncoder(model)
except MissingExtraError as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT / "tests")])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.stdout.startswith("pydantic is not installed: pip install 'rejoinder[train]'")
    assert done.stderr == ""


def test_the_config_needs_no_torch_and_the_package_no_pydantic():
    code = """
import sys
import rejoinder, rejoinder.cli.main, rejoinder.inference.encoder, rejoinder.models.folder
assert not {"pydantic", "torch"} & {*sys.modules}
import rejoinder.training.config.loading
assert "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
