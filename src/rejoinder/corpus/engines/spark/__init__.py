"""Extraction on Spark."""
