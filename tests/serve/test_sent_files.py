"""Files that a client sends: their texts, and what they may not cost."""

import base64
import gzip
import io
import shutil
import signal
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from export_samples import slack, write
from serving import running
from tiny_models import dan_model


def sent(server, name, content):
    body = {"name": name, "content": base64.b64encode(content).decode()}
    return server.client.post("/texts", json=body)


CHAT = (
    "3/1/24, 9:59 PM - Ann: Hello all,\nwho has a ticket?\n"
    "3/1/24, 10:01 PM - Bob: <Media omitted>\n"
)


def test_texts_of_a_file_are_read(server, tmp_path):
    assert sent(server, "a.txt", b"one\ntwo\n").json() == {
        "texts": [{"id": None, "text": text, "core": None, "about": {}} for text in ("one", "two")],
        "more": False,
        "left_out": {},
    }
    answer = sent(server, "C:\\chats\\Friends.txt", CHAT.encode()).json()
    [message] = answer["texts"]
    assert (message["text"], message["core"]) == (
        "Hello all,\nwho has a ticket?",
        "who has a ticket?",
    )
    assert message["about"].items() >= {"author": "Ann", "source": "Friends"}.items()
    assert answer["left_out"] == {"empty": 1}
    write(slack.FILES, tmp_path / "slack")
    packed = Path(shutil.make_archive(str(tmp_path / "slack"), "zip", tmp_path / "slack"))
    answer = sent(server, "slack.zip", packed.read_bytes()).json()
    assert {one["about"]["source"] for one in answer["texts"]} == {"help"}
    lines = b"line\n" * 3_000
    answer = sent(server, "../../lines.txt.gz", gzip.compress(lines)).json()
    assert (len(answer["texts"]), answer["more"]) == (2_048, True)


HOSTILE = (
    b"From: a@b.example\nDate: Fri, 1 Mar 2024 10:00:00 +0000\nContent-Type: text/html\n\n<p "
    + b" ".join(b"a%d" % number for number in range(80_000))
    + b">"
)
"""A mail whose HTML takes a parser a minute, in which no other thread of its process can work."""


def test_a_file_that_takes_long_holds_up_nobody(server):
    reader = server.service.files
    reader.seconds, usual = 2, reader.seconds
    try:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(sent, server, "a.eml", HOSTILE)
            healthy = [server.client.get("/health").status_code]
            while not answer.done():
                healthy.append(server.client.get("/health").status_code)
        assert answer.result().status_code == 422
        assert "a.eml takes more than 2 seconds to read" in answer.result().json()["error"]
        assert len(healthy) > 9
        assert set(healthy) == {200}
    finally:
        reader.seconds = usual
    assert sent(server, "a.txt", b"one\n").json()["texts"][0]["text"] == "one"


def test_a_stopped_server_ends_the_process_that_reads():
    with running(dan_model()) as server:
        assert sent(server, "a.txt", b"one\n").status_code == 200
        worker = server.service.files._worker
        assert worker.poll() is None
    assert worker.poll() == -signal.SIGKILL


def bomb():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("general/2024-01-01.json", b'[{"ts": "1"' + b" " * (40 << 20) + b"}]")
    return buffer.getvalue()


def tar():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("general/2024-01-01.json"))
    return buffer.getvalue()


REFUSED = {
    "a.json": (b'{"a":\n 1}\n', "JSON"),
    "a.zip": (b"PK\x03\x04\x14\x00\x00", "zip"),
    "a.txt": ("naïve".encode("latin-1"), "UTF-8"),
    "a.parquet": (b"PAR1", "a.parquet"),
    "a.txt.gz": (gzip.compress(b"a" * (12 << 20) + b"\n", 1) * 5, "characters"),
    "..": (b"", "file"),
    "/etc/": (b"", "etc"),
    "team.zip": (bomb(), "more bytes"),
    "team.tar": (tar(), "team.tar"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_can_not_be_read_are_refused(server, name):
    content, said = REFUSED[name]
    answer = sent(server, name, content)
    assert answer.status_code == 422
    assert said in answer.json()["error"]
    assert "rejoinder-" not in answer.json()["error"]
