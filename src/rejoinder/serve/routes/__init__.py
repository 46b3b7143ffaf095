"""The server's routes: one module per interface, with its routers in `ROUTERS`."""

from rejoinder.serve.routes import openai, own, tei

ROUTERS = (tei.router, openai.router, own.router, own.index_router)
"""In the order of the OpenAPI."""
