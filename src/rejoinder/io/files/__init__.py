"""Writes files atomically, by one command at a time, and checks them by hash."""
