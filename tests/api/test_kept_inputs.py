"""No command replaces what it reads, on the command line or in the library."""

import pytest
from typer.testing import CliRunner

from rejoinder.cli.main import app
from rejoinder.errors import InputError
from rejoinder.inference.encoder import SentenceEncoder
from rejoinder.models.folder import write_model
from tiny_models import dan_model

COMMANDS = {
    "adapt": "adapt model --sts data --out model",
    "adapt, data": "adapt model --sts data --out data",
    "card": "card model --results r.json --out r.json",
    "card, model": "card model --out model/config.json",
    "encode": "encode -m model --sentences texts.jsonl --out texts.jsonl",
    "evaluate": "evaluate model --data data --tasks stsb --out data/sts.csv",
    "evaluate, vectors": "evaluate vectors:v.parquet --data data --tasks stsb --out v.parquet",
    "export": "export model --dtype float16 --out model",
    "export, link": "export model --dtype float16 --out link",
    "export, run": "export run/model --dtype float16 --out run",
    "export, to": "export model --to model2vec --out model",
    "extract": "extract dumps/a.jsonl --out dumps",
    "index": "index texts.txt -m model --out model",
    "index, texts": "index data/texts.txt -m model --out data",
    "report": "report r.json --out r.predictions",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_keeps_what_it_reads(name, small_dump, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("model", "run/model"):
        write_model(tmp_path / folder, dan_model())
    (tmp_path / "link").symlink_to("model")
    for file in ("data/sts.csv", "data/texts.txt", "texts.txt", "texts.jsonl", "r.json",
                 "r.predictions/a", "v.parquet"):  # fmt: skip
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("are you\n")
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "a.jsonl").write_bytes(small_dump.read_bytes())
    if name.startswith("card"):
        (tmp_path / "r.json").write_text('{"format_version": 4, "results": []}')
    before = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    words = COMMANDS[name].split()
    overwrite = [] if words[0] == "card" else ["--overwrite"]
    told = CliRunner().invoke(app, [*words, *overwrite])
    assert isinstance(told.exception, InputError), told.exception
    assert "is read, and writing" in str(told.exception)
    after = {str(path): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_a_model_may_be_saved_where_it_was_loaded(tmp_path):
    write_model(tmp_path / "model", dan_model())
    encoder = SentenceEncoder.load(tmp_path / "model")
    before = encoder.encode(["are you"])
    encoder.save(tmp_path / "model", overwrite=True)
    assert (SentenceEncoder.load(tmp_path / "model").encode(["are you"]) == before).all()
