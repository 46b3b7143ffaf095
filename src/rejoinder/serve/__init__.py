"""The HTTP server: TEI, OpenAI and our own routes for one `SentenceEncoder`."""
