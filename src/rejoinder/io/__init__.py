"""Reads and writes: files that appear whole, formats, settings, stores, Spark sessions."""
