"""The page of `rejoinder explore` in a real Chromium: search, filters, conversations, keyboard."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from playwright.sync_api import expect

ROOT = Path(__file__).parents[3]
SHOTS = "REJOINDER_SCREENSHOTS"


@pytest.fixture(scope="module")
def address(serve, tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    export = folder / "slack-export.zip"
    subprocess.run([sys.executable, ROOT / "examples/slack_export.py", export], check=True)
    return serve(export, "--no-browser", command="explore")


@pytest.fixture
def page(open_page, address):
    page = open_page(address)
    expect(page.locator("#find-facts")).to_contain_text("6 channels")
    expect(page.locator("#find-facts")).to_contain_text(re.compile("^Slack, [0-9,]+ files, 9,"))
    return page


def search(page, query):
    page.get_by_role("searchbox", name="Search").fill(query)
    expect(page.locator("#find-note")).to_contain_text("ms")


def texts(page):
    return page.locator("#find-hits .text").all_inner_texts()


def test_messages_are_found_while_typing_and_say_who_wrote_them(page):
    expect(page.locator("#find-start")).to_be_visible()
    page.get_by_role("searchbox", name="Search").press_sequentially("trouble sleeping", delay=20)
    first = page.locator("#find-hits > li").first
    expect(first.locator(".text")).to_contain_text("sleep")
    expect(first.locator("mark.level-3")).to_have_text("sleep")
    expect(first.locator(".byline b")).not_to_be_empty()
    expect(first.locator(".byline time")).to_contain_text("2020")
    expect(page.locator("#find-start")).to_be_hidden()
    page.get_by_role("searchbox", name="Search").fill("")
    expect(page.locator("#find-start")).to_be_visible()


def test_the_page_says_what_a_misspelt_word_is_read_as(page):
    search(page, "my pasword")
    expect(page.locator("#find-note")).to_contain_text("Reads pasword as password")
    search(page, "my password")
    expect(page.locator("#find-note")).not_to_contain_text("Reads")


def test_a_search_that_fails_leaves_no_hits_of_another(page):
    search(page, "trouble sleeping")
    page.route("**/search", lambda route: route.fulfill(status=422, json={"error": "No such."}))
    page.get_by_role("searchbox", name="Search").fill("something to read")
    expect(page.locator("#fault")).to_contain_text("No such")
    expect(page.locator("#find-hits > li")).to_have_count(0)
    expect(page.locator("#find-note")).to_be_empty()


def test_messages_that_say_the_same_are_folded(page):
    search(page, "trouble sleeping")
    before = page.locator("#find-hits > li").count()
    page.locator(".same").first.click()
    assert page.locator("#find-hits > li").count() > before


def test_filters_narrow_the_search(page):
    search(page, "a book")
    page.get_by_label("Channel").select_option("TeaAndToast")
    expect(page.locator("#find-hits .place").first).to_have_text("#TeaAndToast")
    assert {*page.locator("#find-hits .place").all_inner_texts()} == {"#TeaAndToast"}
    page.get_by_label("Author").fill("old_map")
    page.get_by_label("Author").press("Enter")
    expect(page.locator("#find-hits .byline b").first).to_have_text("old_map")
    page.get_by_label("From", exact=True).fill("2020-11-01")
    page.get_by_label("To", exact=True).fill("2020-11-30")
    times = page.locator("#find-hits time")
    expect(times.filter(has_not_text="Nov 2020")).to_have_count(0)
    expect(times.first).to_be_visible()
    assert "author=old_map" in page.evaluate("location.hash")
    page.reload()
    expect(page.get_by_label("Author")).to_have_value("old_map")
    expect(page.locator("#find-hits .byline b").first).to_have_text("old_map")
    page.get_by_role("button", name="Clear").click()
    expect(page.get_by_label("Author")).to_have_value("")
    page.get_by_label("Author").fill("old_mop")
    page.get_by_label("Author").press("Enter")
    expect(page.locator("#fault")).to_contain_text("did you mean 'old_map'")
    expect(page.locator("#find-hits > li")).to_have_count(0)
    expect(page.locator("#find-note")).to_be_empty()
    expect(page.locator("#find-more")).to_be_hidden()


def test_modes_compare_meaning_and_words(page):
    search(page, "automobile")
    page.get_by_label("Words", exact=True).check()
    expect(page.locator("#find-note")).to_contain_text("by meaning")
    page.get_by_label("Meaning", exact=True).check()
    expect(page.locator("#find-hits > li").first).to_be_visible()


def test_the_conversation_of_a_message_is_read(page):
    search(page, "something to read")
    here = page.locator("#find-thread .here")
    expect(here.locator(".text")).to_have_text(texts(page)[0])
    assert page.locator("#find-thread .thread > li").count() > 1
    page.locator("#find-hits .conversation").nth(1).click()
    expect(here.locator(".text")).to_have_text(texts(page)[1])


def test_more_like_one_and_why(page):
    search(page, "something to read")
    page.locator(".because").first.click()
    expect(page.locator(".reasons .chip").first).to_contain_text("read · read")
    page.locator(".alike").first.click()
    expect(page.locator("#find-liked")).to_be_visible()
    expect(page.locator("#snippet")).to_contain_text("index.nearest")
    page.get_by_role("button", name="Search instead").click()
    expect(page.locator("#find-start")).to_be_visible()


def copied(page, language):
    """What is copied as a program in a language."""
    page.get_by_text("About", exact=True).click()
    page.get_by_label(language, exact=True).check()
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    return page.evaluate("navigator.clipboard.readText()")


def run(command, folder):
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": path},
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("language", ["Command", "Python", "curl"])
def test_what_was_done_is_copied_as_a_program(page, tmp_path, language):
    search(page, 'it\'s a "book"')
    page.get_by_label("Author").fill("old_map")
    page.get_by_label("Author").press("Enter")
    expect(page.locator("#find-hits .byline b").first).to_have_text("old_map")
    best = texts(page)[0]
    program = copied(page, language)
    command = [sys.executable, "-c"] if language == "Python" else ["bash", "-c"]
    assert best in run([*command, program], tmp_path)


@pytest.mark.parametrize(("part", "command"), [("topics", "cluster"), ("suggest", "suggest")])
def test_each_part_names_its_command_and_its_python(open_page, address, part, command):
    page = open_page(f"{address}/#{part}")
    if part == "suggest":
        page.get_by_role("textbox", name="Message").fill("Is the bus late?")
    expect(page.locator("#snippet")).to_contain_text(f"rejoinder {command}", timeout=60_000)
    page.get_by_text("About", exact=True).click()
    page.get_by_label("Python", exact=True).check()
    compile(page.locator("#snippet").inner_text(), part, "exec")
    expect(page.locator("#snippet")).to_contain_text("rejoinder")


def test_messages_are_walked_by_keyboard(page):
    search(page, "something to read")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#find-hits > li").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    second = page.locator("#find-hits > li").nth(1)
    expect(second).to_be_focused()
    expect(second).to_have_class(re.compile("open"))
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Search")).to_be_focused()


def test_a_conversation_opens_below_its_message_on_a_phone(open_page, address):
    page = open_page(f"{address}/#find?q=something+to+read", width=390)
    page.locator("#find-hits .conversation").first.click()
    expect(page.locator("#find-hits .inline .here")).to_be_visible()
    page.locator("#find-hits .conversation").first.click()
    expect(page.locator("#find-hits .inline")).to_have_count(0)


def test_an_index_of_lines_has_no_filters(open_page, serve, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("The moon is full.\nI bought a car.\n", "utf-8")
    page = open_page(serve(lines, "--no-browser", "-m", "rejoinder-small", command="explore"))
    search(page, "automobile")
    assert texts(page)[0] == "I bought a car."
    expect(page.locator("#find-filters")).to_be_hidden()
    expect(page.locator(".conversation")).to_have_count(0)
    expect(page.locator(".alike")).to_have_count(2)


def test_questions_that_were_asked_again_are_read_and_saved(open_page, address):
    page = open_page(f"{address}/#asked")
    asked = page.locator("#asked-list > li")
    expect(asked.first.locator(".question .text")).to_contain_text("?")
    assert int(asked.first.locator(".times b").inner_text()) > 5
    for first in asked.all():
        if not first.locator("details[open]").count():
            first.locator("summary").click()
        if first.get_by_role("button", name="More replies").count():
            break
    expect(first.locator(".replies li")).to_have_count(3)
    first.get_by_role("button", name="More replies").click()
    assert first.locator(".replies li").count() > 3
    first.get_by_role("button", name="Copy").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == first.locator(".replies .text").first.inner_text()
    page.get_by_role("searchbox", name="Filter", exact=True).fill("cactus")
    expect(page.locator("#asked-note")).to_have_text(re.compile(r"^\d questions?, asked"))
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    header, *rows = saved.value.path().read_text("utf-8").splitlines()
    assert header.startswith('"question","times"')
    assert len(rows) == page.locator("#asked-list > li").count()
    assert "cactus" in rows[0]
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as Markdown").click()
    text = saved.value.path().read_text("utf-8")
    assert re.search(r"^## .*cactus.*$", text, re.MULTILINE)
    assert re.search(r"^> \w", text, re.MULTILINE)
    page.get_by_role("searchbox", name="Filter", exact=True).fill("nobody asked this")
    expect(page.locator("#asked-note")).to_contain_text("No question")
    expect(page.get_by_role("button", name="Save as CSV")).to_be_disabled()


HOSTILE = (
    '=HYPERLINK("http://other.example","Why?")', "+1 what is it?", "-2 or\\ -3?", "@SUM(1) why?",
    "\t=1+1 is what?", "\r=1+1 is what?", "＝1+1 is what?",
    "![Why?](http://other.example/a.png)", "<img src=http://other.example/b.png> &lt; why?",
    "[Why?](http://other.example) and [here][1]?", "# Why?", "1. Why `x` *y* __z__ ~~w~~?",
    "Why?\r\r# Because\n===\n\n    [1]: http://other.example\n| a | b |\n|---|---|\n1) no $x$",
)  # fmt: skip


def test_saved_questions_run_nothing_and_load_nothing(open_page, address):
    """Spreadsheets run cells as formulas, and Markdown loads pictures, whoever wrote them."""

    def answer(route):
        reply = {"author": "Ann", "time": 0, "count": 1}
        known = {"count": 2, "authors": 1, "first": 0, "last": 0, "ways": [], "ids": []}
        route.fulfill(
            json=[
                {"id": "1", "text": text, "replied": 1, "replies": [{**reply, "text": text}]}
                | known
                for text in HOSTILE
            ]
        )

    page = open_page(address)
    page.route("**/asked", answer)
    page.goto(f"{address}/#asked")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    _, *rows = csv.reader(io.StringIO(saved.value.path().read_bytes().decode(), newline=""))
    for text, row in zip(HOSTILE, rows, strict=True):
        assert row[0] == row[6]
        assert row[0] == (f"'{text}" if HOSTILE.index(text) < 7 else text)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as Markdown").click()
    text = saved.value.path().read_bytes().decode()
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    kinds = {part.type for token in tokens for part in (token, *(token.children or ()))}
    ours = {
        f"{kind}_{end}"
        for kind in ("heading", "paragraph", "blockquote", "em")
        for end in ("open", "close")
    }
    assert kinds <= ours | {"inline", "text", "softbreak"}
    shown = ["".join(part.content for part in token.children or ()) for token in tokens]
    questions = [shown[at + 1] for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert questions[1:] == [" ".join(text.split()) for text in HOSTILE]


def test_a_question_is_searched_for(open_page, address):
    page = open_page(f"{address}/#asked")
    question = page.locator(".question .text").first.inner_text()
    page.get_by_role("link", name="Search for it").first.click()
    expect(page.get_by_role("searchbox", name="Search")).to_have_value(question)
    expect(page.locator("#find-hits > li").first).to_contain_text(question, ignore_case=True)


def drawn(page):
    """Opens the map, and returns its box."""
    expect(page.locator(".names span:visible").first).to_be_visible(timeout=20_000)
    return page.locator("#topics-map").bounding_box()


def test_topics_are_chosen_on_the_map_or_in_the_list(open_page, address):
    page = open_page(f"{address}/#topics")
    drawn(page)
    expect(page.locator("#topics-note")).to_contain_text("topics in 9,392 messages")
    boxes = [name.bounding_box() for name in page.locator(".names span:visible").all()]
    for at, box in enumerate(boxes):
        for other in boxes[:at]:
            apart = (
                box["x"] >= other["x"] + other["width"]
                or other["x"] >= box["x"] + box["width"]
                or box["y"] >= other["y"] + other["height"]
                or other["y"] >= box["y"] + box["height"]
            )
            assert apart, "two names overlap"
    page.get_by_label("Filter topics").fill("hamster")
    topic = page.locator("#topics-list li:not(.wider) button").first
    topic.click()
    expect(page.locator("#topics-detail .topic-name")).to_contain_text(
        topic.locator(".name").inner_text()
    )
    expect(page.locator("#topics-detail .chart rect").first).to_be_visible()
    expect(page.locator("#topics-detail .thread li").first).to_be_visible()
    page.get_by_role("button", name="All topics").click()
    expect(page.locator("#topics-list")).to_be_visible()
    page.get_by_role("button", name="Whole map").click()
    page.wait_for_timeout(500)  # the map moves
    name = page.locator(".names span:visible").first
    words = name.inner_text()
    name.click()
    expect(page.locator("#topics-detail .topic-name")).to_contain_text(words)


def test_messages_are_drawn_around_and_pointed_at(open_page, address):
    page = open_page(f"{address}/#topics")
    box = drawn(page)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    for step in range(60):  # somewhere there is a dot
        page.mouse.move(box["x"] + 60 + 8 * step, box["y"] + box["height"] / 2 + step % 7)
        if page.locator("#topics-tip .byline").count():
            break
    expect(page.locator("#topics-tip .byline b")).not_to_be_empty()
    page.get_by_role("button", name="Draw around").click()
    corners = [(0.2, 0.2), (0.8, 0.2), (0.8, 0.8), (0.2, 0.8), (0.2, 0.2)]
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()
    expect(page.locator("#topics-detail h3")).to_have_text(re.compile("[1-9],?[0-9]* messages"))
    expect(page.locator("#topics-detail .thread li")).to_have_count(30)
    expect(page.get_by_role("button", name="Draw around")).to_have_attribute(
        "aria-pressed", "false"
    )


def test_the_map_is_moved_by_keyboard(open_page, address):
    page = open_page(f"{address}/#topics")
    drawn(page)
    page.locator("#topics-map").focus()
    before = page.locator(".names span:visible").all_inner_texts()
    for key in ("+", "+", "ArrowRight", "ArrowUp"):
        page.keyboard.press(key)
    expect(page.locator(".names span:visible")).not_to_have_text(before)
    page.keyboard.press("0")
    expect(page.locator(".names span:visible")).to_have_text(before)


def test_replies_are_suggested_and_copied(open_page, address):
    page = open_page(f"{address}/#suggest")
    page.get_by_role("textbox", name="Message").fill("Why does my car not start?")
    best = page.locator("#suggest-list > li").first
    expect(best.locator(".text")).not_to_be_empty(timeout=60_000)
    expect(best.locator(".confidence .value")).to_have_text(re.compile(r"\d+ %"))
    expect(best.locator(".answered")).to_contain_text("car")
    best.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == best.locator(".text").inner_text()
    expect(page.locator("#snippet")).to_contain_text("rejoinder suggest")
    page.get_by_label("Only replies by").select_option("old_map")
    expect(page.locator("#suggest-list .byline b").first).to_have_text("old_map", timeout=60_000)
    assert {*page.locator("#suggest-list .byline b").all_inner_texts()} == {"old_map"}
    page.locator("#suggest-examples button").first.click()
    expect(page.get_by_role("textbox", name="Message")).not_to_have_value(
        "Why does my car not start?"
    )
    page.get_by_role("textbox", name="Message").fill("")
    expect(page.locator("#suggest-list > li")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_280, 390])
def test_axe_finds_no_fault_in_what_is_explored(open_page, address, axe, scheme, width, tmp_path):
    page = open_page(f"{address}/#find?q=something+to+read", width=width, scheme=scheme)
    expect(page.locator("#find-hits > li").first).to_be_visible()
    page.get_by_text("About", exact=True).click()
    expect(page.locator("#snippet")).to_be_visible()
    page.evaluate(axe)
    assert page.evaluate("axe.run()")["violations"] == []
    page.keyboard.press("Escape")
    expect(page.locator("#snippet")).to_be_hidden()
    page.locator(".because").first.click()
    page.locator(".conversation").nth(1).click()
    expect(page.locator(".here")).to_be_visible()
    page.evaluate(axe)
    found = page.evaluate("axe.run()")["violations"]
    assert found == [], json.dumps(found, indent=1)[:4_000]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    kept = Path(os.environ.get(SHOTS, tmp_path))
    kept.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=kept / f"explore-{scheme}-{width}.png")
    parts = ("asked", ".text"), ("topics", ".names span:visible"), ("suggest", ".tries button")
    for part, ready in parts:
        page.locator(f"#tab-{part}").click()
        expect(page.locator(f"#{part} {ready}").first).to_be_visible(timeout=20_000)
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert found == [], json.dumps(found, indent=1)[:4_000]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=kept / f"{part}-{scheme}-{width}.png")


def test_long_names_of_authors_fit_on_a_phone(open_page, address):
    page = open_page(f"{address}/#suggest", width=390)
    page.get_by_label("Only replies by").evaluate(
        "node => node.append(new Option('somebody-with-a-long-name@lists.example.org (1,234)'))"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


LEVELS = """async ([count, wide]) => {
const { levelAt, levelsOf } = await import("./page/levels.js");
const place = (index, prime) => wide * (((index * prime) % 1009) / 504.5 - 1);
const x = Float32Array.from({ length: count }, (_, index) => place(index, 7));
const y = Float32Array.from({ length: count }, (_, index) => place(index, 613));
const levels = levelsOf(x, y);
return [[0, 1, 2, 3, 4].map((one) => levels.filter((level) => level === one).length),
[1.3, 1, 0.5, 0.25, 0.125, 0.02].map(levelAt)];
}"""


def test_few_dots_of_a_crowd_are_drawn_until_it_is_looked_at_closely(open_page, address):
    page = open_page(address)
    assert page.evaluate(LEVELS, [1, 0.5])[0] == [1, 0, 0, 0, 0]
    # all in one cell of the first level
    assert page.evaluate(LEVELS, [500, 1e-4])[0][0] <= 4
    counts, at = page.evaluate(LEVELS, [1_009, 0.02])
    assert counts[0] < counts[0] + counts[1] < sum(counts[:3]) <= sum(counts[:4]) == 1_009
    assert at == [0, 0, 1, 2, 3, 3]
    assert page.evaluate(LEVELS, [1_009, 0.02])[0] == counts
    most = page.evaluate(LEVELS, [200_000, 0.9])[0]
    assert (sum(most[:4]), most[4]) == (150_000, 50_000)


MAILS = 12
LONG = "We moved the printers to another room last week. " * 12


@pytest.fixture(scope="module")
def mails(serve, tmp_path_factory):
    """The address of a page of long mails with answers."""
    box = tmp_path_factory.mktemp("mails") / "list.mbox"
    text = ""
    for number in range(MAILS):
        for kind in ("q", "a"):
            answers = f"In-Reply-To: <q{number}@x>\n" if kind == "a" else ""
            body = (
                f"{LONG}How do I install the driver number {number}? {LONG}"
                if kind == "q"
                else f"Run the setup program of version {number}.0 and restart."
            )
            text += (
                f"From a@x Thu Jan  1 00:00:00 2015\nFrom: {kind}{number} <{kind}{number}@x>\n"
                f"Date: Thu, {number + 1} Jan 2015 0{int(kind == 'a')}:00:00 +0000\n"
                f"Subject: Driver {number}\nMessage-ID: <{kind}{number}@x>\n{answers}\n{body}\n\n"
            )
    box.write_text(text, "utf-8")
    return serve(box, "--no-browser", "-m", "rejoinder-small", command="explore")


def test_of_each_thread_one_mail_is_shown(open_page, mails):
    page = open_page(mails)
    search(page, "install the driver")
    cards = page.locator("#find-hits > li")
    expect(cards.nth(1)).to_be_visible()
    threads = [one[1:] for one in cards.evaluate_all("all => all.map((one) => one.dataset.id)")]
    assert len(set(threads)) == len(threads) > 5
    cards.first.locator(".same").click()
    expect(cards).to_have_count(len(threads) + 1)


def test_scores_are_shown_only_in_the_order_of_the_hits(page):
    search(page, "something to read")
    expect(page.locator("#find-hits .byline").first).to_be_visible()
    expect(page.locator("#find-hits .meter")).to_have_count(0)
    page.get_by_label("Meaning", exact=True).check()
    expect(page.locator("#find-hits .meter").first).to_be_visible()
    scores = [float(one) for one in page.locator("#find-hits .meter .value").all_inner_texts()]
    assert len(scores) > 5
    assert scores == sorted(scores, reverse=True)
    page.get_by_label("Words", exact=True).check()
    expect(page.locator("#find-hits .meter")).to_have_count(0)


@pytest.mark.parametrize(("width", "height"), [(1_400, 900), (390, 844)])
def test_hits_begin_in_the_upper_third_and_are_folded(open_page, mails, width, height):
    page = open_page(f"{mails}/#find?q=install+the+driver", width=width)
    first = page.locator("#find-hits > li").first
    expect(first).to_be_visible()
    assert first.bounding_box()["y"] < height / 3
    card = page.locator("#find-hits > li").filter(has_text="Answered by").first
    text = card.locator(".text")
    line = text.evaluate("node => parseFloat(getComputedStyle(node).lineHeight)")
    assert text.bounding_box()["height"] <= 3 * line + 1
    mark = text.locator("mark.level-3").first.bounding_box()
    assert mark["y"] + mark["height"] <= text.bounding_box()["y"] + 3 * line + 3
    expect(card.locator(".replied")).to_contain_text(re.compile(r"^Answered by a\d+: Run the"))
    card.get_by_role("button", name="Show all").click()
    assert text.bounding_box()["height"] > 5 * line
    card.get_by_role("button", name="Show less").click()
    assert text.bounding_box()["height"] <= 3 * line + 1
    short = page.locator("#find-hits > li").filter(has_not_text="Answered by").first
    expect(short.get_by_role("button", name="Show all")).to_be_hidden()


def test_filters_unfold_on_a_phone(open_page, address):
    page = open_page(f"{address}/#find?q=something+to+read", width=390)
    expect(page.get_by_label("Channel")).to_be_hidden()
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Channel").select_option("TeaAndToast")
    page.get_by_label("Words", exact=True).check()
    expect(page.locator("#find-hits .place").first).to_have_text("#TeaAndToast")


def hash_of(page):
    return page.evaluate("decodeURIComponent(location.hash)")


def test_back_leads_to_each_thing_that_was_shown(open_page, mails):
    page = open_page(mails)
    search(page, "install the driver")
    begin = hash_of(page)
    assert begin == "#find?q=install+the+driver"
    here = page.locator("#find-thread .here")
    expect(here).to_be_visible()
    second = page.locator("#find-hits > li").nth(1)
    second.get_by_role("button", name="Conversation").click()
    expect(second).to_have_class(re.compile("open"))
    opened = hash_of(page)
    assert "open=" in opened
    second.get_by_role("button", name="More like this").click()
    expect(page.locator("#find-liked")).to_be_visible()
    like = hash_of(page)
    assert "like=" in like
    page.reload()
    expect(page.locator("#find-like")).to_contain_text("We moved the printers")
    page.get_by_role("tab", name="Topics").click()
    page.go_back()
    expect(page.locator("#find-liked")).to_be_visible()
    assert hash_of(page) == like
    page.go_back()
    expect(page.locator("#find-liked")).to_be_hidden()
    expect(page.locator("#find-hits > li").nth(1)).to_have_class(re.compile("open"))
    assert hash_of(page) == opened
    page.go_back()
    expect(page.locator("#find-hits > li").first).to_have_class(re.compile("open"))
    assert hash_of(page) == begin
    page.go_back()
    expect(page.locator("#find-start")).to_be_visible()
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("")
    page.goto(f"{mails}/#find?open=q3@x")
    expect(here).to_contain_text("driver number 3")


SAID = [
    ("Ann", "My printer does not print at all, does anybody know why?", None),
    ("Cem", "Who wants to bake a cake for Friday?", None),
    ("Bob", "Ann: is the printer plugged in, and is the driver installed?", None),
    ("Dee", "Cem: I can bake a chocolate cake, if you buy the eggs.", None),
    ("Ann", "Bob: it is plugged in. How do I install the driver?", None),
    ("Cem", "Dee: great, I will buy the eggs and the butter tomorrow.", None),
    ("Eve", "Good morning everybody!", None),
    ("Bob", "Run the setup program from the disc.", 5),
    ("Dee", "Cem: thanks, and sugar, please.", None),
    *[("Eve", f"I am on the train number {number} now.", None) for number in range(12)],
    ("Ann", "It prints again, thank you!", 8),
]
"""Who says what in a chat, and the number of the message that it says it answers."""
EXCHANGE = [SAID[at][1] for at in (0, 2, 4, 7, 21)]


@pytest.fixture(scope="module")
def chat(serve, tmp_path_factory):
    """The address of a page of a chat, in which the model tells some links."""
    messages = [
        {"id": number, "type": "message", "date_unixtime": str(1_600_000_000 + 30 * number),
         "from": author, "from_id": f"user{author}", "text": text,
         **({"reply_to_message_id": answers} if answers else {})}
        for number, (author, text, answers) in enumerate(SAID, 1)
    ]  # fmt: skip
    export = {"name": "Friends", "type": "private_group", "id": 7, "messages": messages}
    file = tmp_path_factory.mktemp("chat") / "result.json"
    file.write_text(json.dumps(export), "utf-8")
    return serve(file, "--no-browser", command="explore")


def test_an_exchange_stands_out_of_its_channel(open_page, chat):
    page = open_page(f"{chat}/#find?open=7/5")
    thread = page.locator("#find-thread")
    linked = thread.locator("li.linked")
    expect(linked.locator(".text")).to_have_text(EXCHANGE)
    labels = [
        "probably answers Ann", "probably answers Bob", "answers Ann", "answers Bob",
    ]  # fmt: skip
    expect(linked.locator(".answers")).to_have_text(labels)
    expect(thread.locator(".here .text")).to_have_text(EXCHANGE[2])
    lines = linked.evaluate_all("all => all.map((one) => getComputedStyle(one).borderLeftStyle)")
    assert lines == ["solid", "dashed", "dashed", "solid", "solid"]
    other = thread.locator("li").filter(has_text="Who wants to bake")
    colours = [one.evaluate("one => getComputedStyle(one).color") for one in (other, linked.first)]
    assert colours[0] != colours[1]
    only = thread.get_by_role("button", name="Only this exchange")
    expect(only).to_have_attribute("aria-pressed", "false")
    only.focus()
    page.keyboard.press("Space")
    expect(only).to_have_attribute("aria-pressed", "true")
    expect(only).to_be_focused()
    expect(thread.locator("li:visible .text")).to_have_text(EXCHANGE)
    assert hash_of(page) == "#find?open=7/5&only=1"
    page.go_back()
    expect(only).to_have_attribute("aria-pressed", "false")
    expect(other).to_be_visible()
    page.go_forward()
    expect(only).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(thread.locator("li:visible .text")).to_have_text(EXCHANGE)


def test_a_message_alone_has_no_exchange_to_show(open_page, chat):
    page = open_page(f"{chat}/#find?open=7/7&only=1")
    thread = page.locator("#find-thread")
    expect(thread.locator("li:visible .text")).to_have_count(11)
    expect(thread.locator(".exchange")).to_have_count(0)
    expect(thread.locator(".mixed")).to_have_count(0)


def test_a_thread_is_one_exchange(open_page, mails):
    page = open_page(f"{mails}/#find?open=a3@x&only=1")
    thread = page.locator("#find-thread")
    expect(thread.locator("li .text")).to_have_count(2)
    expect(thread.locator(".exchange, .mixed, .answers")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_400, 390])
def test_axe_finds_no_fault_in_an_exchange(open_page, chat, axe, scheme, width):
    page = open_page(f"{chat}/#find?open=7/5", width=width, scheme=scheme)
    only = page.get_by_role("button", name="Only this exchange")
    for _ in range(2):
        expect(page.locator(".mixed .linked").first).to_be_visible()
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert found == [], json.dumps(found, indent=1)[:4_000]
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        only.click()


def test_filters_of_questions_and_topics_are_in_the_address(open_page, address):
    page = open_page(f"{address}/#asked?q=cactus&open=1")
    expect(page.get_by_label("Without a reply")).to_be_checked()
    expect(page.get_by_role("searchbox", name="Filter", exact=True)).to_have_value("cactus")
    page.get_by_label("Without a reply").uncheck()
    assert hash_of(page) == "#asked?q=cactus"
    page.go_back()
    expect(page.get_by_label("Without a reply")).to_be_checked()
    page.goto(f"{address}/#topics")
    page.locator("#topics-list li:not(.wider) button").first.click()
    expect(page.locator("#topics-detail .topic-name")).to_be_visible()
    name, topic = page.locator("#topics-detail .topic-name").inner_text(), hash_of(page)
    assert "topic=" in topic
    page.go_back()
    expect(page.locator("#topics-list")).to_be_visible()
    page.goto(f"{address}/{topic}")
    page.reload()
    expect(page.locator("#topics-detail .topic-name")).to_have_text(name)


def test_warnings_do_not_move_the_field(page):
    search(page, "something to read")
    field = page.get_by_role("searchbox", name="Search")
    before = field.bounding_box()
    field.fill("Wie kann ich meine Bestellung stornieren?")
    expect(page.locator("#unknown")).to_be_visible()
    assert field.bounding_box() == before
    assert page.locator("#unknown").bounding_box()["y"] < 900


def test_a_search_begins_when_typing_rests(page):
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    page.get_by_role("searchbox", name="Search").press_sequentially("a good book", delay=60)
    expect(page.locator("#find-note")).to_contain_text("ms")
    assert sum(url.endswith("/search") for url in sent) == 1


def test_a_colleague_opens_the_address_with_the_key_or_a_link_in_a_chat(open_page, serve, tmp_path):
    export = tmp_path / "slack-export.zip"
    subprocess.run([sys.executable, ROOT / "examples/slack_export.py", export], check=True)
    given = serve(export, "--no-browser", "--host", "0.0.0.0", command="explore")  # noqa: S104
    plain = given.partition("?")[0]
    page = open_page(plain)
    expect(page.locator("#key")).to_be_visible()
    page.goto(given)
    expect(page).to_have_url(f"{plain}#find")
    for part in ("find", "asked", "topics", "suggest"):
        page.locator(f"#tab-{part}").click()
        expect(page.locator(f"#{part}")).to_be_visible()
        expect(page.locator("#fault")).to_be_hidden()
    page.locator("#tab-find").click()
    search(page, "trouble sleeping")
    page.locator("#corner > summary").click()
    expect(page.locator("#snippet")).not_to_be_empty()
    page.get_by_role("button", name="Copy", exact=True).first.click()
    expect(page.locator("#copy")).to_have_text("Copied")
    elsewhere = page.context.new_page()  # strict cookies are not sent with what others open
    elsewhere.goto(f"data:text/html,<a href={plain}>here</a>")
    elsewhere.get_by_text("here").click()
    expect(elsewhere.locator("#find-facts")).to_contain_text("6 channels")
