"""A real Chromium, Firefox and axe-core for the tests of the page.

Needs Chromium (Debian's package `chromium`, or REJOINDER_CHROMIUM), Firefox (Debian's package
`firefox-esr`, or REJOINDER_FIREFOX) and, for axe-core, npm.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from websockets.sync.client import connect

AXE = "axe-core@4.14.1"
sys.path.insert(0, str(Path(__file__).parents[2]))  # modules of the other tests
CHROMIUM = os.environ.get("REJOINDER_CHROMIUM") or shutil.which("chromium")
FIREFOX = (
    os.environ.get("REJOINDER_FIREFOX") or shutil.which("firefox-esr") or shutil.which("firefox")
)
NO_NETWORK = {
    "network.proxy.type": 1, "network.proxy.no_proxies_on": "",
    "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9,
}  # fmt: skip
"""Settings of Firefox by which all requests go to a port where nobody answers."""


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium (apt-get install chromium)")
    with sync_playwright() as library:
        # a root user, as in a container, has no sandbox
        arguments = ["--no-sandbox"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
        chromium = library.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser):
    """Opens the page. No message, error or request to another host is allowed."""
    contexts, faults = [], []

    def run(address, *, width=1_280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
            has_touch=width < 500,
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda line: faults.append(line.text))
        origin = re.match(r"http://[^/]+|file://[^#]+", address)[0]
        page.on(
            "request",
            lambda request: None if request.url.startswith(origin) else faults.append(request.url),
        )
        page.goto(address)
        return page

    yield run
    for context in contexts:
        context.close()
    # the browser itself logs the tests of a wrong key, of other files, and of a lost network; and
    # that drawing without a GPU is slow, and that an address of the network has no TLS
    known = re.compile(
        "status of (401|422)|ERR_INTERNET_DISCONNECTED|GL Driver Message|Opener-Policy header"
    )
    assert [fault for fault in faults if not known.search(fault)] == []


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The source of axe-core, from npm."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm, which axe-core comes from")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        ["npm", "pack", AXE], cwd=folder, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"npm does not give {AXE}: {packed.stderr[-200:]}")
    [archive] = folder.glob("axe-core-*.tgz")
    with tarfile.open(archive) as opened:
        return opened.extractfile("package/axe.min.js").read().decode()


class Firefox:
    """A page of Firefox without a network, by WebDriver BiDi."""

    def __init__(self, socket):
        self._socket, self._count, self.requests = socket, 0, []
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["network.beforeRequestSent"])
        self._page = self.call("browsingContext.getTree")["contexts"][0]["context"]

    def call(self, method, **parameters):
        self._count += 1
        call = {"id": self._count, "method": method, "params": parameters}
        self._socket.send(json.dumps(call))
        while (answer := json.loads(self._socket.recv(timeout=60))).get("id") != self._count:
            self.requests.append(answer["params"]["request"]["url"])
        assert answer["type"] == "success", answer
        return answer["result"]

    def open(self, address):
        self.call("browsingContext.navigate", context=self._page, url=address, wait="complete")

    def run(self, script):
        """Returns what an expression gives, as JSON."""
        answer = self.call(
            "script.evaluate", expression=f"JSON.stringify({script})",
            target={"context": self._page}, awaitPromise=True,
        )  # fmt: skip
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])


@pytest.fixture
def firefox(tmp_path):
    if FIREFOX is None:
        pytest.skip("there is no Firefox (apt-get install firefox-esr)")
    lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in NO_NETWORK.items()]
    (tmp_path / "user.js").write_text("\n".join(lines))
    command = [FIREFOX, "--headless", "--no-remote", "--profile", tmp_path]
    command += ["--remote-debugging-port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = next(
                filter(None, (re.search(r"BiDi listening on (\S+)", one) for one in process.stderr))
            )
            with connect(f"{address[1]}/session", max_size=None, proxy=None) as socket:
                yield Firefox(socket)
        finally:
            process.terminate()
