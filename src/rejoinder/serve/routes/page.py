"""The page at `/`. Its files are read once, so no request reaches the file system."""

from importlib.resources import files

from fastapi import APIRouter, Request, Response

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_INDEX = "index.html"


def _read() -> dict[str, bytes]:
    """Returns the page's files by their paths on the server."""
    folder = files("rejoinder").joinpath("data", "page")
    read = {f"/page/{file.name}": file.read_bytes() for file in folder.iterdir()}
    return {"/": read.pop(f"/page/{_INDEX}"), **dict(sorted(read.items()))}


_FILES = _read()
PATHS = tuple(_FILES)
"""Paths of the page and its files."""

router = APIRouter(include_in_schema=False)


async def page(request: Request) -> Response:
    """Return a file of the page."""
    path = request.scope["route"].path
    content = _FILES[path]
    kind = _TYPES.get(path[path.rfind(".") :], _TYPES[".html"])
    return Response(content, headers=_HEADERS, media_type=kind)


for _path in PATHS:
    router.add_api_route(_path, page, methods=["GET", "HEAD"])
