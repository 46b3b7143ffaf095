"""The model folder: writing, reading and checking it."""
