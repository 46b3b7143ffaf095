"""Losses: pure functions of embeddings, in torch."""
