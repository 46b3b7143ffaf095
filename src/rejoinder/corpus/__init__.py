"""Comment dumps to message/reply pairs."""
