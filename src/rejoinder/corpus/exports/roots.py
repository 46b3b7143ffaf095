"""The first message of each thread, by the numbers of messages: tens of millions of them."""

from array import array

_PAGE = 1 << 12
_LARGEST = 1 << 31


class Roots:
    """Numbers of threads by numbers of messages, in four bytes each.

    >>> roots = Roots()
    >>> roots.add(8, to=7)
    >>> roots.add(9, to=8)
    >>> roots.of(9), roots.of(5)
    (7, 5)
    """

    def __init__(self) -> None:
        self._pages: dict[int, array[int]] = {}

    def add(self, number: int, to: int) -> None:
        """Adds a message that answers another."""
        root = self.of(to)
        if 0 <= number < _LARGEST and 0 < root < _LARGEST:
            page = self._pages.setdefault(number // _PAGE, array("i", bytes(4 * _PAGE)))
            page[number % _PAGE] = root

    def of(self, number: int) -> int:
        """Returns the root of a message, as far as it is known: itself, if nothing is."""
        page = self._pages.get(number // _PAGE)
        return (page[number % _PAGE] if page else 0) or number
