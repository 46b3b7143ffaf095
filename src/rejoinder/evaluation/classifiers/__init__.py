"""Classifiers on frozen embeddings, as SentEval trains them."""
