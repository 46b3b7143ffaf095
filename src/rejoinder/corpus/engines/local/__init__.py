"""The default engine of extraction, for one machine."""
