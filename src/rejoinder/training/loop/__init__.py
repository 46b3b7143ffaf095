"""The run itself: model, steps, checkpoints, export."""
