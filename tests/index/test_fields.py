"""What is known about messages comes back, and is counted and filtered without the deleted ones."""

import numpy as np
import pytest

from rejoinder.errors import InputError
from rejoinder.index.fields import ASKS, ENDS, Fields, FieldsWriter
from rejoinder.index.where import conditions_of
from rejoinder.io.files.hashed import file_facts

ABOUT = [
    {"author": "Anna", "source": "general", "time": 0.0, "thread": "7"},
    {},
    {"author": "anna", "source": "help", "time": 86_400.0, "answers": "a", "link": "https://x/1"},
    {"author": "Béla", "title": "A trip"},
]


def written(folder, about):
    writer = FieldsWriter(folder)
    writer.add([], [""])  # nothing is known yet
    writer.add(about, ["Really?"] * len(about))
    names = writer.close()
    return Fields(folder, file_facts(folder, list(names)), 1 + len(about))


def test_what_is_known_comes_back(tmp_path):
    fields = written(tmp_path, ABOUT)
    assert [fields[row] for row in range(5)] == [{}, *ABOUT]


def test_texts_about_which_nothing_is_known_have_no_files(tmp_path):
    writer = FieldsWriter(tmp_path)
    writer.add([{}, {}], ["a", "b"])
    assert writer.close() == ()
    assert [*tmp_path.iterdir()] == []


def test_messages_are_counted_by_author_without_the_deleted(tmp_path):
    fields, kept = written(tmp_path, ABOUT), np.ones(5, np.bool_)
    assert fields.counts("author", kept) == {"Anna": 1, "anna": 1, "Béla": 1}
    kept[1] = False
    assert fields.counts("author", kept) == {"anna": 1, "Béla": 1}


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ({"author": "ANNA"}, [1, 3]),
        ({"author": "anna", "source": "help"}, [3]),
        ({"since": "1970-01-02"}, [3]),
        ({"until": "1970-01-02"}, [1]),
    ],
)
def test_conditions_are_met_without_regard_to_case(tmp_path, where, rows):
    fields, conditions = written(tmp_path, ABOUT), conditions_of(where)
    met = fields.passing(conditions)
    assert np.flatnonzero(met).tolist() == rows


def test_a_file_of_another_size_is_named(tmp_path):
    written(tmp_path, ABOUT)
    facts = file_facts(tmp_path, [path.name for path in tmp_path.iterdir()])
    with pytest.raises(InputError, match="fields"):
        Fields(tmp_path, facts, 9)


def test_questions_are_known(tmp_path):
    assert written(tmp_path, ABOUT[:1]).asks.tolist() == [0, ASKS | ENDS]


def test_fields_of_an_older_index_have_no_titles(tmp_path):
    written(tmp_path, ABOUT)
    kept = [("time", "<f8"), *((name, "<u4") for name in ("author", "source", "thread"))]
    whole = np.dtype([*kept, ("title", "<u4"), ("asks", "<u4")])
    rows = np.fromfile(tmp_path / "fields", whole)
    rows[[name for name, _ in kept]].astype(np.dtype(kept)).tofile(tmp_path / "fields")
    facts = file_facts(tmp_path, [path.name for path in tmp_path.iterdir()])
    fields = Fields(tmp_path, facts, 5)
    assert fields[1] == ABOUT[0]
    assert fields[4] == {"author": "Béla"}
    assert fields.asks.tolist() == [0] * 5
