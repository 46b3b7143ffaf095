"""Word vectors of the training text, as first rows of the table."""
