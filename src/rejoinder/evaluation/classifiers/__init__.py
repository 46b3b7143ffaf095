"""Classifiers and models of grades: fast ones, and SentEval's."""
