"""JSON responses. Numbers of embeddings are written as the shortest text of a float32."""

from collections.abc import Mapping
from typing import Any

import orjson
from fastapi.responses import Response


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Returns `content` as JSON. NumPy arrays in it are lists, and must be in C order."""
    return Response(
        orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY),
        status,
        dict(headers or {}),
        media_type="application/json",
    )
