"""The server's routes: one module per interface, each with a router in `ROUTERS`."""

from rejoinder.serve.routes import corpus, openai, own, tei

ROUTERS = (tei.router, openai.router, own.router, corpus.router)
"""In the order of the OpenAPI."""
