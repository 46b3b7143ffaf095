"""Reads dumps of comments."""
