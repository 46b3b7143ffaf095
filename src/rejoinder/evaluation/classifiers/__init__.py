"""Classifiers and regressions on frozen embeddings, trained as in SentEval."""
