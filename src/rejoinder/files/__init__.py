"""Files on disk: written whole or not at all, by one command at a time, and checked by hash."""
