"""Configurations: all faults at once, the nearest key named, back and forth through TOML."""

import tomllib
from pathlib import Path

import pytest

from rejoinder.encoders.transformer import TransformerConfig
from rejoinder.errors import ConfigError, InputError
from rejoinder.training.config import load_config, parse_config, to_toml
from rejoinder.training.optimizers import phase_at
from rejoinder.training.settings import Phase
from runs import KINDS

SHIPPED = sorted(Path("configs").glob("*.toml"))
PHASES = [{"steps": 1}]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_configs_are_right(path):
    config = load_config(path)
    assert config.steps > 0
    assert config.name == path.stem


def test_the_papers_configs_are_the_papers():
    dan, transformer = (
        load_config(Path(f"configs/{n}-paper.toml")) for n in ("dan", "transformer")
    )
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


TASKS = {"phases": PHASES}
RESPONSES = {"objective": "responses", "share": 0.7}
NLI = {"objective": "entailment", "share": 0.2, "data": ["nli.jsonl"]}


def test_files_of_tasks_have_their_own_columns_and_labels():
    labels = {"not_entailment": "neutral", "n/a": ""}
    data = ["a.jsonl", {"path": "b.jsonl", "premise": "premises", "labels": labels}]
    tree = {**TASKS, "tasks": [{**NLI, "share": 1.0, "data": data}]}
    config = parse_config(tree, "test")
    [task] = config.mixture
    assert [file.path for file in task.data] == ["a.jsonl", "b.jsonl"]
    assert task.data[1].labels == labels
    assert parse_config(tomllib.loads(to_toml(config)), "again") == config


@pytest.mark.parametrize("kind", KINDS)
def test_a_config_survives_toml(kind):
    config = parse_config(KINDS[kind], "test")
    assert parse_config(tomllib.loads(to_toml(config)), "again") == config


