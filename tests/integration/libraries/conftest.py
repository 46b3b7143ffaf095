"""What the tests of several libraries share: nothing is downloaded, texts that are awkward."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # of DSPy
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[2]))  # modules of the other tests

import rejoinder
from awkward_texts import awkward_texts
from export_samples import discord, write


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """1,000 texts that tokenizers disagree about."""
    return awkward_texts(1_000)


@pytest.fixture(scope="session")
def linear(tmp_path_factory) -> Path:
    """The default model without buckets for unknown words: a table of word vectors."""
    folder = tmp_path_factory.mktemp("models") / "linear"
    rejoinder.export("rejoinder-base", folder, letter_buckets=0, spelling=False)
    return folder


@pytest.fixture(scope="session")
def index(tmp_path_factory) -> "rejoinder.Index":
    """Messages of an export of Discord; others answer some of them."""
    folder = tmp_path_factory.mktemp("messages")
    export = write(discord.FILES, folder / "export")
    return rejoinder.Index.create(folder / "index", export, "rejoinder-small")


@pytest.fixture(scope="session")
def around_port(index) -> dict[str, Any]:
    """What a retriever with `context=1` knows about the best hit of "which port?"."""
    [[hit]] = index.search(["which port?"], 1)
    answer = {"id": "103", "text": "8000 :)", **index.known(["103"])[0].about}
    assert answer["author"] == "bob"
    return {**hit.about, "before": [], "after": [answer]}
