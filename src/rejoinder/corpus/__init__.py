"""Extracts message/reply pairs from dumps of comments, and reads such pairs."""
