"""Turns sentences into token ids, a whole batch at a time."""
