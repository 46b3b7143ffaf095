"""Indexes: folders of texts, ids and embeddings, searched without reading them whole."""
