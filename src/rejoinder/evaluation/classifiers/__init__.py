"""Learners of classifiers and grades: fast ones, and SentEval's own."""
