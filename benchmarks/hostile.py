"""What hostile clients and other processes do to a server and to an index: counts, seconds, memory.

    python benchmarks/hostile.py                   # all cases
    python benchmarks/hostile.py half unread       # some of them

Prints one JSON object. `half`: 1,100 requests that are never finished, to a server that may open
1,024 files. `unread`: 200 clients that send requests for large answers and read none. `largest`:
the largest answer of /search. `writers`: an index that is opened while another process changes it.
`cut`: a served index whose files lose their ends.
"""

import argparse
import json
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from rejoinder import Index
from rejoinder.errors import RejoinderError
from rejoinder.index.files import IndexModel, Manifest
from rejoinder.index.folder import TextIndex, create_index
from rejoinder.index.segment import EncodedTexts

HALF, UNREAD, SECONDS, DIM = 1_100, 200, 30.0, 16
WORDS = "how old are you what is your age where do you live i like the music"
MODEL = IndexModel("none", "0" * 64, None, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.write:
        _write(chosen.write)
        return
    with tempfile.TemporaryDirectory() as folder:
        report = {name: CASES[name](Path(folder)) for name in chosen.cases or CASES}
    print(json.dumps(report, indent=1))


@contextmanager
def _server(log: Path, *words: object, files: int = 1_024) -> Iterator[tuple[int, int]]:
    """Runs a server that may open so many files; yields its process id and port."""
    command = [sys.executable, "-m", "rejoinder", "serve", "rejoinder-small", "--port", "0"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with log.open("wb") as errors:
        process = subprocess.Popen(
            [*command, *map(str, words)],
            stderr=errors,
            preexec_fn=limit,
        )
    try:
        while not (found := re.search(r"http://\S+:(\d+)", log.read_text("utf-8"))):
            _refuse_ended(process, log)
            time.sleep(0.05)
        yield process.pid, int(found[1])
        _refuse_ended(process, log)
    finally:
        process.kill()
        process.wait()


def _refuse_ended(process: "subprocess.Popen[bytes]", log: Path) -> None:
    if process.poll() is not None:
        raise SystemExit(f"the server ended: {log.read_text('utf-8')}")


def _megabytes(pid: int, name: str = "VmRSS") -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii").split()
    return round(int(status[status.index(f"{name}:") + 1]) / 1_000, 1)


def _health(pid: int, port: int) -> dict[str, Any]:
    """Asks for /health for some seconds: how often, failures, the slowest, the most memory."""
    end, seconds, failures, most = time.monotonic() + SECONDS, [], 0, 0.0
    while time.monotonic() < end:
        most = max(most, _megabytes(pid))
        started = time.perf_counter()
        try:
            httpx.get(f"http://127.0.0.1:{port}/health", timeout=60).raise_for_status()
        except httpx.HTTPError:
            failures += 1
        seconds.append(time.perf_counter() - started)
        time.sleep(0.1)
    return {
        "requests": len(seconds),
        "failures": failures,
        "slowest_seconds": round(max(seconds), 3),
        "most_resident_mb": most,
    }


def _half(folder: Path) -> dict[str, Any]:
    log = folder / "half.log"
    resource.setrlimit(resource.RLIMIT_NOFILE, (8_192, 8_192))
    with _server(log) as (pid, port):
        begin = _megabytes(pid)
        sockets = []
        for _ in range(HALF):
            opened = socket.create_connection(("127.0.0.1", port), timeout=30)
            opened.sendall(
                b"POST /embed HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99\r\n\r\n{"
            )
            sockets.append(opened)
        health = _health(pid, port)
        resident = _megabytes(pid)
        for opened in sockets:
            opened.close()
    return {
        "half_sent": HALF,
        "health": health,
        "log_bytes": log.stat().st_size,
        "resident_mb": [begin, resident],
    }


def _unread(folder: Path) -> dict[str, Any]:
    body = json.dumps({"inputs": ["hello"] * 2_000}).encode()
    head = f"Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    request = f"POST /embed HTTP/1.1\r\n{head}\r\n\r\n".encode() + body
    with _server(folder / "unread.log") as (pid, port):
        begin = _megabytes(pid)
        sockets = []
        for _ in range(UNREAD):
            opened = socket.create_connection(("127.0.0.1", port), timeout=30)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            opened.setblocking(False)
            with suppress(BlockingIOError):
                opened.send(request * 4)
            sockets.append(opened)
        health = _health(pid, port)
        after = _megabytes(pid)
        for opened in sockets:
            opened.close()
    return {
        "clients": UNREAD,
        "resident_mb": {"before": begin, f"after_{SECONDS:.0f}_s": after},
        "health": health,
    }


def _largest(folder: Path) -> dict[str, Any]:
    words = WORDS.split()
    draw = np.random.default_rng(0)
    lines = [" ".join(draw.choice(words, 74))[:330] for _ in range(100_000)]
    (folder / "texts.txt").write_text("\n".join(lines) + "\n", "utf-8")
    with _server(folder / "largest.log", "--texts", folder / "texts.txt") as (pid, port):
        rows = []
        for queries, top_k in ((1, 100_000), (2_000, 50), (2_000, 51)):
            before = _megabytes(pid)
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # of the peak
            started = time.perf_counter()
            answer = httpx.post(
                f"http://127.0.0.1:{port}/search",
                json={"queries": [f"{words[n % 9]} {n}" for n in range(queries)], "top_k": top_k},
                timeout=300,
            )
            rows.append(
                {
                    "queries": queries,
                    "top_k": top_k,
                    "status": answer.status_code,
                    "answer_mb": round(len(answer.content) / 1e6, 1),
                    "seconds": round(time.perf_counter() - started, 2),
                    "resident_mb": [before, _megabytes(pid, "VmHWM"), _megabytes(pid)],
                }
            )
    return {"texts": len(lines), "requests": rows}


def _rows(count: int) -> np.ndarray:
    drawn = np.random.default_rng(count).standard_normal((count, DIM)).astype(np.float32)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def _texts(name: str, count: int) -> EncodedTexts:
    names = [f"{name}-{number}" for number in range(count)]
    return EncodedTexts(names, [f"text {each}" for each in names], _rows(count))


def _write(folder: Path) -> None:
    """Changes an index for some seconds: creates, adds, updates, deletes, compacts."""
    end, turn = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        if turn % 12 == 0:
            create_index(folder, Manifest(MODEL, DIM), [_texts(f"{turn}", 50)], overwrite=True)
            index = TextIndex(folder)
        elif turn % 12 == 11:
            index.compact()
        elif turn % 3 == 0:
            index.delete([f"{turn - 1}-0"])
        else:
            index.add_encoded([_texts(f"{turn}", 20)])
        turn += 1
    print(turn)


def _writers(folder: Path) -> dict[str, Any]:
    place = folder / "changed"
    create_index(place, Manifest(MODEL, DIM), [_texts("a", 50)])
    command = [sys.executable, __file__, "--write", str(place)]
    opened, faults = 0, Counter[str]()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        while writer.poll() is None:
            opened += 1
            try:
                index = TextIndex(place)
                [hits] = index.nearest(_rows(1), 1_000)
                if len(hits) != len(index):
                    faults["hits that are not those of one state"] += 1
            except (OSError, RejoinderError) as error:
                faults[f"{type(error).__name__}: {error}"[:120]] += 1
        changes = int(writer.communicate()[0])
    return {"changes": changes, "opened_and_searched": opened, "failures": faults}


def _cut(folder: Path) -> dict[str, Any]:
    (folder / "lines.txt").write_text("\n".join(f"text {n}" for n in range(20_000)), "utf-8")
    out = folder / "index"
    Index.create(out, folder / "lines.txt", "rejoinder-small")
    statuses = Counter[str]()
    log = folder / "cut.log"
    with _server(log, "--index", out) as (_, port):

        def ask() -> int:
            body = {"queries": "text 7", "top_k": 100}
            return httpx.post(f"http://127.0.0.1:{port}/search", json=body).status_code

        for path in sorted((out / "000001").iterdir()):
            whole = path.read_bytes()
            for share in (0.999, 0.5, 0):
                with path.open("r+b") as file:
                    file.truncate(int(len(whole) * share))
                statuses[f"{path.name}: {ask()}"] += 1
                with path.open("r+b") as file:
                    file.write(whole)
                statuses[f"written again: {ask()}"] += 1
    return {"statuses": statuses, "log_bytes": log.stat().st_size}


CASES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "half": _half,
    "unread": _unread,
    "largest": _largest,
    "writers": _writers,
    "cut": _cut,
}

if __name__ == "__main__":
    main()
