"""A real Chromium and axe-core for the tests of the page.

Needs Chromium (Debian's package `chromium`, or REJOINDER_CHROMIUM) and, for axe-core, npm.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

AXE = "axe-core@4.14.1"
sys.path.insert(0, str(Path(__file__).parents[2]))  # modules of the other tests
CHROMIUM = os.environ.get("REJOINDER_CHROMIUM") or shutil.which("chromium")


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
