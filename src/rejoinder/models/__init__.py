"""The model folder: write, read, check."""
