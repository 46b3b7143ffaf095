"""Clients that people have already: openai, huggingface_hub, and a fuzzer of the OpenAPI."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import openai
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

import rejoinder

KEY = "a-key-that-nobody-guesses"
AGES = ["How old are you?", "What is your age?", "Where do you live?"]


@pytest.fixture(scope="module")
def address(serve):
    return serve()


@pytest.fixture(scope="module")
def locked(serve):
    return serve(REJOINDER_API_KEY=KEY)


@pytest.fixture(scope="module")
def encoder():
    return rejoinder.SentenceEncoder()


def client(address, key="none"):
    return openai.OpenAI(base_url=f"{address}/v1", api_key=key, max_retries=0)


def rows(answer):
    return np.array([item.embedding for item in answer.data], np.float32)


def test_openai_embeds(address, encoder):
    create = client(address).embeddings.create
    coded = create(model="rejoinder-base", input=AGES)
    plain = create(model="rejoinder-base", input=AGES, encoding_format="float")
    assert np.array_equal(rows(coded), rows(plain))
    assert np.allclose(rows(coded), encoder.encode(AGES), atol=1e-6)
    assert coded.usage.prompt_tokens == coded.usage.total_tokens > len(AGES)
    one = create(model="rejoinder-base", input=AGES[0], dimensions=128)
    assert rows(one).shape == (1, 128)


def test_openai_lists_models(address):
    assert [model.id for model in client(address).models.list()] == ["rejoinder-base"]
    assert client(address).models.retrieve("rejoinder-base").object == "model"


def test_openai_understands_the_errors(address, locked):
    create = client(address).embeddings.create
    with pytest.raises(openai.NotFoundError, match="rejoinder-base") as unknown:
        create(model="ada", input="a")
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.UnprocessableEntityError, match="send strings"):
        create(model="rejoinder-base", input=[[1, 2, 3]])
    with pytest.raises(openai.AuthenticationError, match="API key"):
        client(locked).embeddings.create(model="rejoinder-base", input="a")
    assert len(client(locked, KEY).embeddings.create(model="rejoinder-base", input="a").data) == 1


@pytest.mark.parametrize("path", ["", "/embed"])
def test_hugging_face_extracts_features(address, encoder, path):
    hub = InferenceClient(model=f"{address}{path}")
    found = hub.feature_extraction(AGES[0], normalize=True, truncate=True)
    assert np.allclose(found, encoder.encode(AGES[:1]), atol=1e-6)
    assert np.allclose(
        hub.feature_extraction(AGES[0], normalize=False),
        encoder.encode(AGES[:1], normalize=False),
        rtol=1e-5,
        atol=1e-5,
    )


def test_hugging_face_compares(address, encoder):
    hub = InferenceClient(model=f"{address}/similarity")
    found = hub.sentence_similarity(AGES[0], other_sentences=AGES[1:])
    assert np.allclose(found, encoder.similarity(AGES[0], AGES[1:])[0], atol=1e-6)


def test_hugging_face_sends_the_key_and_understands_the_errors(locked):
    assert InferenceClient(model=locked, token=KEY).feature_extraction("a").shape == (1, 512)
    with pytest.raises(HfHubHTTPError, match="401"):
        InferenceClient(model=locked, token="wrong").feature_extraction("a")  # noqa: S106
    with pytest.raises(HfHubHTTPError, match="422"):
        InferenceClient(model=locked, token=KEY).feature_extraction("a", prompt_name="query")


def test_the_examples_of_the_docs_run(address, capsys):
    page = (Path(__file__).resolve().parents[3] / "docs" / "serving.md").read_text("utf-8")
    section = page.split("## Clients")[1].split("\n## ")[0]
    section = section.replace("http://127.0.0.1:8080", address)
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    # the second one for the shell needs an index of messages, which tests/serve has
    shell = next(block for language, block in blocks if language == "sh")
    for program in (block for language, block in blocks if language == "python"):
        exec(compile(program, "serving.md", "exec"), {})  # noqa: S102 -- it is our own
    dimension, shape, similarities = capsys.readouterr().out.split("\n")[:3]
    assert (dimension, shape) == ("512", "(1, 512)")
    assert json.loads(similarities)[0] > 0.5
    if shutil.which("curl"):
        run = subprocess.run(["bash", "-ec", shell], capture_output=True, text=True, check=True)
        assert run.stdout.startswith("[[")
        assert '"text":"I am twenty."' in run.stdout


def test_no_request_by_the_openapi_makes_the_server_fail(serve, tmp_path):
    (tmp_path / "texts.txt").write_text("\n".join(AGES))
    address = serve("--texts", tmp_path / "texts.txt")
    program = Path(sys.executable).with_name("schemathesis")
    run = subprocess.run(
        [
            program, "run", f"{address}/openapi.json", "--checks",
            "not_a_server_error,status_code_conformance,response_schema_conformance",
            "--max-examples", "40", "--workers", "1", "--seed", "1", "--phases", "examples,fuzzing",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-6_000:] + run.stderr[-2_000:]