def test_all_faults_are_told_together():
    tree = {
        "sead": 1,
        "training": {"sed": 1, "seed": "one"},
        "encoder": {"widht": 3},
        "objective": {"scale": True},
        "phases": [{"stepps": 1}],
    }
    with pytest.raises(ConfigError) as caught:
        parse_config(tree, "x.toml")
    message = str(caught.value)
    for part in (
        "x.toml:",
        "unknown key 'training.sed', did you mean 'seed'?",
        "training.seed must be of type int, got 'one'",
        "unknown key 'encoder.widht', did you mean 'width'?",
        "objective.scale must be of type float, got True",
        "unknown key 'phases.0.stepps', did you mean 'steps'?",
        "phases.0.steps is missing",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "no \\[\\[phases\\]\\]"),
        ({"phases": PHASES, "head": {"layers": [3]}}, "head.layers ends in 3"),
        ({"phases": PHASES, "text": {"kind": "subwords"}}, "does not read text.kind 'subwords'"),
        ({"phases": PHASES, "text": {"kind": "letters"}}, "allowed: 'words', 'subwords'"),
        ({"phases": PHASES, "text": {"unknown_buckets": -1}}, "text.unknown_buckets is -1; 0 "),
        ({"phases": PHASES, "training": {"rank_init": -0.1}}, "training.rank_init must be 0 or"),
        (
            {
                "phases": PHASES,
                "encoder": {"kind": "bilstm", "dim": 500},
                "text": {"bigram_buckets": 9},
            },
            "text.bigram_buckets is 9; a bilstm reads words in their order",
        ),
        (
            {
                "phases": PHASES,
                "encoder": {"kind": "bilstm", "dim": 500},
                "text": {"kind": "subwords"},
            },
            "'bilstm' does not read text.kind 'subwords'",
        ),
        ({"phases": PHASES, "encoder": {"kind": "bilstm"}}, "500, the encoder in 4096"),
        ({"phases": PHASES, "encoder": {"kind": "dann"}}, "did you mean 'dan'"),
        ({"phases": PHASES, "encoder": {"combiner": "max"}}, "encoder.combiner 'max'"),
        ({"phases": PHASES, "export": {"weights": "best"}}, "needs training.evaluate_every"),
        ({"phases": PHASES, "export": {"weights": "average"}}, "needs training.evaluate_every"),
        ({"phases": [{"steps": 5, "warmup_steps": 6}]}, "warmup_steps must be within its 5"),
        ({"phases": [{"steps": 5, "batch_size": 1}]}, "batch_size >= 2"),
        ({"phases": PHASES, "objective": {"word_dropout": 1.0}}, "word_dropout must be in"),
        ({"phases": PHASES, "objective": {"scale": 0.0}}, "scale must be above 0"),
        ({**TASKS, "tasks": [RESPONSES, NLI]}, r"\[\[tasks\]\] are 0.7 \+ 0.2 = 0.9; each > 0"),
        ({**TASKS, "tasks": [{**NLI, "share": 1.0, "data": []}]}, r"needs \[\[tasks.data\]\]"),
        ({**TASKS, "tasks": [{**RESPONSES, "data": ["x"], "share": 1.0}]}, "reads the pairs, not"),
        ({**TASKS, "tasks": [{**NLI, "share": 0.5}, {**NLI, "share": 0.5}]}, "is there twice"),
        ({**TASKS, "tasks": [{**RESPONSES, "name": "x", "share": 1.0}]}, "responses has none"),
        ({**TASKS, "tasks": [{**NLI, "name": "a.b", "share": 1.0}]}, "a name is letters"),
        ({**TASKS, "tasks": [{"objective": "entail", "share": 1.0}]}, "allowed: 'responses', 'ent"),
        ({**TASKS, "tasks": [{**NLI, "share": 1.0, "word_dropout": 1.0}]}, "must be in \\[0, 1"),
        ({**TASKS, "tasks": [{**NLI, "shares": 1.0}]}, "did you mean 'share'"),
        ({**TASKS, "tasks": [{**NLI, "batch_size": 1, "share": 1.0}]}, "batch_size must be >= 2"),
        (
            {**TASKS, "tasks": [{**NLI, "share": 1.0, "data": [{"path": "x", "share": 0}]}]},
            "share of x must be above 0",
        ),
        (
            {
                **TASKS,
                "tasks": [{**NLI, "share": 1.0, "data": [{"path": "x", "labels": {"a": 1}}]}],
            },
            "tasks.0.data.0.labels must be a table of strings",
        ),
    ],
)
def test_contradictions_are_refused(tree, message):
    with pytest.raises(ConfigError, match=message):
        parse_config(tree, "test")


def test_overrides_replace_values(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text("[[phases]]\nsteps = 5\n")
    overrides = ["phases.0.steps=7", "name=other", "encoder.layers=[9, 500]", "training.seed = 3"]
    config = load_config(path, overrides)
    assert (config.steps, config.name, config.training.seed) == (7, "other", 3)
    assert config.encoder.layers == (9, 500)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps", "write key=value"),
        ("phases.3.steps=1", "no place in a list of 1"),
        ("phases.steps=1", "write phases.0.steps"),
        ("name.x=1", "has no keys"),
        ("training.sed=1", "did you mean 'seed'"),
    ],
)
def test_bad_overrides_are_refused(tmp_path, override, message):
    path = tmp_path / "c.toml"
    path.write_text('name = "a"\n[[phases]]\nsteps = 5\n')
    with pytest.raises(ConfigError, match=message):
        load_config(path, [override])


def test_files_that_are_no_toml_are_refused(tmp_path):
    with pytest.raises(InputError, match="can't be read"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(InputError, match="is not TOML"):
        load_config(tmp_path / "bad.toml")


def test_steps_are_counted_through_the_phases():
    phases = [Phase(steps=2), Phase(steps=3)]
    assert [phase_at(phases, step)[1] for step in range(5)] == [0, 1, 0, 1, 2]
    with pytest.raises(IndexError):
        phase_at(phases, 5)
