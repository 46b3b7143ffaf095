"""Computes embeddings from a loaded model, without torch where possible."""
