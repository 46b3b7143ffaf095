"""Writing files whole or not at all, by one command at a time, and checking them by hash."""
