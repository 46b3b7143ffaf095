"""Tools of assistants, by the client of the protocol's own library: real processes and servers."""

import json
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from export_samples import slack, write
from rejoinder.conversations.explore import explore
from rejoinder.corpus.texts import Entry
from rejoinder.index.indexing import Index
from rejoinder.serve.app import create_app
from rejoinder.serve.mcp import TOOLS, Archive, http_app
from serving import running_app

PROGRAM = Path(sys.executable).with_name("rejoinder")
MODEL = "rejoinder-small"
MOST_BYTES = 16_000
LONG = "The old bridge over the river was closed again. " * 900


def entry(number, text, author="Mira Holt", **about):
    return Entry(str(number), text, {"author": author, "time": 1.7e9 + 60 * number, **about})


ENTRIES = [
    entry(1, "Which train goes to the harbour?", source="travel"),
    entry(2, "The night train at ten.", "Theo Park", source="travel", answers="1"),
    entry(3, "Thanks, I will take it.", source="travel", answers="2"),
    entry(4, LONG, "Theo Park", source="works"),
    *(entry(n, f"Report {n}: {'bridge ' * 300}", "Bot", source="works") for n in range(5, 45)),
]


@pytest.fixture(scope="module")
def chats(tmp_path_factory):
    return Index.create(tmp_path_factory.mktemp("chats") / "chats", ENTRIES, MODEL).folder


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    export = write(slack.FILES, tmp_path_factory.mktemp("team") / "team")
    explore(export, model=MODEL)
    return export


def over_stdio(*archives):
    words = ["mcp", *map(str, archives)]
    return Client(StdioServerParameters(command=str(PROGRAM), args=words))


@asynccontextmanager
async def over_http(address, **headers):
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as web,
        Client(streamable_http_client(f"{address}/mcp", http_client=web)) as client,
    ):
        yield client


async def ask(client, tool, **arguments):
    """Calls a tool. Returns the structure of its answer, or the sentence of its error."""
    result = await client.call_tool(tool, arguments)
    [content] = result.content
    as_json = json.dumps(result.structured_content, ensure_ascii=False)
    assert max(len(content.text.encode()), len(as_json.encode())) <= MOST_BYTES
    if not result.is_error:
        return result.structured_content
    assert "\n" not in content.text
    return content.text


def ids_of(answer):
    return [one["id"] for one in answer["messages"]]


def run(test, server):
    async def main():
        async with server as client:
            await test(client)

    anyio.run(main)


@pytest.mark.slow
def test_a_process_searches_several_archives_and_sees_their_changes(chats, team, tmp_path):
    more = Index.create(tmp_path / "more", ["The ferry to the harbour is late."], MODEL)

    async def test(client):
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() == TOOLS.keys()
        for tool in tools.values():
            assert tool.annotations.read_only_hint
            assert tool.output_schema["type"] == "object"
        found = await ask(client, "search_messages", query="how do I get to the harbour", limit=50)
        assert {one["archive"] for one in found["messages"][:2]} == {"chats", "more"}
        more.add([("new", "Ships leave the harbour at noon.")])
        assert "new" in ids_of(await ask(client, "search_messages", query="ships", archive="more"))

        found = await ask(client, "search_messages", query="billing", context=2)
        best = found["messages"][0]
        assert (best["archive"], best["about"]["author"]) == ("team", "Ann")
        read = await ask(client, "read_conversation", id=best["id"])
        assert ids_of(read)[0] == best["id"]
        assert "since today" in read["messages"][1]["text"]

        described = (await ask(client, "describe_archive"))["archives"]
        assert [one["name"] for one in described] == ["chats", "team", "more"]
        assert described[0]["authors"] == ["Bot (40)", "Mira Holt (2)", "Theo Park (2)"]
        assert "Slack" in described[1]["read"]
        assert described[2]["messages"] == 2

    run(test, over_stdio(chats, team, more.folder))


@pytest.mark.slow
def test_archives_of_one_name_are_told_apart(tmp_path):
    texts = {"mine": "The tea is green.", "yours": "The tea is black."}
    both = [Index.create(tmp_path / one / "index", [texts[one]], MODEL).folder for one in texts]

    async def test(client):
        said = await ask(client, "read_conversation", id="1")
        assert all(str(folder) in said for folder in both)
        read = await ask(client, "read_conversation", id="1", archive=str(both[1]))
        assert read["messages"][0]["text"] == texts["yours"]
        found = await ask(client, "search_messages", query="tea", context=5)
        assert len(found["messages"]) == 2

    run(test, over_stdio(*both))


def test_conditions_narrow_a_search_and_neighbours_are_shown(chats):
    async def test(client):
        search = "search_messages"
        found = await ask(client, search, query="train", author="theo park", mode="words")
        assert ids_of(found) == ["2"]
        found = await ask(client, search, query="train", channel="travel", until="2023-11-15")
        assert set(ids_of(found)) <= {"1", "2", "3"}
        found = await ask(client, search, query="train", since="2023-11-15")
        assert found["note"]
        found = await ask(client, search, query="night train", limit=1, context=1)
        [hit] = found["messages"]
        assert [one["id"] for one in (*hit["before"], *hit["after"])] == ["1", "3"]
        similar = await ask(client, "find_similar_messages", id=2, limit=2)
        assert "2" not in ids_of(similar)
        replies = await ask(client, "suggest_replies", message="Is there a train to the harbour?")
        assert replies["messages"][0]["text"] == "The night train at ten."
        assert replies["messages"][0]["about"]["to"] == "Which train goes to the harbour?"

    run(test, over_stdio(chats))


