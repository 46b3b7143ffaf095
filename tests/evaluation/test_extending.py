"""The pages on adding a metric and a task are true: their Python runs as it stands."""

import re
from pathlib import Path

import pytest

from rejoinder.errors import InputError
from rejoinder.evaluation import metrics, tasks

PAGES = Path(__file__).resolve().parents[2] / "docs" / "extend"


@pytest.fixture(autouse=True)
def _registries():
    """What a page registers is known within a test only."""
    before = [(registry, set(registry)) for registry in (metrics.METRICS, tasks.FAMILIES)]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            registry.remove(name)


def run_page(name):
    """All Python of a page, one block after the other."""
    blocks = re.findall(r"```python\n(.*?)```", (PAGES / name).read_text("utf-8"), re.DOTALL)
    assert len(blocks) > 1
    code = "\n".join(blocks)
    namespace = {"__name__": "page"}
    exec(compile(code, name, "exec"), namespace)  # noqa: S102 -- it is our own
    return namespace


def test_a_metric_of_ones_own(capsys):
    run_page("metric.md")
    assert "reciprocal_rank" in capsys.readouterr().out
    metric = metrics.metric_of("reciprocal_rank")
    with pytest.raises(InputError, match=r"'reciprocal_rank'.* registered"):
        metrics.register_metric(metric)


def test_a_task_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = run_page("task.md")
    assert "triplets/cosine" in capsys.readouterr().out
    assert tasks.task_groups()["triplets"] == ["triplets/cosine"]
    for other in ({"stsb/cosine": ()}, {"new": ("stsb/cosine",)}, {"sts": ()}):
        family = tasks.Family(other, page["read"], page["run"])
        with pytest.raises(InputError, match="registered"):
            tasks.register_family(family)


def test_an_unknown_metric_is_refused():
    with pytest.raises(InputError, match=r"'bleu'.*register_metric"):
        metrics.metric_of("bleu")
