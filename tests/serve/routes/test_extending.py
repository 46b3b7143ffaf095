"""docs/extend/route.md: an interface from outside the package works like the package's."""

import re
from pathlib import Path

import numpy as np
import pytest

from rejoinder.serve.app import create_app
from serving import running_app

GUIDE = Path(__file__).parents[3] / "docs/extend/route.md"
AGES = ["How old are you?", "What is your age?"]


@pytest.fixture(scope="module")
def server(model):
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]
    names = {}
    exec(compile(code, GUIDE.name, "exec"), names)  # noqa: S102 -- it is our own
    app = create_app(model)
    app.include_router(names["router"])
    with running_app(app) as started:
        yield started


def test_the_interface_of_the_guide_answers(server, encoder):
    answer = server.client.post("/api/embed", json={"model": "any", "input": AGES}).json()
    assert answer["model"] == "rejoinder-small"
    np.testing.assert_allclose(answer["embeddings"], encoder.encode(AGES), atol=1e-6)


def test_its_errors_and_its_openapi_are_those_of_the_server(server):
    answer = server.client.post("/api/embed", json={"model": "any", "input": AGES, "keep_alive": 1})
    assert (answer.status_code, answer.json()["error"][:12]) == (422, "keep_alive: ")
    described = server.client.get("/openapi.json").json()["paths"]["/api/embed"]["post"]
    assert described["tags"] == ["Ollama"]
    assert "422" in described["responses"]
