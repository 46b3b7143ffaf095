"""Predicts which earlier message of a channel each message answers, if the export lacks it."""
