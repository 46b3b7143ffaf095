"""OpenAI's interface."""

import base64

import numpy as np
import pytest

AGES = ["How old are you?", "What is your age?"]


def post(server, **body):
    return server.client.post("/v1/embeddings", json=body)


def test_floats_and_base64_are_the_same_numbers(server, encoder):
    floats = post(server, input=AGES, model="rejoinder-small").json()
    coded = post(server, input=AGES, encoding_format="base64").json()
    rows = [item["embedding"] for item in floats["data"]]
    decoded = [np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in coded["data"]]
    assert np.array_equal(np.array(rows, np.float32), np.stack(decoded))
    assert np.allclose(rows, encoder.encode(AGES), atol=1e-6)
    assert floats["object"] == "list"
    assert floats["model"] == "rejoinder-small"


def test_usage_is_the_number_of_tokens_read(server, model):
    usage = post(server, input=AGES).json()["usage"]
    tokens = int(model.features(AGES).lengths.sum())
    assert usage == {"prompt_tokens": tokens, "total_tokens": tokens}


def test_dimensions(server):
    [item] = post(server, input=AGES[0], dimensions=8).json()["data"]
    assert len(item["embedding"]) == 8
    assert np.linalg.norm(item["embedding"]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("body", "status", "param", "said"),
    [
        ({"input": [1, 2]}, 422, "input", "send strings"),
        ({"input": [[1, 2], [3]]}, 422, "input", "send strings"),
        ({"input": []}, 422, "input", "empty"),
        ({"input": ["a", None]}, 422, "input", "element 1"),
        ({}, 422, "input", "required"),
        ({"input": "a", "dimensions": 257}, 422, "dimensions", "256"),
        ({"input": "a", "dimensions": 0}, 422, "dimensions", "1"),
        ({"input": "a", "encoding_format": "hex"}, 422, "encoding_format", "base64"),
        ({"input": "a", "model": "ada"}, 404, "model", "rejoinder-small"),
        ({"input": "a", "inputs": "b"}, 422, "inputs", "no such field"),
    ],
)
def test_errors_have_openais_form(server, body, status, param, said):
    answer = post(server, **body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert said in error["message"]


def test_a_model_without_nested_dims_refuses_dimensions():
    from serving import running
    from tiny_models import dan_model

    with running(dan_model()) as server:
        answer = post(server, input="how old", dimensions=3)
        assert answer.status_code == 422
        assert "nested_dims" in answer.json()["error"]["message"]
        assert len(post(server, input="how old", dimensions=5).json()["data"][0]["embedding"]) == 5


def test_models(server):
    listed = server.client.get("/v1/models").json()
    [model] = listed["data"]
    assert (listed["object"], model["id"], model["object"]) == ("list", "rejoinder-small", "model")
    assert server.client.get("/v1/models/rejoinder-small").json() == model
    unknown = server.client.get("/v1/models/ada")
    assert unknown.status_code == 404
    assert unknown.json()["error"]["code"] == "model_not_found"
