"""Folders for other libraries: what is in them, what is refused, and that they appear whole."""

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from gensim.models import KeyedVectors
from safetensors.numpy import load_file

import commands
from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.interfaces.targets import TARGETS, export_to
from rejoinder.models.folder import write_model
from runs import same_files
from tiny_models import WORDS, dan_model

call, refused = partial(commands.call, "export"), partial(commands.refused, "export")

GUIDE = Path(__file__).parents[3] / "docs/extend/target.md"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with a linear bag of words, and one that has more."""
    linear = dan_model(layers=(), head=(4, 6), buckets=0)
    write_model(tmp_path / "linear", replace(linear, name="linear"))
    hashed = dan_model(layers=(), head=(4, 6), buckets=0, unknown_buckets=8)
    write_model(tmp_path / "hashed", replace(hashed, name="hashed"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(path):
    return {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}


def test_word_vectors_become_modules_of_sentence_transformers(folder):
    written = export_to("linear", "out", "sentence-transformers")
    assert written.python == 'SentenceTransformer("out")'
    assert files(folder / "out") == {
        "1_Normalize/config.json", "README.md", "config_sentence_transformers.json",
        "model.safetensors", "modules.json", "tokenizer.json",
    }  # fmt: skip
    assert written.bytes == sum(
        file.stat().st_size for file in (folder / "out").rglob("*") if file.is_file()
    )
    modules = json.loads((folder / "out/modules.json").read_text())
    assert [(row["path"], row["type"].split(".")[-1]) for row in modules] == [
        ("", "StaticEmbedding"),
        ("1_Normalize", "Normalize"),
    ]
    assert load_file(folder / "out/model.safetensors")["embedding.weight"].shape == (
        len(WORDS) + 1,
        6,
    )


def test_other_models_are_copied_whole(folder):
    written = export_to("hashed", "out", "sentence-transformers", name="mine")
    assert written.python == 'SentenceTransformer("out", trust_remote_code=True)'
    copy = SentenceEncoder.load(folder / "out/0_RejoinderModule")
    assert copy.describe()["name"] == "mine"
    text = "How old is Kerrville?"
    assert (copy.encode(text) == SentenceEncoder.load(folder / "hashed").encode(text)).all()
    [module] = json.loads((folder / "out/modules.json").read_text())
    assert module["type"] == "rejoinder.interfaces.sentence_transformers.RejoinderModule"


def test_a_model_that_reads_misspelt_words_is_copied_whole(folder):
    written = export_to("linear", "out", "sentence-transformers", spelling=True)
    assert "trust_remote_code=True" in written.python
    copied = SentenceEncoder.load(folder / "out/0_RejoinderModule")
    assert np.allclose(copied.encode("waht"), copied.encode("what"), atol=1e-6)
    plain = export_to("out/0_RejoinderModule", "plain", "model2vec", spelling=False)
    assert plain.dim == copied.dim


def test_the_card_says_terms_and_how_the_library_loads_the_folder(folder):
    for target, library in (("model2vec", "StaticModel"), ("sentence-transformers", "SentenceT")):
        export_to("linear", "out", target, overwrite=True)
        card = (folder / "out/README.md").read_text("utf-8")
        assert f'library_name: "{target}"' in card
        assert 'license_link: "README.md"' in card
        assert f"import {library}" in card
        assert "## Licence" in card


def test_model2vec_refuses_what_it_can_not_express_and_leaves_no_folder(folder):
    with pytest.raises(InputError, match=r"can't express hashed: it has 8 buckets .*`unknown_buc"):
        export_to("hashed", "out", "model2vec")
    assert not (folder / "out").exists()
    written = export_to("hashed", "out", "model2vec", unknown_buckets=0, max_words=20)
    assert load_file(folder / "out/model.safetensors")["embeddings"].shape == (21, 6)
    assert (written.target, written.dim) == ("model2vec", 6)
    with pytest.raises(InputError, match=r"misspelt words .*`spelling=False`"):
        export_to("linear", "spelt", "model2vec", spelling=True)


def test_rows_are_shortened_for_another_library_too(folder):
    spreads = []
    for out, options in (("plain", {}), ("shorter", {"saturation": 1.0})):
        export_to("linear", out, "model2vec", **options)
        rows = load_file(folder / out / "model.safetensors")["embeddings"]
        lengths = np.linalg.norm(rows[rows.any(axis=1)].astype(np.float32), axis=1)
        spreads.append(lengths.max() / lengths.min())
    assert spreads[1] < spreads[0] ** 0.7


def test_an_occupied_folder_stays_as_it_is(folder):
    (folder / "out").mkdir()
    (folder / "out/mine.txt").write_text("mine")
    with pytest.raises(InputError, match="overwrite=True"):
        export_to("linear", "out", "model2vec")
    assert files(folder / "out") == {"mine.txt"}
    export_to("linear", "out", "model2vec", overwrite=True)
    assert "mine.txt" not in files(folder / "out")


@pytest.mark.parametrize("target", ["model2vec", "sentence-transformers"])
def test_the_same_model_gives_the_same_bytes(folder, target):
    for out in ("one", "two"):
        export_to("linear", out, target)
    assert same_files(folder / "one", folder / "two")


def test_the_command_says_how_the_folder_is_loaded(folder):
    told = json.loads(call("linear", "--to", "model2vec", "--out", "out", "--json").stdout)
    assert told["python"] == 'StaticModel.from_pretrained("out")'
    assert (told["out"], told["to"], told["dim"]) == ("out", "model2vec", 6)
    header, row = call("linear", "--to", "model2vec", "--out", "two", "--tsv").stdout.splitlines()
    assert header.split("\t") == list(told)
    assert row.split("\t")[0] == "two"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "model2vek"], "did you mean 'model2vec'"),
        (["--to", "model2vec", "--dtype", "int8"], "model2vec is written as float32"),
        (["--to", "model2vec", "--data", "x"], "--data and --pairs score smaller models"),
        (["--to", "model2vec", "--any-dim"], "give a dim, too"),
        (["--to", "model2vec", "--unknown-buckets", "4"], "it has none"),
    ],
)
def test_options_without_an_effect_are_refused(folder, words, said):
    assert said in refused("linear", "--out", "out", *words, error=InputError)
    assert not (folder / "out").exists()


def test_the_target_of_the_guide_is_written_like_the_others(folder, monkeypatch):
    """docs/extend/target.md: a target from outside the package."""
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]
    monkeypatch.setattr(TARGETS, "_records", dict(TARGETS._records))
    exec(compile(code, GUIDE.name, "exec"), {})  # noqa: S102 -- it is our own
    told = json.loads(call("linear", "--to", "word2vec", "--out", "out", "--json").stdout)
    assert told["python"] == 'KeyedVectors.load_word2vec_format("out/vectors.txt")'
    read = KeyedVectors.load_word2vec_format(folder / "out/vectors.txt")
    assert read.index_to_key == WORDS
    table = load_file(folder / "linear/weights.safetensors")["encoder.table.weight"]
    assert (read.vectors == table).all()
    with pytest.raises(InputError, match="word2vec's text can't express hashed"):
        export_to("hashed", "two", "word2vec")
    assert not (folder / "two").exists()
