"""Foreign encoders that raise, or do not return a matrix of numbers: one sentence each."""

import re

import numpy as np
import pytest

from rejoinder.errors import InputError, MissingExtraError
from rejoinder.evaluation.adapters import Called, open_function
from rejoinder.evaluation.encoding import TRACEBACK, Embedder, identity
from rejoinder.evaluation.responses import ResponsePairs
from rejoinder.evaluation.run import score_tasks
from rejoinder.evaluation.tasks import Context

TEXTS = ["one", "two words", "three more words"]


def embedded(function):
    """What an encoder of that function gives for the texts."""
    return Embedder(Called(function, "py:mine:f"), "py:mine:f").embed(TEXTS, "mr/senteval")


def inner(text):
    return {}[text]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            lambda texts: [inner(text) for text in texts],
            r"raised KeyError: 'one' \(.*:\d+ in inner",
        ),
        (lambda: None, "TypeError: .*takes 0 positional arguments but 1"),
        (lambda texts: [[1.0] * len(text) for text in texts], r"lengths.*3 to 16.*\(N, D\)"),
        (lambda texts: [["a", "b"] for _ in texts], "strings"),
        (lambda texts: np.ones((len(texts), 2)) * 1j, "complex numbers"),
        (lambda texts: np.ones((len(texts), 0)), "0 numbers"),
        (lambda _texts: None, "None"),
        (lambda texts: ([1.0, 2.0] for _ in texts), "generator"),
        (lambda texts: [[None, 1.0] for _ in texts], "None"),
        (lambda texts: np.ones((len(texts), 2, 2)), r"\(3, 2, 2\) for 3 "),
        (lambda _texts: np.ones((2, 2)), r"\(2, 2\) for 3 "),
        (lambda texts: np.full((len(texts), 2), 1e300), "sentence 0 .'one'."),
    ],
)
def test_what_comes_back_is_said_with_the_task_and_the_encoder(function, said):
    with pytest.raises(InputError) as caught:
        embedded(function)
    message = str(caught.value)
    assert message.startswith("mr/senteval: encode of the encoder py:mine:f ")
    assert re.search(said, message), message
    assert "\n" not in message


def test_integers_booleans_and_lists_are_numbers():
    for function in (
        lambda texts: [[len(text), 1] for text in texts],
        lambda texts: np.array([[True, False]] * len(texts)),
    ):
        found = embedded(function)
        assert found.dtype == np.float32
        assert found.shape == (3, 2)


def test_the_exception_itself_can_be_asked_for(monkeypatch):
    monkeypatch.setenv(TRACEBACK, "1")
    with pytest.raises(KeyError, match="one"):
        embedded(lambda texts: [inner(text) for text in texts])


def test_errors_of_ours_pass_as_they_are():
    def needs(_texts):
        raise MissingExtraError("torch", "train")

    with pytest.raises(MissingExtraError, match=r"rejoinder\[train\]"):
        embedded(needs)


def test_a_width_that_changes_is_an_error():
    widths = iter((2, 3))
    embedder = Embedder(Called(lambda texts: np.ones((len(texts), next(widths))), "f"), "f")
    embedder.embed(["a"], "t")
    with pytest.raises(InputError, match=r"f .* 3 numbers.* 2"):
        embedder.embed(["b"], "t")


class Described:
    def __init__(self, about):
        self.about = about

    def describe(self):
        return self.about() if callable(self.about) else self.about

    def encode(self, sentences):
        return np.ones((len(sentences), 2))


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"name": "x", "words": {1, 2}}, r"'words' is \{1, 2\} \(set\).*JSON"),
        ({"name": "x", "dim": np.int64(3)}, r"'dim' is .*3.* \(int64\)"),
        ({"name": "x", "loss": float("nan")}, "'loss' is nan"),
        ({"name": 5}, "'name' is 5.*string"),
        (None, "NoneType.*dictionary"),
        (lambda: 1 / 0, "raised ZeroDivisionError"),
    ],
)
def test_an_identity_is_what_json_holds(about, said):
    with pytest.raises(InputError, match=said) as caught:
        identity(Described(about))
    assert str(caught.value).startswith("describe() of the encoder Described")


def test_an_identity_is_the_same_after_json():
    assert identity(Described({"name": "x", "sizes": (1, 2)}))["sizes"] == [1, 2]


class TwoWidths(Described):
    def encode_response(self, sentences):
        return np.ones((len(sentences), 3))


def pairs():
    texts = [f"text {row}" for row in range(120)]
    return ResponsePairs("test", texts, texts[::-1], ["s"] * 120, "0" * 64)


def test_both_sides_need_one_width():
    encoder = TwoWidths({"name": "wide"})
    with pytest.raises(InputError, match=r"encode_response .*wide.* 3 .* 2"):
        score_tasks(encoder, ["response"], Context(pairs=pairs))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def f(:", r"broken_a .*SyntaxError: .*broken_a.py:1"),
        ("1 / 0", r"broken_b .*ZeroDivisionError: .*broken_b.py:1"),
        ("f = 5", "int.*function"),
        ("class f:\n    def __init__(self, x): pass", "class f .*TypeError"),
        ("import nothing_of_that_name", "nothing_of_that_name"),
    ],
)
def test_modules_that_fail_are_named(code, said, tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    name = f"broken_{'abcde'[request.node.callspec.indices['code']]}"
    (tmp_path / f"{name}.py").write_text(f"{code}\n")
    with pytest.raises(InputError, match=said):
        open_function(f"{name}:f")


def test_another_source_is_another_encoder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = []
    for number in (1, 2):
        (tmp_path / f"source{number}.py").write_text(
            f"def f(texts): return [[{number}] for _ in texts]\n"
        )
        found.append(identity(open_function(f"source{number}:f"))["probe_sha256"])
    assert found[0] != found[1]
