"""Rows of words near those of their regular forms."""

import pytest

from rejoinder.training.initial_rows import inflection_links, regular_forms

VOCABULARY = ["the", "peel", "peeling", "ran", "peels", "bus", "buses", "th", "thing", "bused"]


@pytest.mark.parametrize(
    ("word", "forms"),
    [
        ("peel", {"peels", "peeling", "peeled"}),
        ("stop", {"stops", "stopping", "stopped"}),
        ("make", {"makes", "making"}),
        ("carry", {"carries", "carrying", "carried"}),
        ("play", {"plays", "playing", "played"}),
        ("watch", {"watches", "watching", "watched"}),
        ("fix", {"fixes", "fixing", "fixed"}),
    ],
)
def test_forms_by_rule_have_the_right_ones_among_them(word, forms):
    assert forms <= set(regular_forms(word))


def test_lemmas_and_forms_that_have_rows_are_linked_in_both_directions():
    links = inflection_links(VOCABULARY, ["peel", "peel", "bus", "th", "unknown", "of a"], 9)
    found = {(VOCABULARY[i], VOCABULARY[j]) for i, j in zip(*links.nonzero(), strict=True)}
    pairs = {("peel", "peeling"), ("peel", "peels"), ("bus", "buses")}  # bused has no row
    assert found == pairs | {(form, lemma) for lemma, form in pairs}
    assert links.max() == 1


def test_without_forms_there_are_no_links():
    links = inflection_links(VOCABULARY, ["ran"], len(VOCABULARY))
    assert (links.shape, links.nnz) == ((10, 10), 0)
