"""Embeddings to a loss."""
