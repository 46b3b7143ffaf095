"""The model `rejoinder-research`, which rejoinder finds by its name once this is installed."""
