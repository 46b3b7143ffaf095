"""XML documents that are larger than memory, an element at a time."""

from collections.abc import Iterator
from xml.etree import ElementTree

from rejoinder.corpus.exports.files import Files
from rejoinder.errors import InputError


def xml_files(files: Files, begins: bytes) -> list[str]:
    """Returns the names of XML files that have certain bytes near their beginning."""
    return [
        name
        for name in files.names
        if (len(files.names) == 1 or name.lower().removesuffix(".gz").endswith(".xml"))
        and begins in files.head(name)[:4_000]
    ]


def xml_items(files: Files, name: str, tag: str) -> Iterator[tuple[int, ElementTree.Element]]:
    """Yields the elements of a name, numbered from 1; each is emptied before the next one.

    Raises:
        InputError: the file is not whole XML.
    """
    number = 0
    with files.open(name) as file:
        try:
            # expat itself limits what entities may grow to
            for _, element in ElementTree.iterparse(file):  # noqa: S314
                if element.tag == tag:
                    number += 1
                    yield number, element
                    element.clear()
        except (ElementTree.ParseError, ValueError, LookupError) as error:
            raise InputError(f"{files.where(name)} is not whole XML ({error}).") from None
