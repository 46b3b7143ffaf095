"""Fine-tuning on pairs of one's own: better at their replies, and not kept if it is not."""

import json
import signal

import pytest

from rejoinder.api.finetuning import FineTuned, SearchWeight, finetune
from rejoinder.api.pairs import HeldOut
from rejoinder.api.training import train
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs
from rejoinder.errors import ForeignTextWarning, InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.find import find_model
from rejoinder.models.folder import read_model
from rejoinder.training.config.loading import parse_config
from rejoinder.training.loop.checkpoint import SilentReporter

FOUND = SearchWeight(0.5, 0.1, 0.1, 0.1, 1)
WHEN = ("today", "again", "since Monday", "at night", "at home", "now", "outside", "once more")
HOW = ("slowly", "with care", "by hand", "twice", "first", "to the left", "in the dark", "alone")


def pairs_of(count):
    """Pairs whose replies follow from words that no model knows: a thing, and its part."""
    return [
        {
            "message": f"Help, my glorp{chr(97 + n % 25)} is broken {WHEN[n // 25 % 8]} and {n}",
            "reply": f"Turn the frobz{chr(97 + n % 25)} {HOW[n // 40 % 8]} or {n * 7 % 1_000}",
        }
        for n in range(count)
    ]


def write_pairs(folder, count, split):
    rows = pairs_of(count)
    file = folder / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    columns = {"message": "message", "reply": "reply"}
    extract(file, folder / "pairs", columns=columns, rules="none", split=split)
    return folder / "pairs"


@pytest.mark.slow
def test_a_model_learns_the_words_of_the_pairs(tmp_path):
    pairs = pairs_of(1_500)
    done = []
    tuned = finetune(
        pairs, out=tmp_path / "mine", model="rejoinder-small", threads=1, stage=done.append
    )
    assert tuned.folder == tmp_path / "mine"
    assert tuned.words >= 50
    assert tuned.after["P@1"] > tuned.before["P@1"]
    assert set(tuned.after) == {"P@1", "P@10", "recall@10 of all"}
    assert len(done) >= 4
    model, base = read_model(tuned.folder), read_model(find_model("rejoinder-small"))
    assert (model.name, model.dim, model.weight_type) == ("mine", base.dim, base.weight_type)
    assert model.training["initial"]["name"] == base.name
    assert not SentenceEncoder(tuned.folder).unknown(["glorp3x", "frobz7y"]).any()
    assert tuned.search.words == 0.0  # no reply has a word of its message
    assert model.training["search_weight"] == tuned.search.weight
    with pytest.raises(InputError, match="overwrite"):
        finetune(pairs, out=tmp_path / "mine")


@pytest.mark.slow
def test_the_same_pairs_and_seed_give_the_same_bytes(tmp_path):
    made = []
    for run in ("one", "other"):
        folder = tmp_path / run / "mine"
        folder.parent.mkdir()
        finetune(pairs_of(600), out=folder, model="rejoinder-small", threads=1, force=True)
        made.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert made[0] == made[1]


def test_too_few_held_out_pairs_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"of 60 pairs are dev, .*`split=\(60, 20, 20\)`"):
        HeldOut(open_pairs(write_pairs(tmp_path, 60, (80, 10, 10))), None, None, None)


@pytest.mark.slow
def test_questions_and_graded_pairs_train_it_too(tmp_path):
    pairs = write_pairs(tmp_path, 800, (60, 20, 20))
    groups = [
        [f"the glorp{chr(97 + n % 25)} {way} {n}" for way in ("is broken", "fails", "stopped")]
        for n in range(220)
    ]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("\n".join(json.dumps({"sentences": group}) for group in groups))
    sts = tmp_path / "graded.tsv"
    rows = []
    for n in range(220):
        score, other = n // 3 % 5, f"song {n}" if n // 3 % 5 else "chess"
        rows.append(f"A man plays song {n}\tA man plays {WHEN[n % 8]} {other}\t{score}\n")
    sts.write_text("".join(rows))
    tuned = finetune(
        pairs,
        out=tmp_path / "mine",
        model="rejoinder-small",
        questions=questions,
        sts=sts,
        threads=1,
        force=True,
    )
    assert {"questions P@1", "graded pairs"} <= set(tuned.after)
    model = read_model(tmp_path / "mine")
    assert model.adaptation is not None
    assert model.adaptation.facts["data"]["name"] == "graded pairs"
    # of 220 groups a tenth is for dev and a tenth for test
    assert model.training["labelled"]["questions.jsonl"]["rows"] == {"paraphrase": 176}
    again = finetune(pairs, out=tmp_path / "more", model=tmp_path / "mine", threads=1, force=True)
    assert read_model(again.folder).adaptation.sha256 == model.adaptation.sha256


