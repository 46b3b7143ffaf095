"""Notes on data sets that don't have the published number of rows. They are scored all the same."""

from collections.abc import Mapping

from rejoinder.datasets.catalogue import official_rows


def row_notes(name: str, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Returns a sentence for each split whose number of rows is not the published one.

    Args:
        name: id of the data set in the catalogue.
        counts: number of rows that were read, by split.

    >>> row_notes("sick", {"train": 299, "test": 4927})
    ('train of sick has 299 rows, and 4,500 were published: the scores are of another set',)
    """
    notes = []
    for split, count in counts.items():
        published = official_rows(name, split)
        if published not in (None, count):
            notes.append(
                f"{split} of {name} has {count:,} rows, and {published:,} were published: the "
                "scores are of another set"
            )
    return tuple(notes)
