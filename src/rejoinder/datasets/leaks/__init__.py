"""Finds sentences of evaluation sets in training text by their hashes, without the sets."""
