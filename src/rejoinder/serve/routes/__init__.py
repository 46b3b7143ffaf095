"""The server's routes: one module per interface, each with a line in `MODULES`."""

from fastapi import APIRouter

from rejoinder.registry import resolve

MODULES = (
    "rejoinder.serve.routes.tei",
    "rejoinder.serve.routes.openai",
    "rejoinder.serve.routes.own",
    "rejoinder.serve.routes.page",
)
"""Modules with an `APIRouter` called `router`, in the order of the OpenAPI."""


def all_routers() -> list[APIRouter]:
    """Returns the router of each module, in order."""
    return [resolve(f"{module}:router") for module in MODULES]
