"""Halves of surrogate pairs: Python's strings and JSON's escapes can hold them, UTF-8 can't."""


def replace_surrogates(text: str) -> str:
    r"""Joins surrogate pairs to characters and replaces every other half by U+FFFD.

    >>> replace_surrogates("a\ud83d\ude00b\udc00") == "a\U0001f600b\ufffd"
    True
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
