"""Indexes: folders of texts, ids and embeddings, searched without loading all of them."""
