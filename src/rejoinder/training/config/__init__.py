"""The config of a run: its keys, their bounds, the shipped ones."""
