"""What is written as YAML is read back by others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.models.card import yaml_text

yaml = pytest.importorskip("yaml")  # comes with the model hub's client

TEXT = st.text(st.characters(blacklist_categories=("Cs",)))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | TEXT
KEYS = st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True).filter(
    lambda key: key not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n")
)
TREES = st.recursive(
    SCALARS,
    lambda inside: (
        st.lists(inside.filter(lambda value: not isinstance(value, list)), max_size=3)
        | st.dictionaries(KEYS, inside, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, TREES, max_size=4))
def test_a_tree_is_read_back(tree):
    assert yaml.safe_load(yaml_text(tree)) == (tree or None)


def test_no_number_is_written_that_is_none():
    with pytest.raises(ValueError, match="not JSON compliant"):
        yaml_text({"value": float("nan")})
