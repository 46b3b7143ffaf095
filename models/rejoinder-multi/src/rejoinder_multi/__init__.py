"""The model `rejoinder-multi`, which rejoinder finds by its name once this is installed."""
