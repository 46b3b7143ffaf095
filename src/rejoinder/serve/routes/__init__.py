"""The server's routes: one module per interface, each with a router in `ROUTERS`."""

from rejoinder.serve.routes import corpus, explored, openai, own, page, tei

ROUTERS = (tei.router, openai.router, own.router, corpus.router, explored.router, page.router)
"""In the order of the OpenAPI."""
