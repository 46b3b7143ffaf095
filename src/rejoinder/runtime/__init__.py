"""Encoding without torch: SentenceEncoder, search."""
