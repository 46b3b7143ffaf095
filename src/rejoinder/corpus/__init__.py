"""Extraction of message/reply pairs from dumps of comments, and reading of such pairs."""
