"""How often an assistant's search finds what answers its question: LoCoMo over MCP.

    python benchmarks/agent.py ../shared/data

Each conversation is indexed as the memory of an assistant, which `rejoinder mcp` serves to the
protocol's own client. For each question the loop calls `search_messages`, without a language model,
and looks for the turns that answer it among ten messages. The score is that of
`benchmarks/memory.py`, so that bm25s and encoders can be compared (notebook/search.md).
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import anyio
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from memory import TOP, Search, scores
from rejoinder import Index
from rejoinder.corpus.texts import Entry
from rejoinder.datasets.memory import Conversation, read_conversations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    conversations = read_conversations(parser.parse_args().data, "locomo")
    print(json.dumps({"system": "search_messages", **scores(conversations, remembered)}))


def remembered(talk: Conversation) -> Search:
    """Indexes the turns of a conversation, for an assistant to search."""
    folder = tempfile.TemporaryDirectory()
    turns = [
        Entry(turn.id, turn.text, {"author": turn.author, "time": turn.time, "source": "talk"})
        for turn in talk.turns
    ]
    index = Index.create(Path(folder.name, "memory"), turns, "rejoinder-base").folder

    async def ask(questions: list[str]) -> list[list[str]]:
        program = StdioServerParameters(
            command=sys.executable, args=["-m", "rejoinder", "mcp", str(index)]
        )
        async with Client(program) as assistant:
            answers = [
                await assistant.call_tool("search_messages", {"query": question, "limit": TOP})
                for question in questions
            ]
        structures = [answer.structured_content or {} for answer in answers]
        return [[one["id"] for one in found.get("messages", [])] for found in structures]

    def search(questions: list[str]) -> list[list[str]]:
        with folder:  # which the search removes
            return anyio.run(ask, questions)

    return search


if __name__ == "__main__":
    main()
