"""Misspelt words of a query are read as words of the index."""

import pytest

from rejoinder.index.indexing import Index

TEXTS = [
    "Deploy it to Kubernetes and watch Grafana.",
    "The Kubernetes cluster of RPostgreSQL is down.",
    "dbGetQuery returns a connection",
    "How do I connect to the database?",
    *(f"connect to server {number}" for number in range(30)),
    "conect again",
    "A soda and a pie.",
]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("own") / "index", TEXTS, "rejoinder-small")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("is Kuberntes up", {"kuberntes": "kubernetes"}),
        ("grafna dashboards", {"grafna": "grafana"}),
        ("dbGetQurey fails", {"dbgetqurey": "dbgetquery"}),
        ("the RPosgreSQL conection", {"rposgresql": "rpostgresql", "conection": "connection"}),
        ("how to conect", {"conect": "connect"}),  # the index has both
        ("is Grafana up", {}),
        ("where is Skoda made", {}),  # it has soda, and English has Skoda
        ("pasword", {"pasword": "password"}),  # as the model reads it
        ("", {}),
    ],
)
def test_words_are_read_as_those_of_the_index(index, query, expected):
    assert index.read_as(query) == [expected]


@pytest.mark.parametrize("mode", ["semantic", "words", "hybrid"])
def test_a_misspelt_name_finds_what_the_right_one_does(index, mode):
    wrong, right = index.search(["Kuberntes is down", "Kubernetes is down"], 2, mode=mode)
    assert [(hit.id, hit.score) for hit in wrong] == [(hit.id, hit.score) for hit in right]
    assert wrong[0].id == "2"


def test_the_index_knows_words_that_are_added(tmp_path):
    grown = Index.create(tmp_path / "index", ["How are you?"], "rejoinder-small")
    assert grown.read_as("zabbbix alerts") == [{}]
    grown.add(["Zabbix sends alerts."])
    assert grown.read_as("zabbbix alerts") == [{"zabbbix": "zabbix"}]
