"""`rejoinder fit-links`, and `explore`, `extract` and `suggest` with what it writes."""

import json

import pytest

from commands import call, refused
from rejoinder.conversations.collection import open_collection
from rejoinder.errors import ModelError

pytest.importorskip("torch")
COLUMNS = "text=text,id=id,time=time,author=author,answers=answers"


def write(path, count, *, stated):
    """A chat in which everybody answers the message three before."""
    rows = [
        {"id": f"m{n}", "text": f"words of {n}", "time": 60 * n, "author": f"a{n % 7}"}
        | ({"answers": f"m{n - 3}"} if stated else {})
        for n in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.mark.slow
def test_what_is_fitted_tells_answers_in_another_chat(tmp_path):
    known = write(tmp_path / "known.jsonl", 800, stated=True)
    fitted = tmp_path / "own.safetensors"
    done = call("fit-links", known, "--columns", COLUMNS, "--out", fitted, "--json")
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["found"]["own"]["right"] > told["found"]["shipped"]["right"]

    chat = tmp_path / "chat.txt"
    chat.write_text(
        "".join(f"01/02/2024, {9 + n // 60:02}:{n % 60:02} - a{n % 7}: words of {n}\n"
                for n in range(200)), "utf-8",
    )  # fmt: skip
    for number, links in enumerate([(), ("--links", fitted), ()]):
        call("explore", chat, *links, "--model", "rejoinder-small", "--out", tmp_path / "explored",
             "--to", tmp_path / f"{number}.html", "--real-names")  # fmt: skip
        made = open_collection(tmp_path / "explored" / "index")
        apart = (made.answered == [row - 3 for row in range(200)]).mean()
        assert bool(apart > 0.7) is bool(links)
    call("extract", chat, "--links", fitted, "--rules", "none", "--out", tmp_path / "pairs")

    asked = ("suggest", "words of 100", "--model", "rejoinder-small", "--json")
    for links in ([], ["--links", fitted]):
        done = call(*asked, "--from", chat, *links)
        [found] = json.loads(done.stdout)["messages"]
        numbers = [(one["reply"].split()[-1], one["answered"].split()[-1])
                   for one in found["suggestions"]]  # fmt: skip
        assert all(int(reply) - int(message) == 3 for reply, message in numbers) is bool(links)
    index = tmp_path / "explored/index"
    assert "explore" in refused(*asked, "--from", index, "--links", fitted)


def test_another_file_is_not_a_linker(tmp_path):
    chat = write(tmp_path / "chat.jsonl", 9, stated=False)
    for command in ("explore", "extract"):
        assert "is not a linker" in refused(
            command, chat, "--links", chat, "--out", tmp_path / "out", error=ModelError
        )
    assert "200 are needed" in refused(
        "fit-links", chat, "--columns", COLUMNS, "--out", tmp_path / "x"
    )
