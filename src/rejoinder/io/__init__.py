"""Reads and writes files atomically; handles formats, settings, stores and Spark sessions."""
