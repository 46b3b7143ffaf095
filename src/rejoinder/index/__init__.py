"""Indexes: texts with ids and their embeddings in a folder, searched without being read."""
