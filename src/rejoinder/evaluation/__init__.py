"""Evaluation of any encoder: tasks, metrics, intervals."""
