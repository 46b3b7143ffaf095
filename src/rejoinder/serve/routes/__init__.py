"""The routes of the server: one module for each interface, one line each in `MODULES`."""

from fastapi import APIRouter

from rejoinder.registry import resolve

MODULES = (
    "rejoinder.serve.routes.tei",
    "rejoinder.serve.routes.openai",
    "rejoinder.serve.routes.own",
    "rejoinder.serve.routes.page",
)
"""Modules with an `APIRouter` called `router`. Earlier ones come first in the OpenAPI."""


def all_routers() -> list[APIRouter]:
    """Returns the router of each module, in order."""
    return [resolve(f"{module}:router") for module in MODULES]
