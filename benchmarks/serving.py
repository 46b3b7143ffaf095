"""Sentences a second and latency of `rejoinder serve` on the loopback, batching on and off.

    python benchmarks/serving.py                         # 1, 8, 64 and 512 clients
    python benchmarks/serving.py --clients 1 8 --seconds 2 --per-request 16
    python benchmarks/serving.py --clients 64 --minutes 10   # memory after each minute
    python benchmarks/serving.py --malformed 200000      # statuses, and memory before and after

Each client sends one request after another, over one connection, for some seconds. Where model2vec
is installed, a minimal FastAPI server around it is measured in the same run, with as many words and
dimensions and random vectors. Prints one JSON object.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.text.features import WordFeatures

WORDS = "how old are you what is your age where do you live i like the music of this small town"
PAGE = 4_096
CLIENTS = 20


def main() -> None:
    arguments = _arguments()
    if arguments.peer:
        _serve_peer(arguments.model)
        return
    command = [sys.executable, "-m", "rejoinder", "serve", arguments.model, "--port", "0"]
    if arguments.malformed:
        print(json.dumps(_withstood(command, arguments.malformed), indent=1))
        return
    if arguments.minutes:
        print(json.dumps(_memory_over_time(command, arguments), indent=1))
        return
    servers = {"batching": command, "no batching": [*command, "--max-batch", "1"]}
    if find_spec("model2vec"):
        peer = [sys.executable, __file__, "--peer", "--model", arguments.model]
        servers["model2vec in FastAPI"] = peer
    report = {}
    for name, words in servers.items():
        with _started(words) as (process, port):
            begin = _resident(process.pid)
            rows = []
            for clients in arguments.clients:
                used = _processor_seconds(process.pid)
                row = _measured(port, clients, arguments)
                used = _processor_seconds(process.pid) - used
                rows.append(row | {"processor_us_per_request": round(1e6 * used / row["requests"])})
            end = _resident(process.pid)
            report[name] = {"rows": rows, "resident_mb": [begin, end]}
    print(json.dumps(report, indent=1))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="rejoinder-base")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64, 512])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--per-request", type=int, default=1, help="texts of a request")
    parser.add_argument(
        "--minutes", type=int, default=0, help="follow memory for so long, with the first --clients"
    )
    parser.add_argument("--malformed", type=int, default=0, help="send that many bad requests")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


@contextmanager
def _started(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Runs a server that prints its address on standard error."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr or ():
        if "http://127.0.0.1:" in line:
            port = int(line.split("http://127.0.0.1:")[1].split()[0].rstrip("/)"))
            break
    else:
        raise SystemExit(f"{command} did not start")
    try:
        yield process, port
    finally:
        process.terminate()
        process.wait()


def _resident(process: int) -> float:
    """Returns the resident memory of a process in MB (Linux)."""
    pages = int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1])
    return round(pages * PAGE / 1e6, 1)


def _processor_seconds(process: int) -> float:
    """Returns the processor time of a process so far: it depends less on other work (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _measured(port: int, clients: int, arguments: argparse.Namespace) -> dict[str, Any]:
    latencies, seconds = asyncio.run(_load(port, clients, arguments))
    ordered = sorted(latencies)
    return {
        "clients": clients,
        "sentences_per_second": round(len(ordered) * arguments.per_request / seconds),
        "p50_ms": round(1_000 * statistics.median(ordered), 2),
        "p99_ms": round(1_000 * ordered[int(0.99 * (len(ordered) - 1))], 2),
        "requests": len(ordered),
    }


def _memory_over_time(command: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Returns the resident memory after each minute of load, in which no minute repeats a text."""
    [clients, *_] = arguments.clients
    arguments.seconds = 60.0
    with _started(command) as (process, port):
        resident, requests = [_resident(process.pid)], 0
        for minute in range(arguments.minutes):
            latencies, _ = asyncio.run(_load(port, clients, arguments, seed=minute))
            requests += len(latencies)
            resident.append(_resident(process.pid))
    return {"clients": clients, "requests": requests, "resident_mb": resident}


async def _load(
    port: int, clients: int, arguments: argparse.Namespace, seed: int = 1
) -> tuple[list[float], float]:
    """Returns the seconds of each request, and those of all together."""
    latencies: list[float] = []
    draw = np.random.default_rng(seed)
    words = WORDS.split()
    requests = [
        _request([" ".join(draw.choice(words, 12)) for _ in range(arguments.per_request)])
        for _ in range(256)
    ]
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(clients)]
    begun = time.perf_counter()
    end = begun + arguments.seconds

    async def client(
        number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while (sent := time.perf_counter()) < end:
            writer.write(requests[(number + len(latencies)) % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"refused: {head!r}")
            length = head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]
            await reader.readexactly(int(length))
            latencies.append(time.perf_counter() - sent)
        writer.close()

    await asyncio.gather(*(client(number, *streams) for number, streams in enumerate(opened)))
    return latencies, time.perf_counter() - begun


def _request(texts: list[str]) -> bytes:
    body = json.dumps({"inputs": texts}).encode()
    head = "POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _withstood(command: list[str], count: int) -> dict[str, Any]:
    """Sends bad requests of many kinds; returns how many got each status, and resident memory.

    The first tenth warms up: memory is compared from there on.
    """
    with _started(command) as (process, port):
        statuses = asyncio.run(_bad_requests(port, count // 10, seed=0))
        begin = _resident(process.pid)
        statuses += asyncio.run(_bad_requests(port, count - count // 10, seed=1))
        end = _resident(process.pid)
        alive = process.poll() is None
    return {"statuses": dict(statuses), "alive": alive, "resident_mb": [begin, end]}


async def _bad_requests(port: int, count: int, seed: int) -> Counter[str]:
    statuses: Counter[str] = Counter()
    draw = Random(seed)  # noqa: S311

    async def client(number: int) -> None:
        for _ in range(number):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(_bad_request(draw))
            writer.write_eof()
            try:
                head = await reader.read(12)
                statuses[head[9:12].decode("ascii", "replace") or "closed"] += 1
                await reader.read()
            except ConnectionError:
                statuses["reset"] += 1
            writer.close()

    await asyncio.gather(*(client(count // CLIENTS) for _ in range(CLIENTS)))
    return statuses


def _bad_request(draw: Random) -> bytes:
    """Returns raw bytes, a request whose JSON was damaged, or one with another kind of value."""
    if draw.random() < 0.2:
        return draw.randbytes(draw.randrange(1, 200))
    field, path = draw.choice(
        [("inputs", "/embed"), ("input", "/v1/embeddings"), ("message", "/rank"), ("first", "/map")]
    )
    value = draw.choice([None, 1, 1e300, [], {}, [[1]], ["a", 2], {"a": ["b"]}, "\ud800"])
    body = bytearray(json.dumps({field: value, draw.choice(["top_k", "x", field]): value}).encode())
    for _ in range(draw.randrange(4)):
        body[draw.randrange(len(body))] = draw.randrange(256)
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    length = max(0, len(body) + draw.choice([0, 0, 0, -3, 5]))
    return f"{head}Connection: close\r\nContent-Length: {length}\r\n\r\n".encode() + bytes(body)


def _serve_peer(name: str) -> None:
    """Serves a model2vec model of the same size with FastAPI, as its users do."""
    import uvicorn
    from fastapi import FastAPI
    from model2vec import StaticModel  # type: ignore[import-not-found, unused-ignore]
    from pydantic import BaseModel
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    contents = read_model(shipped_model(name))
    if not isinstance(contents.features, WordFeatures):
        raise SystemExit(f"{name} has no words to give to model2vec")
    known = ["[UNK]", *contents.features.vocabulary.words]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(known)}, unk_token="[UNK]")  # noqa: S106
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    vectors = np.random.default_rng(0).standard_normal((len(known), contents.dim))
    static = StaticModel(vectors.astype(np.float32), tokenizer, normalize=True)
    app = FastAPI()

    class Body(BaseModel):
        inputs: list[str]

    @app.post("/embed")
    def embed(body: Body) -> list[list[float]]:
        rows: list[list[float]] = static.encode(body.inputs).tolist()
        return rows

    uvicorn.run(app, port=0, access_log=False)


if __name__ == "__main__":
    main()
