"""Amounts of memory and time as people write them."""

import re

from rejoinder.errors import InputError


def parse_bytes(memory: str, option: str = "`memory`") -> float:
    """Returns the bytes of an amount of memory.

    >>> parse_bytes("800MB"), parse_bytes("1.5 GiB")
    (800000000.0, 1610612736.0)

    Raises:
        InputError: it is not an amount.
    """
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)B", memory)
    if amount is None:
        raise InputError(f"{option} {memory!r} is not an amount; write it as 2GB or 800MB.")
    number, unit, binary = amount.groups()
    power = " KMGT".index(unit)
    return float(number) * float((1024 if binary else 1000) ** power)


def parse_duration(text: str, option: str) -> float:
    """Returns the seconds of a length of time.

    >>> parse_duration("90s", "--within"), parse_duration("10m", "--within")
    (90.0, 600.0)

    Raises:
        InputError: it is not a length of time.
    """
    amount = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text)
    if amount is None:
        raise InputError(f"{option} {text!r} is not a length of time; write it as 90s, 10m or 2h.")
    number, unit = amount.groups()
    return float(number) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[unit]
