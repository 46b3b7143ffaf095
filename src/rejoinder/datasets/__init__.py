"""Readers of labelled data, from a path to typed rows."""
