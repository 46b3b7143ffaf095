"""Halves of surrogate pairs never survive, and other text is never changed."""

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.io.formats.text_lines import replace_surrogates

ANY = st.text(st.sampled_from("a\ud800\udbff\udc00\udfff\U0001f600é"))


@given(ANY)
def test_the_result_can_be_encoded(text):
    clean = replace_surrogates(text)
    clean.encode("utf-8")
    assert replace_surrogates(clean) == clean


@given(st.text(st.characters(codec="utf-8")))
def test_text_without_halves_stays(text):
    assert replace_surrogates(text) == text
