"""Strings to ids, for a whole batch at a time."""
