"""The wheel, installed without extras: what works, how fast it is, what the rest asks for."""

import json
import os
import subprocess
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import metadata, version
from importlib.resources import files
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

import rejoinder
from rejoinder.models.find import DEFAULT, shipped_models
from rejoinder.models.folder import write_model

ANSWER_BUDGET = 2.0
"""Seconds of the processor from the start of a command to its answer, the fewest of three. Other
work on the machine adds nothing to them."""
IMPORT_BUDGET = 0.15
"""Seconds that `import rejoinder` may take, the fastest of five."""
WITHOUT_MODELS, WITH_MODELS = 100_000_000, 140_000_000
"""Bytes that the package and what it needs may take, without byte code."""
DIMENSION = 5
"""Of the tiny model's embeddings."""


def python(code: str) -> str:
    """Runs code in a fresh interpreter and returns what it prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def command(
    *words: object, folder: Path | None = None, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("rejoinder")
    # a user's pip compiles what it installs; here the first command does
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    if path is not None:
        variables["PYTHONPATH"] = str(path)
    return subprocess.run(
        [program, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=variables,
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A DAN with random weights, written with the wheel. The module that draws them is a test's."""
    path = Path(__file__).parents[2] / "tiny_models.py"
    spec = spec_from_file_location(path.stem, path)
    tiny_models = module_from_spec(spec)
    spec.loader.exec_module(tiny_models)
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder, tiny_models.dan_model())
    return folder


def test_it_is_the_wheel_that_is_tested_and_no_extra_is_here():
    assert Path(sys.prefix) in Path(rejoinder.__file__).parents
    absent = "torch duckdb pydantic ibis tokenizers httpx gensim polars scipy sklearn"
    for package in absent.split():
        assert find_spec(package) is None, package


def test_an_installation_without_extras_is_small():
    site = Path(rejoinder.__file__).parents[1]
    tools = {"pip", "setuptools", "pytest", "_pytest", "__pycache__"}
    models = Path(rejoinder.__file__).parent / "data" / "models"
    sizes = [
        (file.stat().st_size, models in file.parents)
        for file in site.rglob("*")
        if file.is_file()
        and file.relative_to(site).parts[0] not in tools
        and "__pycache__" not in file.parts
    ]
    assert sum(size for size, is_model in sizes if not is_model) < WITHOUT_MODELS
    assert sum(size for size, _ in sizes) < WITH_MODELS


def test_the_kernels_in_c_are_built():
    source = Path(__file__).parents[3] / "src/rejoinder"
    kernels = [file.relative_to(source).with_suffix("") for file in source.rglob("_*.c")]
    assert Path("text/_words") in kernels
    package = Path(rejoinder.__file__).parent  # those of training have no torch here to be imported
    assert [each for each in kernels if not built(package / each)] == []
    facts = json.loads(command("info", "--json").stdout)
    ways = {"words": "native", "sums": "native"}
    assert facts["computed_by"] == {"library": "numpy"} | ways


def built(kernel):
    return any(kernel.with_name(kernel.name + ending).exists() for ending in EXTENSION_SUFFIXES)


def test_the_package_is_imported_fast_and_without_what_is_heavy():
    code = """
import sys, time
begin = time.perf_counter()
import rejoinder
print(time.perf_counter() - begin)
assert not {"torch", "duckdb", "pydantic", "polars", "scipy"} & {*sys.modules}
"""
    assert min(float(python(code)) for _ in range(5)) < IMPORT_BUDGET


def test_this_python_is_one_that_the_package_names():
    own = f"Programming Language :: Python :: {sys.version_info[0]}.{sys.version_info[1]}"
    assert own in metadata("rejoinder").get_all("Classifier")


def test_the_command_says_its_version_from_any_folder(tmp_path):
    shown = command("--version", folder=tmp_path)
    assert shown.stdout == f"rejoinder {version('rejoinder')}\n"


def test_the_shipped_configs_are_in_the_wheel():
    configs = list(files("rejoinder").joinpath("data/configs").iterdir())
    assert {"dan-modern.toml", "dan-paper.toml", "demo.toml"} <= {file.name for file in configs}
    for file in configs:
        assert tomllib.loads(file.read_text("utf-8"))["name"] == file.name.removesuffix(".toml")


