"""Sessions of Spark: settings without effect, what is missing, and errors that cross over."""

import sys

import pytest
from py4j.protocol import Py4JError

from rejoinder.corpus.engines import ENGINES, Resources
from rejoinder.errors import InputError, MissingExtraError, StorageError
from rejoinder.io.spark_session import open_session, spark_errors, told_to_driver

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"master": "local[4]", "threads": 2}, r"`threads`.*`master` local"),
        ({"master": "sc://host", "memory": "2GB"}, "`memory`.*Spark Connect"),
        ({"memory": "100MB"}, "100MB.*512MB"),
        ({"memory": "much"}, "is not an amount"),
        ({"master": "sc://127.0.0.1:9"}, r"sc://127\.0\.0\.1:9.*Spark Connect"),
        pytest.param({"master": "nowhere"}, "nowhere.*[Mm]aster", marks=pytest.mark.slow),
    ],
)
def test_what_has_no_effect_or_can_not_be_is_refused(no_spark, settings, message):
    with pytest.raises(InputError, match=message) as told:
        open_session(**settings)
    assert "\n" not in str(told.value)


def test_only_spark_has_a_master(tmp_path):
    with pytest.raises(InputError, match=r"`master` local .*`engine='spark'`"):
        ENGINES["duckdb"](Resources(tmp_path, master="local"))


def test_java_and_pyspark_must_be_there(no_spark, monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=r"Java 17.*JAVA_HOME"):
        open_session()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match=r"Java 17.*PATH"):
        open_session()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError, match=r"'rejoinder\[spark\]'"):
        open_session()


@pytest.mark.parametrize("kind", [InputError, StorageError])
def test_an_error_of_an_executor_is_raised_in_the_driver(kind):
    sentence = 'été.jsonl line 3: {"a": "\\n"} is not a comment.'
    with pytest.raises(RuntimeError) as marked, told_to_driver():
        raise kind(sentence)
    java = f"Job aborted\n: org.apache.X: Traceback\nRuntimeError: {marked.value}\n\tat org.y\n"
    with pytest.raises(kind) as told, spark_errors():
        raise Py4JError(java)
    assert str(told.value) == sentence


@pytest.mark.parametrize(
    ("java", "sentence"),
    [
        ("x: java.io.IOException: No space left on device\n\tat y", "no space left"),
        ("x: java.lang.OutOfMemoryError: Java heap space", "ran out of memory"),
        ("An error occurred while calling o1.z.\n: java.lang.X: a\n\tat y", "Spark can't do this"),
    ],
)
def test_other_errors_are_one_sentence(java, sentence):
    with pytest.raises((InputError, StorageError), match=sentence) as told, spark_errors():
        raise Py4JError(java)
    assert "\n" not in str(told.value)
