"""Pairs to a run: configuration, batches, loop, checkpoints."""