@pytest.mark.parametrize(("name", "row"), [("questions", "a\tb"), ("sts", "a\tb\t3")])
def test_a_file_of_few_rows_is_refused(tmp_path, name, row):
    pairs = write_pairs(tmp_path, 200, (60, 20, 20))
    file = tmp_path / "few.tsv"
    file.write_text(f"{row}\n" * 199)
    with pytest.raises(InputError, match=r"few\.tsv.*199.*200"):
        finetune(pairs, out=tmp_path / "mine", model="rejoinder-small", **{name: file})
    assert not (tmp_path / "mine").exists()


class Interrupting(SilentReporter):
    def step(self, _step, _metrics):
        signal.raise_signal(signal.SIGINT)


def test_an_interruption_ends_it_and_writes_nothing(tmp_path):
    pairs = write_pairs(tmp_path, 800, (60, 20, 20))
    with pytest.raises(KeyboardInterrupt):
        finetune(
            pairs,
            out=tmp_path / "mine",
            model="rejoinder-small",
            threads=1,
            reporter=Interrupting(),
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs", "pairs.jsonl"]


@pytest.mark.slow
def test_a_chat_of_two_adds_no_words(tmp_path):
    lines = [
        f"3/{1 + n // 60}/24, 10:{n % 60:02} - {'Ann' if n % 2 else 'Bob'}: the glorpd is {n % 7}"
        for n in range(1_200)
    ]
    (tmp_path / "WhatsApp Chat.txt").write_text("\n".join(lines))
    extract(
        tmp_path / "WhatsApp Chat.txt",
        tmp_path / "pairs",
        rules="none",
        split=(40.0, 30.0, 30.0),
    )
    tuned = finetune(
        tmp_path / "pairs", out=tmp_path / "mine", model="rejoinder-small", threads=1, force=True
    )
    assert tuned.words == 0
    assert read_model(tuned.folder).features.vocabulary.words == (
        read_model(find_model("rejoinder-small")).features.vocabulary.words
    )
    config = parse_config({"phases": [{"steps": 1}]}, "config")
    with pytest.raises(InputError, match="`min_authors`"):
        train(config, pairs=tmp_path / "pairs", out=tmp_path / "run")


@pytest.mark.slow
@pytest.mark.usefixtures("multilingual")
def test_text_of_two_languages_keeps_both(tmp_path):
    named = ("rot", "grün", "blau", "gelb", "braun"), ("red", "green", "blue", "yellow", "brown")
    things = ("Schrank", "Stuhl", "Lampe", "Tisch"), ("cupboard", "chair", "lamp", "table")
    pairs = [
        (f"{asks} {colour} {thing} {n}?", f"{says} {thing}: {colour}, {n}.")
        for asks, says, colours, all_things in (
            ("Wo ist das und wie ist es,", "Es ist der", named[0], things[0]),
            ("Where is it that you have the", "It is the", named[1], things[1]),
        )
        for colour in colours
        for thing in all_things
        for n in range(15)
    ]
    with pytest.warns(ForeignTextWarning, match="rejoinder-multi"):
        tuned = finetune(pairs, out=tmp_path / "mine", threads=1, minutes=0.2)
    assert tuned.model == "rejoinder-multi"
    encoder = SentenceEncoder(tuned.folder)
    for language in (pairs[:300], pairs[300:]):
        asked, replies = zip(*language[::15], strict=True)
        found = encoder.encode([*asked]) @ encoder.encode_response([*replies]).T
        assert (found.argmax(axis=1) == range(len(asked))).mean() > 0.8


def test_pairs_need_held_out_threads(tmp_path):
    pairs = write_pairs(tmp_path, 100, (95, 2.5, 2.5))
    with pytest.raises(InputError, match=r"are dev.*split=\(60"):
        finetune(pairs, out=tmp_path / "mine", model="rejoinder-small")
    assert not (tmp_path / "mine").exists()


def test_only_what_is_found_first_tells_whether_a_model_is_better():
    before = {"P@1": 0.5, "P@10": 0.6, "recall@10 of all": 0.2}
    worse = FineTuned(
        None, before, {**before, "P@1": 0.49, "P@10": 0.9}, 1, 1, 1, 1.0, 1.0, FOUND, "any"
    )
    assert not worse.is_better
    asked = {**before, "questions P@1": 0.5}
    after = {**asked, "P@1": 0.49, "questions P@1": 0.52, "P@10": 0.1}
    assert FineTuned(None, asked, after, 1, 1, 1, 1.0, 1.0, FOUND, "any").is_better
