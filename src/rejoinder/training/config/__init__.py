"""The config of a run: its keys, their bounds, and the shipped configs."""
