"""The board in a real Chromium, opened as a file, offline."""

import pytest
from playwright.sync_api import expect

from noisy import PAIRS, Noisy
from rejoinder.api.evaluation import evaluate
from rejoinder.evaluation.board import write_board
from rejoinder.evaluation.intervals import holm
from rejoinder.evaluation.report import compare

NOISE = {"good": 0.02, "alike": 0.021, "middling": 0.3, "bad": 1.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    for name in NOISE:
        evaluate(Noisy(name, NOISE[name]), "graded", data=PAIRS, out=folder / f"{name}.json")
        evaluate(Noisy(name, NOISE[name]), "contrasts/names", out=folder / f"{name}.json")
    return [folder / f"{name}.json" for name in NOISE]


@pytest.fixture(scope="module")
def address(files):
    return write_board(files, files[0].parent / "board").as_uri()


def ranks(page):
    rows = page.locator("#board tbody tr").all()
    return {row.locator("td").nth(0).inner_text(): row.locator("td").nth(1).inner_text()
            for row in rows}  # fmt: skip


def test_ranks_are_intervals_by_the_tests_of_compare(open_page, address, files):
    page = open_page(f"{address}#c=graded%2Fcosine+all")
    pairs = [(one, other) for place, one in enumerate(files) for other in files[place + 1 :]]
    tasks = [compare(*pair).tasks for pair in pairs]
    graded = [next(task for task in found if task.task.startswith("graded")) for found in tasks]
    apart = [p < 0.05 for p in holm([task.p for task in graded])]
    expect(page.locator("#tested")).to_contain_text(f"Told apart at 0.05: {sum(apart)}.")
    assert ranks(page) == {"good": "1–2", "alike": "1–2", "middling": "3", "bad": "4"}


def test_choices_are_in_the_address_and_a_number_tells_its_command(open_page, address):
    page = open_page(address)
    page.locator("#choose summary").click()
    page.get_by_label("contrasts/names test").uncheck()
    expect(page.locator("#board thead")).not_to_contain_text("contrasts/names")
    page.get_by_label("plot against").select_option("memory")
    again = open_page(page.url)
    expect(again.locator("#board thead")).not_to_contain_text("contrasts/names")
    expect(again.get_by_label("plot against")).to_have_value("memory")
    expect(again.locator("#plot circle")).to_have_count(4)
    again.locator("#board tbody tr").first.locator("td button").first.click()
    expect(again.locator("#about")).to_be_visible()
    expect(again.locator("#about")).to_contain_text("95 % interval")


def test_limits_leave_out_encoders_and_their_pairs(open_page, address):
    page = open_page(address)
    expect(page.locator("#tested")).to_contain_text("Pairs tested, with Holm's correction: 6.")
    page.get_by_label("MB on disk").fill("30")
    page.get_by_label("MB on disk").press("Enter")
    expect(page.locator("#board tbody tr")).to_have_count(0)  # none of them is in files
    expect(page.locator("#tested")).to_contain_text("No two encoders")
