"""One module a task."""
