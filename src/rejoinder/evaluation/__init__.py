"""The judge: tasks, metrics, intervals, for anything that encodes."""
