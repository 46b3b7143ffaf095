"""Evaluation needs no network: with sockets that refuse, everything but downloads works."""

import socket

import pytest

from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context
from rejoinder_papers.baselines.words import RandomVectors

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.mark.shared_data
def test_nothing_is_asked_of_the_network(shared_data, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    context = Context(shared_data)
    results = score_tasks(RandomVectors(), ["stsb", "sts12", "mrpc", "cqa-b/2016"], context)
    assert [result.task for result in results].count("mrpc/senteval") == 1
    for result in results:
        if result.main == "pearson":
            assert abs(result.scores["pearson"]) < 0.1  # chance
