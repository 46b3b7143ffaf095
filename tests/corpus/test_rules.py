"""Each rule on its boundaries, in the engine that runs it."""

import pytest

from dumps import comment, lines
from rejoinder.corpus.options import PROFILES, profile
from rejoinder.errors import InputError

OK = "This is fine, thanks"


def fate(run, body: str, rules: str = "paper", **fields) -> str:
    """What became of one comment among good ones: the rule that took it, or `kept`."""
    dump = lines(comment("a", OK), comment("b", OK, "t1_a"), comment("c", body, "t1_a", **fields))
    manifest, _ = run(dump, rules=rules)
    taken = [name for name, count in manifest.counts.dropped.items() if count]
    assert manifest.counts.kept + sum(manifest.counts.dropped.values()) == 3
    return taken[0] if taken else "kept"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "deleted"),
        (" \n ", "deleted"),
        ("[deleted]", "deleted"),
        ("[removed]", "deleted"),
        ("[deleted] by me", "kept"),
        ("&nbsp;", "deleted"),  # nothing is left of it
        ("&#x200B; \n", "deleted"),
        ("a" * 349, "kept"),
        ("a" * 350, "too_long"),
        ("é" * 349, "kept"),
        ("é" * 350, "too_long"),
        ("abcdefg123", "not_alphabetic"),  # exactly 70 %
        ("abcdefgh12", "kept"),
        ("a" * 238 + "1" * 102, "not_alphabetic"),  # exactly 70 % of 340, which no float says
        ("a" * 239 + "1" * 101, "kept"),
        ("日本語です。", "kept"),
        ("éèêëàâäïî1234", "not_alphabetic"),
        ("https is a start", "bad_start"),
        ("http is another start", "kept"),
        ("see https somewhere", "kept"),
        ("/r/tests is a place to be", "bad_start"),
        ("r/tests is a place to be", "kept"),
        ("@somebody look at this", "bad_start"),
        ("well @somebody look at this", "kept"),
    ],
)
def test_rules_of_the_paper(run, body, expected):
    assert fate(run, body) == expected


@pytest.mark.parametrize(
    ("author", "expected"),
    [
        ("bot", "bot"),
        ("HelpfulBot", "bot"),
        ("robots_r_us", "bot"),
        ("BOTANIST", "bot"),
        ("bo t", "kept"),
        ("", "kept"),
        (None, "kept"),
    ],
)
def test_bots_are_known_by_their_names(run, author, expected):
    assert fate(run, OK, author=author) == expected


@pytest.mark.parametrize(
    ("body", "author", "expected"),
    [
        ("[deleted]", "bot", "deleted"),
        ("1" * 350, "bot", "too_long"),
        ("https://1234.5678", "bot", "not_alphabetic"),
        ("https is a start", "bot", "bad_start"),
    ],
)
def test_the_first_broken_rule_counts(run, body, author, expected):
    assert fate(run, body, author=author) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [("a" * 8, "too_short"), ("a" * 9, "kept"), ("1" * 127, "kept"), ("a" * 128, "too_long")],
)
def test_rules_of_polyai(run, body, expected):
    assert fate(run, body, "polyai") == expected


@pytest.mark.parametrize(
    ("body", "expected"), [("", "deleted"), ("[removed]", "deleted"), ("1" * 999, "kept")]
)
def test_no_rules_still_drop_what_is_deleted(run, body, expected):
    assert fate(run, body, "none") == expected


def test_rules_look_at_the_text_as_published(run):
    # letters: 16 of 22 with the entities, 8 of 12 without
    assert fate(run, "&quot;Well, well&quot;") == "kept"
    assert fate(run, "&amp;" + "a" * 344) == "kept"
    assert fate(run, "&amp;" + "a" * 345) == "too_long"
    assert fate(run, " https is not at the start") == "kept"


def test_white_space_is_folded_after_the_rules(run):
    dump = lines(comment("a", " one\u00a0 two\n\nthree "), comment("b", "a  b\t c\u200b d", "t1_a"))
    _, pairs = run(dump, rules="none")
    assert pairs.select("input", "response").rows() == [("one two three", "a b c d")]


def test_an_unknown_profile_is_named():
    assert list(PROFILES) == ["paper", "polyai", "none"]
    with pytest.raises(InputError, match="did you mean 'paper'"):
        profile("papper")
