"""What reading a safetensors file may raise: the library has no base class of its errors."""

from safetensors import SafetensorError

UNREADABLE = (
    SafetensorError,
    OSError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    RecursionError,
    AttributeError,  # a type of numbers that NumPy lacks, such as float8
)
"""Errors of a file that is missing, damaged, foreign, or holds other tensors than are read."""
