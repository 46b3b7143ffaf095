"""`rejoinder explore --to`: one file from a disk in Chromium and Firefox, without any network."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    export, file = folder / "slack-export.zip", folder / "archive.html"
    subprocess.run([sys.executable, ROOT / "examples/slack_export.py", export], check=True)
    program = Path(sys.executable).with_name("rejoinder")
    subprocess.run([program, "explore", export, "--to", file], check=True)
    return file


@pytest.fixture
def page(browser, archive):
    """The page of the file. No message, error or request is allowed."""
    context = browser.new_context(offline=True)
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda line: faults.append(line.text))
    page.on("request", lambda request: faults.append(request.url))
    page.goto(archive.as_uri())
    expect(page.locator("#find-facts")).to_contain_text("9,392 messages")
    yield page
    context.close()
    known = archive.as_uri(), "GL Driver Message"  # that drawing without a GPU is slow
    assert [fault for fault in faults if not any(one in fault for one in known)] == []


def test_a_search_finds_messages_and_shows_their_conversation(page):
    page.get_by_role("searchbox", name="Search").fill("my pasword")
    expect(page.locator("#find-note")).to_contain_text("Reads pasword as password")
    page.get_by_role("searchbox", name="Search").fill("trouble sleeping")
    first = page.locator("#find-hits > li").first
    expect(first.locator("mark.level-3")).to_have_text("sleep")
    first.get_by_role("button", name="Why?").click()
    expect(first.locator(".reasons")).to_contain_text("sleeping · sleep")
    expect(page.locator("#find-thread .here")).to_contain_text("sleep")
    first.get_by_role("button", name="More like this").click()
    expect(page.locator("#find-liked")).to_be_visible()
    expect(page.locator("#find-hits > li").nth(2)).to_be_visible()
    page.get_by_role("searchbox", name="Search").fill("from:nobody tea")
    expect(page.locator("#fault")).to_contain_text("nobody")
    page.reload()
    expect(page.locator("#find-query")).to_have_value("from:nobody tea")


def test_it_has_questions_and_topics_and_says_what_it_lacks(page):
    assert page.locator("[role=tab]:visible").all_inner_texts() == [
        "Search",
        "Asked again",
        "Topics",
    ]
    page.get_by_role("tab", name="Asked again").click()
    expect(page.locator("#asked-list > li").first).to_be_visible()
    page.get_by_role("tab", name="Topics").click()
    expect(page.locator("#topics-map canvas").first).to_be_attached()
    page.locator("#topics-list button").first.click()
    expect(page.locator("#topics-detail")).to_be_visible()
    assert page.locator("main > section:visible").count() == 1
    page.locator("#corner summary").click()
    expect(page.locator("#served")).to_contain_text("Suggested replies need the program")


HITS = """[...document.querySelectorAll("#find-hits > li")].slice(0, 10).map(one =>
    one.textContent)"""


def test_firefox_finds_what_chromium_chromium_finds(page, firefox):
    page.get_by_role("searchbox", name="Search").fill("a good book to read")
    expect(page.locator("#find-hits > li").nth(9)).to_be_visible()
    expected = page.evaluate(HITS)
    firefox.open(page.url)  # which has the search
    until = time.monotonic() + 30
    while (found := firefox.run(HITS)) != expected and time.monotonic() < until:
        time.sleep(0.2)
    assert found == expected
    assert {url.partition(":")[0] for url in firefox.requests} <= {"file", "data", "blob"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_fault(page, axe, scheme):
    page.emulate_media(color_scheme=scheme)
    page.get_by_role("searchbox", name="Search").fill("trouble sleeping")
    expect(page.locator("#find-hits mark.level-3").first).to_be_visible()
    page.evaluate(axe)
    for tab in ("Search", "Asked again", "Topics"):
        page.get_by_role("tab", name=tab).click()
        assert page.evaluate("axe.run()")["violations"] == [], tab
