"""The HTTP server: other people's interfaces and our own, in front of one `SentenceEncoder`."""