@pytest.mark.slow
def test_answers_are_short_and_what_is_left_out_can_be_read(chats):
    async def test(client):
        cursor, seen, calls = 0, [], 0
        while cursor is not None:
            found = await ask(
                client, "search_messages", query="bridge", channel="works", limit=50, cursor=cursor
            )
            seen += ids_of(found)
            cursor, calls = found.get("next_cursor"), calls + 1
        assert sorted(seen, key=int) == [str(number) for number in range(4, 45)]
        assert calls > 2

        cursor, text = 0, ""
        while cursor is not None:
            read = await ask(client, "read_conversation", id="4", before=0, after=0, cursor=cursor)
            text += re.sub(r"… \[[\d,]+ more characters\]$", "", read["messages"][0]["text"])
            cursor = read.get("next_cursor")
        assert text == LONG

        read = await ask(client, "read_conversation", id="20", before=50, after=50)
        shown = [*map(int, ids_of(read))]
        assert shown == [*range(min(shown), max(shown) + 1)]
        assert (20 in shown, f"{41 - len(shown)} more" in read["note"]) == (True, True)

    run(test, over_stdio(chats))


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("search_messages", {"query": "train", "author": "Mira"}, "mira holt"),
        ("search_messages", {"query": "train", "author": "Theo Parc"}, "theo park"),
        ("search_messages", {"query": "train", "since": "yesterday"}, "yesterday"),
        ("search_messages", {"query": "train", "top_k": 3}, "limit"),
        ("search_messages", {"query": "train", "limit": 51}, "limit"),
        ("search_messages", {}, "query"),
        ("search_messages", {"query": ""}, "query"),
        ("search_messages", {"query": "from:ann"}, "from:ann"),
        ("search_messages", {"query": "train", "archive": "chat"}, "chats"),
        ("read_conversation", {"id": "none"}, "none"),
        ("read_conversation", {"id": 1}, "first and chats"),
        ("find_similar_messages", {"id": "none"}, "none"),
        ("suggest_replies", {"message": "Hello?", "author": "theo"}, "theo park"),
        ("search", {"query": "train"}, "search_messages"),
    ],
)
def test_a_fault_is_one_sentence(chats, tmp_path, tool, arguments, named):
    first = Index.create(tmp_path / "first", ["Hello there."], MODEL).folder

    async def test(client):
        assert named in await ask(client, tool, **arguments)

    run(test, over_http_of([Archive(first), Archive(chats)]))


@asynccontextmanager
async def over_http_of(archives):
    with served(archives[-1], archives) as address:
        async with over_http(address) as client:
            yield client


@contextmanager
def served(main, archives):
    """Serves an archive, and others for assistants."""
    from rejoinder.index.indexing import place_of_model
    from rejoinder.models.folder import read_model

    model = read_model(place_of_model(main.index))
    app = create_app(model, index=main.index, assistants=http_app(archives))
    with running_app(app) as server:
        yield server.address


@pytest.mark.slow
def test_a_server_asks_assistants_for_its_key(chats, tmp_path):
    key = "a-key-of-mine"
    (tmp_path / "key").write_text(key)
    words = [PROGRAM, "mcp", chats, "--port", "0", "--api-key-file", tmp_path / "key"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        [address] = re.findall(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        for headers in ({}, {"Authorization": "Bearer another-key"}):
            answer = httpx.post(f"{address}/mcp", json={}, headers=headers, trust_env=False)
            assert answer.status_code == 401

        async def test(client):
            assert "2" in ids_of(await ask(client, "search_messages", query="a night train"))

        run(test, over_http(address, Authorization=f"Bearer {key}"))
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_signal_ends_a_process_that_waits_for_input(chats):
    words = [PROGRAM, "mcp", chats]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


@pytest.mark.slow
@pytest.mark.shared_data
def test_a_real_export_is_searched(shared_data, tmp_path):
    export = shared_data / "exports" / "telegram" / "BIG_20A_5475M.json"
    chat = Index.create(tmp_path / "chat", export, MODEL).folder

    async def test(client):
        [about] = (await ask(client, "describe_archive"))["archives"]
        found = await ask(client, "search_messages", query="hello", mode="semantic", context=3)
        assert about["messages"] > 5_000
        assert "fit" in found["note"] or len(found["messages"]) == 10
        author = found["messages"][0]["about"]["author"]
        found = await ask(client, "search_messages", query="hello", author=author)
        assert {one["about"]["author"] for one in found["messages"]} <= {author}
        read = await ask(client, "read_conversation", id=found["messages"][0]["id"], after=50)
        assert found["messages"][0]["id"] in ids_of(read)

    run(test, over_stdio(chat))
