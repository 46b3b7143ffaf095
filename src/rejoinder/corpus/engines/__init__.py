"""Engines that run the one query of extraction."""
