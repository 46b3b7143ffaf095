"""Ids to sentence embeddings, in torch, for training."""
