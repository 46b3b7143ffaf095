"""The model card: read by model hubs, the same each time, and right about the terms."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rejoinder.errors import ModelError
from rejoinder.models.card import Measured, model_card, terms_of, training_rows
from rejoinder.models.config import read_config
from rejoinder.models.folder import write_model
from tiny_models import bilstm_model, dan_model

huggingface_hub = pytest.importorskip("huggingface_hub")

CHITCHAT = {"inputs": ["chitchat.jsonl.zst", "task.jsonl.zst"]}
OPEN = {**CHITCHAT, "data": {"self_dialogue_corpus": 50, "sgd": 60, "dream": 0}}
OPEN["labelled"] = {
    "nli/snli_1.0_train_subset18k.jsonl.zst": {"rows": {"entailment": 9, "entailment-ranking": 3}}
}
ENTRY = {
    "task": {"type": "sentence-similarity"},
    "dataset": {"type": "stsb", "name": "stsb", "split": "test"},
    "metrics": [{"type": "pearson", "value": 0.8, "name": "pearson, cosine"}],
}


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder, dan_model(buckets=0))
    return read_config(folder)


def card_of(config, training, measured=None, **tables):
    tree = {**config, **tables, "training": {"pairs": 7, "steps": 5, "seed": 0, **training}}
    return model_card(tree, measured or Measured())


def terms(training, adaptation=None):
    return terms_of(training_rows(training, adaptation))


def test_open_data_alone_give_an_open_model(config):
    card = card_of(config, OPEN)
    data = huggingface_hub.ModelCard(card).data
    assert (data.license, data.language) == ("cc-by-sa-4.0", "en")
    assert (data.library_name, data.pipeline_tag) == ("rejoinder", "sentence-similarity")
    assert data.datasets == ["stanfordnlp/snli"]
    assert "license_name" not in data.to_dict()
    row = "entailment 9, entailment-ranking 3 | CC-BY-SA-4.0 | yes |"
    assert row in card
    assert "- Rastogi et al. 2020 (CC-BY-SA-4.0)" in card
    assert "dream" not in card  # none of its pairs was trained on
    assert terms(OPEN).closed == []


@pytest.mark.parametrize(
    ("more", "name", "line"),
    [
        ({"data": {"dream": 5, "sgd": 9}}, "non-commercial-research", "1 of 3 .* no open licence"),
        ({"inputs": ["mine.jsonl"]}, "not-stated", "2 of 3 .* are not known"),
        ({"labelled": {"my.jsonl": {"rows": {"paraphrase": 3}}}}, "not-stated", "1 of 3"),
        ({"config": {"training": {"init_from": "other/model"}}}, "not-stated", "1 of 4"),
        ({"data": {}, "labelled": {}}, "not-stated", "data is not recorded"),
    ],
)
def test_other_data_give_other_terms(config, more, name, line):
    data = huggingface_hub.ModelCard(card_of(config, {**OPEN, **more})).data
    assert (data.license, data.license_name, data.license_link) == ("other", name, "MODEL_CARD.md")
    assert re.search(line, terms({**OPEN, **more}).reason)


def test_an_adaptation_is_training_too():
    facts = {"data": {"name": "stsb", "split": "train"}, "pairs": 7}
    assert terms(OPEN, facts).id == "non-commercial-research"
    assert [row.name for row in terms(OPEN, facts).closed] == ["stsb train"]


def test_a_card_says_what_was_left_out(config):
    training = {**OPEN, "sources_left_out": {"dream": 5, "mutual": 7}}
    training |= {"leak_sets": ["stsb-dev", "cqa2016-test"], "leaks_dropped": 1_234}
    training |= {"labelled": {"a.jsonl": {"leaks": 4}, "b.jsonl": {"leaks": 5}, "c.txt": {}}}
    card = card_of(config, {**training, "leaks_by_set": {"stsb-dev": 1_220, "cqa2016-test": 6}})
    assert (
        "The pairs by set (a pair can count for several): stsb-dev 1,220, cqa2016-test 6." in card
    )
    assert "left out of training: 1,225 pairs, and 9 rows of labelled files." in card
    assert "Left out by choice: 12 pairs of dream, mutual." in card
    assert "1,234 pairs and rows with a sentence of stsb-dev, cqa2016-test were left" in card
    [unchecked] = re.findall(r"was not checked for sentences of: (.*)\.", card)
    names = unchecked.split(", ")
    assert {"STS16", "SICK", "CQA 2017", "Sprint", "Banking77", "CQA 2016 (dev)"} <= {*names}
    assert not {"STSBenchmark", "CQA 2016"} & {*names}


def test_a_dump_of_many_subreddits_gives_a_short_table(config):
    card = card_of(config, {"data": {f"r{number}": number + 1 for number in range(300)}})
    assert card.count("| source |") == 21
    assert "| source | 280 other sources | 39,340 |" in card
    assert len(card) < 10_000


def test_word_order_is_said_to_be_lost_only_where_it_is(config, tmp_path):
    assert "get the same vector" in card_of(config, {})
    write_model(tmp_path / "model", bilstm_model())
    assert "get the same vector" not in (tmp_path / "model" / "MODEL_CARD.md").read_text("utf-8")


def test_results_and_times_stand_in_the_card(config):
    measured = Measured("### Scores\n", [ENTRY, ENTRY], "a machine, 2 cores", 7.25)
    card = huggingface_hub.ModelCard(card_of(config, OPEN, measured))
    [first, _] = card.data.eval_results
    assert (first.metric_type, first.metric_value, first.dataset_split) == ("pearson", 0.8, "test")
    assert card.data.model_name == "tiny"
    assert "| trained on | a machine, 2 cores |" in card.content
    assert "| minutes of training | 7.2 |" in card.content
    assert "### Scores" in card.text


@settings(max_examples=50)
@given(
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1), st.text("|<\n\r\u2028`-:#")
)
def test_any_names_give_a_card_that_is_read(config, name, source):
    card = card_of(config, {"data": {source: 3, name: 4}}, Measured(index=[ENTRY]), name=name)
    data = huggingface_hub.ModelCard(card).data
    assert data.model_name == name
    lines = [line for line in card.split("\n") if line.startswith("| source |")]
    assert {line.count("|") for line in lines} == {8}
    assert card == card_of(
        config, {"data": {source: 3, name: 4}}, Measured(index=[ENTRY]), name=name
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("inputs", "task"),
        ("sources_left_out", {"dream": -1}),
        ("labelled", {"a.jsonl": 3}),
        ("labelled", {"a.jsonl": {"rows": {"entailment": "3"}}}),
    ],
)
def test_damaged_facts_are_named(tmp_path, key, value):
    model = dan_model()
    with pytest.raises(ModelError, match=rf"training\.{key} is"):
        write_model(tmp_path / "model", replace(model, training={**model.training, key: value}))
    assert list(tmp_path.iterdir()) == []


def test_the_config_of_the_run_is_in_the_card(config):
    tree = {"name": "x", "phases": [{"steps": 5, "batch_size": 64}, {"steps": 6}]}
    card = card_of(config, {"config": tree})
    assert "| phases | 5 steps of 64 pairs, then 6 steps of None pairs |" in card
    [block] = re.findall(r"```json\n(.*?)```", card, re.DOTALL)
    assert json.loads(block) == tree


def test_the_lines_of_python_run_as_they_stand(tmp_path, monkeypatch):
    write_model(tmp_path / "path/to/this/folder", dan_model())
    card = (tmp_path / "path/to/this/folder/MODEL_CARD.md").read_text("utf-8")
    [lines] = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(lines, names)  # noqa: S102
    assert names["encoder"].describe()["name"] == "tiny"
