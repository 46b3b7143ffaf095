"""A run: its model, steps, checkpoints and export."""
