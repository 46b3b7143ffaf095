"""The page in a real Chromium: all parts clicked through, checked with axe-core, photographed.

With REJOINDER_SCREENSHOTS=FOLDER the screenshots are kept there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect

KEY = "a-key-that-nobody-guesses"
PARTS = ("compare", "search", "reply", "map")


@pytest.fixture(scope="module")
def address(serve):
    return serve()


def choose(page, part):
    page.get_by_role("tab", name=part.capitalize()).click()
    expect(page.locator(f"#{part}")).to_be_visible()


def score(page):
    return float(page.locator("#score").inner_text())


def hits(page, part):
    return page.locator(f"#{part}-hits .text").all_inner_texts()


def test_two_sentences_are_compared_and_examples_are_a_click_away(open_page, address):
    page = open_page(address)
    expect(page.locator("#score")).to_have_text(re.compile(r"\d\.\d"))
    same = score(page)
    expect(page.locator("#model")).to_contain_text("rejoinder-base")
    page.locator("#examples button").nth(1).click()
    expect(page.locator("#second")).to_have_value("How are you?")
    expect(page.locator("#why-table thead th")).to_have_text(["how", "are", "you", "?"])
    page.get_by_label("Second sentence").fill("Where do you live?")
    expect(page.locator("#score")).not_to_have_text(str(same))
    assert 0 <= score(page) < same <= 5
    page.get_by_label("Second sentence").fill("How old are you?")
    expect(page.locator("#score")).to_have_text("5.0")
    page.get_by_label("Second sentence").fill("")
    expect(page.locator("#score")).to_have_text("0.0")


def test_why_shows_every_pair_of_words_and_they_sum_to_the_score(open_page, address):
    page = open_page(address)
    expect(page.locator("#why-table tbody tr")).to_have_count(5)
    expect(page.locator("#why-table thead th")).to_have_text(["what", "is", "your", "age", "?"])
    cells = page.locator("#why-table tbody td").all_inner_texts()
    total = sum(float(cell.replace("−", "-")) for cell in cells)
    assert total * 5 == pytest.approx(score(page), abs=5 * len(cells) * 0.005)
    expect(page.locator("#why-words .chip").first).to_contain_text("old · age")


def test_a_list_is_ranked_while_typing(open_page, address):
    page = open_page(address)
    choose(page, "search")
    expect(page.locator("#search-hits .text").first).to_have_text("Where is my order?")
    page.get_by_label("Query").fill("")
    expect(page.locator("#search-hits li")).to_have_count(0)
    page.get_by_label("Query").press_sequentially("forgotten password", delay=20)
    expect(page.locator("#search-hits .text").first).to_have_text("I forgot my password.")
    page.get_by_label("Your list").fill("Cats purr.\nThe bank is closed.\n<b>Dogs</b> bark.\n")
    page.get_by_label("Query").fill("dog")
    expect(page.locator("#search-hits .text").first).to_have_text("<b>Dogs</b> bark.")
    expect(page.locator("#search-count")).to_have_text("3 lines")


def test_a_file_is_opened_or_dropped(open_page, address, tmp_path):
    file = tmp_path / "list.txt"
    file.write_text("The moon is full.\r\nI bought a car.\r\n", "utf-8")
    page = open_page(address)
    choose(page, "search")
    page.locator("[data-file=search-list]").set_input_files(file)
    page.get_by_label("Query").fill("automobile")
    expect(page.locator("#search-hits .text").first).to_have_text("I bought a car.")
    data = page.evaluate_handle(
        """() => { const data = new DataTransfer();
        data.items.add(new File(["Bread is baked.\\nIt snows."], "drop.txt")); return data; }"""
    )
    page.dispatch_event("[data-drop=search-list]", "drop", {"dataTransfer": data})
    expect(page.get_by_label("Your list")).to_have_value("Bread is baked.\nIt snows.")
    expect(page.locator("#search-hits li")).to_have_count(2)


CHAT = """3/1/24, 9:59 PM - Ann: Hello all,
who has a ticket for the concert?
3/1/24, 10:01 PM - Bob: <Media omitted>
3/1/24, 10:02 PM - Bob: The train is late again
"""


def test_messages_of_a_chat_say_who_wrote_them(open_page, address, tmp_path):
    (tmp_path / "Friends.txt").write_text(CHAT, "utf-8")
    page = open_page(address)
    for part, label in (("search", "Query"), ("reply", "Message")):
        choose(page, part)
        page.locator(f"[data-file={part}-list]").set_input_files(tmp_path / "Friends.txt")
        expect(page.locator(f"#{part}-list")).to_have_value(
            "Hello all, who has a ticket for the concert?\nThe train is late again"
        )
        expect(page.locator("#left-out")).to_have_text("Messages left out: 1 without text.")
        page.locator(f"#{part}").get_by_label(label).fill("who has a ticket for the concert?")
        first = page.locator(f"#{part}-hits li").first
        expect(first).to_contain_text("Hello all, who has a ticket for the concert?")
        expect(first).to_contain_text("2024-03-01 21:59 · Ann · in Friends")
        if part == "search":  # the greeting is not compared
            expect(first.locator(".value")).to_have_text("1.00")
    page.locator("#reply-list").fill("The train is late again\nanother line")
    expect(page.locator("#reply-hits li")).to_have_count(2)
    expect(page.locator("#reply-hits .about")).to_have_count(1)
    choose(page, "map")
    page.locator("[data-file=map-list]").set_input_files(tmp_path / "Friends.txt")
    expect(page.locator("#plot .dot")).to_have_count(2)


NOT_TEXTS = {
    "tickets.csv": (b"id,subject\n1,My order is late.\n", "columns="),
    "chat.json": (b'{\n "messages": [{"body": "hi"}]\n}\n', "JSON"),
    "mail.mbox": (b"From a@b Mon Jan 1\nSubject: hi\n\nbody\n", "mbox"),
    "all.txt": (b"PK\x03\x04\x14\x00\x00", "zip"),
    "old.txt": ("naïve".encode("latin-1"), "UTF-8"),
}


def test_files_without_texts_are_refused(open_page, address, tmp_path):
    page = open_page(address)
    choose(page, "search")
    expect(page.locator("#search-hits .text").first).to_have_text("Where is my order?")
    before = page.get_by_label("Your list").input_value()
    for name, (content, fact) in NOT_TEXTS.items():
        (tmp_path / name).write_bytes(content)
        page.locator("[data-file=search-list]").set_input_files(tmp_path / name)
        expect(page.locator("#fault")).to_contain_text(name)
        expect(page.locator("#fault")).to_contain_text(fact)
    assert page.get_by_label("Your list").input_value() == before


def test_the_texts_of_the_server_are_searched(open_page, serve, tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text("The moon is full.\nI bought a car.\n", "utf-8")
    page = open_page(serve("rejoinder-small", "--texts", lines))
    choose(page, "search")
    expect(page.get_by_label("the 2 texts of this server")).to_be_checked()
    page.get_by_label("Query").fill("automobile")
    expect(page.locator("#search-hits .text")).to_have_text(
        ["I bought a car.", "The moon is full."]
    )
    expect(page.locator("#search-list")).to_be_hidden()
    expect(page.locator("#snippet")).to_contain_text("/search")
    page.get_by_label("a list of yours").check()
    page.get_by_label("Query").fill("forgotten password")
    expect(page.locator("#search-hits .text").first).to_have_text("I forgot my password.")
    expect(page.locator("#snippet")).to_contain_text("/rerank")


def test_the_same_words_in_another_order_get_a_caution(open_page, address):
    page = open_page(address)
    caution = page.locator("#score-caution")
    page.get_by_label("First sentence").fill("The dog bit the man.")
    page.get_by_label("Second sentence").fill("the man bit the dog.")
    expect(page.locator("#score")).to_have_text("5.0")
    expect(caution).to_contain_text("order")
    for same in ("the dog bit the man.", "The  dog bit the man ."):
        page.get_by_label("Second sentence").fill(same)
        expect(caution).to_be_hidden()
    # sentences that are too long to be explained are compared as well
    long = "so " * 200
    page.get_by_label("First sentence").fill(f"{long}The dog bit the man.")
    page.get_by_label("Second sentence").fill(f"the man bit the dog. {long}")
    expect(caution).to_contain_text("order")
    expect(page.locator("#why-table tr")).to_have_count(0)
    expect(page.locator("#why-note")).to_contain_text("500")


def test_unknown_words_get_a_caution(open_page, address):
    page = open_page(address)
    expect(page.locator("#language")).to_contain_text("English")
    for part, label, called in [
        ("compare", "Second sentence", "second sentence"),
        ("search", "Query", "query"),
        ("reply", "Message", "message"),
    ]:
        choose(page, part)
        expect(page.locator("#unknown")).to_be_hidden()
        page.locator(f"#{part}").get_by_label(label).fill(
            "Wie kann ich meine Bestellung stornieren?"
        )
        expect(page.locator("#unknown")).to_contain_text(called)
    page.locator("#reply").get_by_label("Message").fill("How old are you?")
    expect(page.locator("#unknown")).to_be_hidden()


def test_back_and_forward_switch_tabs(open_page, address):
    page = open_page(address)
    expect(page.locator("#score")).to_have_text(re.compile(r"\d\.\d"))
    choose(page, "search")
    choose(page, "map")
    for step, part in [("back", "search"), ("back", "compare"), ("forward", "search")]:
        page.evaluate(f"history.{step}()")
        expect(page.locator(f"#{part}")).to_be_visible()
        expect(page.locator("[role=tabpanel]:visible")).to_have_count(1)
    page.reload()
    expect(page.locator("#search")).to_be_visible()


def test_the_table_of_words_scrolls_on_a_narrow_phone(open_page, address):
    page = open_page(address, width=320)
    page.get_by_label("First sentence").fill("one two three four five six seven eight nine ten")
    page.get_by_label("Second sentence").fill(
        "a sentence of ten words with unforgettable ones at last"
    )
    expect(page.locator("#why-table thead th")).to_have_count(10)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    scroll, last = page.locator(".scroll"), page.locator("#why-table thead th").last
    right = scroll.bounding_box()["x"] + scroll.bounding_box()["width"]
    assert right <= 320
    scroll.evaluate("node => node.scrollTo(node.scrollWidth, 0)")
    box = last.bounding_box()
    assert box["x"] + box["width"] <= right + 1


def test_replies_are_ranked(open_page, address):
    page = open_page(address)
    choose(page, "reply")
    expect(page.locator("#reply-hits .text").first).to_have_text("I am twenty-three.")
    page.locator("#reply").get_by_label("Message").fill("Where do you live?")
    expect(page.locator("#reply-hits .text").first).to_have_text("In a small town near Oslo.")
    assert len(hits(page, "reply")) == 10


def test_the_map_is_pointed_at_and_drawn_on(open_page, address):
    page = open_page(address)
    choose(page, "map")
    dots = page.locator("#plot .dot")
    expect(dots).to_have_count(23)
    dots.nth(3).hover()
    expect(page.locator("#tip")).to_have_text("Our parrot can talk.")
    box = page.locator("#plot").bounding_box()
    corners = [(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]
    places = [  # inside of the round corners
        (box["x"] + 8 + x * (box["width"] - 16), box["y"] + 8 + y * (box["height"] - 16))
        for x, y in corners
    ]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=8)
    page.mouse.up()
    expect(page.locator("#picked li")).to_have_count(23)
    page.get_by_role("button", name="Copy them").click()
    assert len(page.evaluate("navigator.clipboard.readText()").split("\n")) == 23
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#picked li")).to_have_count(0)
    dots.nth(3).click()
    expect(page.locator("#picked li")).to_have_text(["Our parrot can talk."])


def test_all_of_it_works_with_the_keyboard(open_page, address):
    page = open_page(address)
    expect(page.locator("#score")).to_have_text(re.compile(r"\d\.\d"))
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to the content")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#tab-compare")).to_be_focused()
    page.keyboard.press("End")
    expect(page.locator("#tab-map")).to_be_focused()
    expect(page.locator("#map")).to_be_visible()
    expect(page.locator("#plot .dot")).to_have_count(23)
    page.keyboard.press("Tab")
    expect(page.locator("#plot .dot").first).to_be_focused()
    expect(page.locator("#tip")).to_have_text("I love dogs.")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#plot .dot").first).not_to_be_focused()
    page.keyboard.press("Space")
    expect(page.locator("#picked li")).to_have_count(1)
    page.keyboard.press("Tab")
    expect(page.locator("#map-list")).to_be_focused()


def run_program(language, text, tmp_path):
    """Runs a program as the page shows it, and returns what it prints."""
    if language == "curl":
        command = ["bash", "-c", text]
    else:
        file = tmp_path / f"program.{'py' if language == 'Python' else 'mjs'}"
        file.write_text(text, "utf-8")
        command = [sys.executable if language == "Python" else "node", str(file)]
    if shutil.which(command[0]) is None:
        pytest.skip(f"there is no {command[0]}")
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("language", ["curl", "Python", "JavaScript"])
def test_the_program_shown_can_be_copied_and_run(open_page, address, tmp_path, language):
    page = open_page(address)
    page.get_by_label("First sentence").fill('It\'s "true" that null isn’t $HOME')
    expect(page.locator("#snippet")).to_contain_text("isn’t $HOME")
    page.get_by_text("About", exact=True).click()
    page.get_by_label(language, exact=True).check()
    page.locator("#copy").click()
    expect(page.locator("#copy")).to_have_text("Copied")
    text = page.evaluate("navigator.clipboard.readText()")
    assert text == page.locator("#snippet").inner_text()
    printed = run_program(language, text, tmp_path)
    cosine = re.search(r"cosine['\"]?: ?(-?[\d.e-]+)", printed)
    assert cosine, printed
    assert 5 * max(0.0, float(cosine[1])) == pytest.approx(score(page), abs=0.051)


def test_a_server_with_a_key_asks_for_it(open_page, serve):
    page = open_page(serve("rejoinder-small", REJOINDER_API_KEY=KEY))
    expect(page.locator("#key-input")).to_be_focused()
    for key in ("wrong", KEY):
        page.locator("#key-input").fill(key)
        page.keyboard.press("Enter")
        expect(page.locator("#model")).to_have_text(
            "locked" if key != KEY else re.compile("rejoinder-small")
        )
    expect(page.locator("#score")).to_have_text(re.compile(r"\d\.\d"))
    page.get_by_text("About", exact=True).click()
    assert KEY not in page.locator("#snippet").inner_text()
    assert "REJOINDER_API_KEY" in page.locator("#snippet").inner_text()


def test_the_page_says_that_the_server_is_gone(open_page, address):
    page = open_page(address)
    expect(page.locator("#score")).to_have_text(re.compile(r"\d\.\d"))
    page.context.set_offline(True)
    page.get_by_label("First sentence").fill("Are you there?")
    expect(page.locator("#fault")).to_contain_text("can't be reached")
    page.context.set_offline(False)
    page.get_by_label("First sentence").fill("Are you there again?")
    expect(page.locator("#fault")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_280, 320])
def test_axe_finds_no_fault_and_nothing_is_cut_off(
    open_page, address, axe, scheme, width, tmp_path
):
    page = open_page(address, width=width, scheme=scheme)
    expect(page.locator("#score")).to_have_text(re.compile(r"\d\.\d"))
    kept = Path(os.environ.get("REJOINDER_SCREENSHOTS", tmp_path))
    kept.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        choose(page, part)
        expect(page.locator("#snippet")).not_to_be_empty()
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        assert found == [], json.dumps(found, indent=1)[:4_000]
        inside = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert inside, f"{part} is wider than the window"
        image = kept / f"{part}-{scheme}-{width}.png"
        page.screenshot(path=image, full_page=True)
        assert image.stat().st_size > 20_000
