"""What the page of `rejoinder explore` takes: start, answers, memory, first paint, frames.

    python benchmarks/page.py slack-export.zip               # prepares it, unless that was done
    python benchmarks/page.py index/ --queries 50
    python benchmarks/page.py slack-export.zip --chromium /usr/bin/chromium

Starts the command, and asks it as the page does; queries are messages of what is explored, cut to
a few words. Times are medians by the clock, and means of the server's processor time. Where
playwright is installed, a Chromium without a GPU opens the page, drags the map and zooms in.
Prints a JSON object.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

WORDS = 6
STEPS, EACH = 60, 16
"""Moves of the pointer, and the milliseconds between them."""
FRAMES = """() => {
  globalThis.times = [];
  let last = performance.now();
  const next = (now) => {
    globalThis.times.push(now - last);
    last = now;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
}"""
TAKEN = "() => { const taken = globalThis.times.slice(1); globalThis.times = []; return taken; }"
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("source")
    parser.add_argument("--queries", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    chosen = parser.parse_args()
    with explored(chosen.source) as (address, number, seconds):
        found: dict[str, Any] = {"source": chosen.source, "start_s": round(seconds, 2)}
        found |= answers(address, number, chosen.queries, chosen.seed)
        found["memory_mb"] = memory(number)
        if find_spec("playwright") and chosen.chromium:
            found |= seen(address, chosen.chromium)
    print(json.dumps(found, indent=1))


@contextmanager
def explored(source: str) -> Iterator[tuple[str, int, float]]:
    """Yields the address of the page, the process, and the seconds that a second start took."""
    program = Path(sys.executable).with_name("rejoinder")
    for first in (True, False):
        begun, told = time.perf_counter(), ""
        process = subprocess.Popen(
            [program, "explore", source, "--no-browser"], stderr=subprocess.PIPE, text=True
        )
        while not (address := re.search(r"at (http://\S+)", told)):
            if not process.stderr or not (line := process.stderr.readline()):
                raise SystemExit(told)
            told += line
        seconds = time.perf_counter() - begun
        try:
            if not first:
                yield address[1], process.pid, seconds
        finally:
            process.terminate()
            process.communicate()


def memory(number: int) -> int:
    """Returns the MB in memory of a process; 0 where /proc is missing."""
    file = Path(f"/proc/{number}/statm")
    pages = int(file.read_text().split()[1]) if file.exists() else 0
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)


def processor(number: int) -> float:
    """Returns the milliseconds of processor time of a process; 0 where /proc is missing."""
    file = Path(f"/proc/{number}/stat")
    parts = file.read_text().rpartition(")")[2].split() if file.exists() else [0] * 13
    return 1e3 * (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    """The server of the page."""

    def __init__(self, address: str) -> None:
        self.connection = HTTPConnection(address.removeprefix("http://").rstrip("/"))

    def ask(self, path: str, body: object = None) -> bytes:
        """Returns the answer to a request."""
        data = None if body is None else json.dumps(body)
        method, headers = "POST" if data else "GET", {"Content-Type": "application/json"}
        self.connection.request(method, f"/{path}", data, headers)
        return self.connection.getresponse().read()

    def timed(self, path: str, body: object) -> float:
        """Returns the milliseconds until the answer was there."""
        begun = time.perf_counter()
        self.ask(path, body)
        return 1e3 * (time.perf_counter() - begun)


def answers(address: str, number: int, count: int, seed: int) -> dict[str, Any]:
    """Returns the milliseconds that answers take."""
    server = Server(address)
    corpus = json.loads(server.ask("corpus"))
    rows = np.random.default_rng(seed).integers(corpus["texts"], size=count).tolist()
    texts = [one["text"] for one in json.loads(server.ask("messages", {"rows": rows}))]
    queries = [" ".join(text.split()[:WORDS]) for text in texts]
    asked: dict[str, tuple[str, list[Any]]] = {}
    for mode in ("hybrid", "semantic", "words"):
        settings = {"mode": mode, "top_k": 25, "explain": True}
        asked[f"search, {mode}"] = "search", [{"queries": [one], **settings} for one in queries]
    asked["messages"] = "messages", [{"rows": [row]} for row in rows]
    for name in ("asked", "topics"):
        asked[name] = name, [None] * count
    asked["points"] = "points", [None] * 3
    if "suggest" in corpus["found"]:
        asked["suggest"] = "suggest", [{"message": one, "top_k": 5} for one in queries]
    found = {}
    for name, (path, bodies) in asked.items():
        first, before = server.timed(path, bodies[0]), processor(number)
        times = [server.timed(path, body) for body in bodies]
        used = (processor(number) - before) / len(bodies)
        found[name] = {
            "first": round(first, 1),
            "median": round(statistics.median(times), 1),
            "processor": round(used, 1),
        }
    return {"messages": corpus["texts"], "answers_ms": found}


def seen(address: str, chromium: str) -> dict[str, Any]:
    """Returns what a browser shows: first paint, the map, and frames, in milliseconds."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as library:
        arguments = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        browser = library.chromium.launch(executable_path=chromium, args=arguments)
        page = browser.new_page(viewport={"width": 1_280, "height": 900})
        paints = []
        for _ in range(5):
            page.goto(address, wait_until="networkidle")
            paints.append(page.evaluate(PAINT))
        begun = time.perf_counter()
        page.locator("#tab-topics").click()
        page.locator(".names span:visible").first.wait_for(timeout=120_000)
        shown = round(1e3 * (time.perf_counter() - begun))
        page.wait_for_timeout(1_000)
        page.evaluate(FRAMES)
        box = page.locator("#topics-map").bounding_box()
        if box is None:
            raise SystemExit("there is no map")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.evaluate(TAKEN)
        for step in range(STEPS):
            page.mouse.move(x + 2 * step, y + step)
            page.wait_for_timeout(EACH)
        dragging = told(page.evaluate(TAKEN))
        page.mouse.up()
        for _ in range(8):
            page.mouse.wheel(0, -200)
            page.wait_for_timeout(250)
        zooming = told(page.evaluate(TAKEN))
        browser.close()
    return {
        "first_paint_ms": round(statistics.median(paints)),
        "map_shown_ms": shown,
        "frames_dragging_ms": dragging,
        "frames_zooming_ms": zooming,
    }


def told(times: list[float]) -> dict[str, float]:
    times = sorted(times)
    return {
        "frames": len(times),
        "median": round(statistics.median(times), 1),
        "p90": round(times[int(0.9 * len(times))], 1),
    }


if __name__ == "__main__":
    main()
