"""Readers of labelled data: a path to typed rows."""