def test_a_model_in_a_separate_package_is_found_by_its_name(tmp_path):
    source = Path(__file__).parents[3] / "models/rejoinder-research"
    # the environment has no pip
    base = Path(sys.base_prefix) / f"bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    pip = [base, "-m", "pip", "install", "-qq", "--no-deps", "--target", tmp_path]
    before = sorted(source.rglob("*"))
    subprocess.run([*pip, source], check=True)
    assert sorted(source.rglob("*")) == before
    shown = command("info", "rejoinder-research", "--json", path=tmp_path)
    assert json.loads(shown.stdout)["licence"] == "non-commercial-research"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["config", "list"], "pip install 'rejoinder[train]'"),
        (["extract", "dump.jsonl", "--out", "pairs"], "pip install 'rejoinder[extract]'"),
        (["serve"], "pip install 'rejoinder[serve]'"),
        (["train", "--config", "demo", "--out", "run"], "pip install 'rejoinder[train]'"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_needs_an_extra_names_it(words, message, tmp_path):
    (tmp_path / "dump.jsonl").write_text('{"id": "a", "parent_id": "b", "body": "c"}\n')
    result = command(*words, folder=tmp_path)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["dump.jsonl"]


def test_a_dan_encodes_in_python_without_torch(model):
    encoder = rejoinder.SentenceEncoder.load(model)
    embeddings = encoder.encode(["How old are you?", "What is your age?", "how OLD are you ?"])
    assert embeddings.shape == (3, DIMENSION)
    assert np.allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-6)
    assert np.allclose(embeddings[0], embeddings[2], atol=1e-6)
    [hits] = encoder.search(["How old are you?"], ["what is", "how old are you ?"], top_k=1)
    assert hits[0].text == "how old are you ?"


def test_a_dan_encodes_on_the_command_line(model, tmp_path):
    (tmp_path / "sentences.txt").write_text("How old are you?\nWhat is your age?\n")
    out = tmp_path / "embeddings.npy"
    result = command(
        "encode", "--model", model, "--sentences", "sentences.txt", "--out", out, folder=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert np.load(out).shape == (2, DIMENSION)
    result = command("similarity", "--model", model, "how old", "how old", "--json")
    assert json.loads(result.stdout)[0]["cosine"] == pytest.approx(1, abs=1e-6)


def processor_seconds() -> float:
    """Returns the seconds that the processor spent on commands that have ended."""
    spent = os.times()
    return spent.children_user + spent.children_system


def test_the_model_in_the_wheel_answers_at_once_from_any_folder(tmp_path):
    if DEFAULT not in shipped_models():
        pytest.skip("the wheel holds no model")
    questions = "How old are you?", "What is your age?", "Where do you live?"
    seconds = []
    for _ in range(3):
        begin = processor_seconds()
        result = command("similarity", *questions[:2], "--json", folder=tmp_path)
        seconds.append(processor_seconds() - begin)
        assert (result.returncode, result.stderr) == (0, "")
    assert min(seconds) < ANSWER_BUDGET
    other = command("similarity", questions[0], questions[2], "--json", folder=tmp_path)
    same, different = (json.loads(shown.stdout)[0]["cosine"] for shown in (result, other))
    assert same > different
    encoder = rejoinder.SentenceEncoder()
    assert encoder.similarity(*questions[:2])[0, 0] == pytest.approx(same, abs=1e-5)


def test_each_model_in_the_wheel_is_listed_and_whole():
    listed = json.loads(command("models", "--json").stdout)
    assert [model["name"] for model in listed] == list(shipped_models())
    for model in listed:
        assert rejoinder.SentenceEncoder.load(model["name"]).dim == model["dim"]


def test_an_address_asks_for_the_extra_that_downloads():
    address = "https://example.org/model.zip"
    result = command("info", address, "--model-sha256", "0" * 64)
    assert result.returncode == 2
    assert "pip install 'rejoinder[data]'" in result.stderr
