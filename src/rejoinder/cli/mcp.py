"""`rejoinder mcp`: lets assistants search and read archives, by the Model Context Protocol."""

from pathlib import Path
from typing import Annotated

import typer

from rejoinder.cli import options
from rejoinder.cli.serve import ApiKeyFileOption, HostOption, Served, api_key, run_server
from rejoinder.errors import require


@options.prints(needs={"--port N": ("--host", "--api-key-file", "--allowed-host")})
def mcp(
    index: Annotated[list[Path], typer.Argument()],
    port: int | None = None,
    host: HostOption = "127.0.0.1",
    api_key_file: ApiKeyFileOption = None,
    allowed_host: list[str] | None = None,
) -> None:
    """Let assistants search and read archives, by the Model Context Protocol (MCP).

    Args:
        index: Indexes, or exports that `rejoinder explore` explored.
        port: Answer over HTTP at /mcp of this port, not on standard input and output.
        allowed_host: Host that requests may name; repeatable, see `rejoinder serve`.

    Examples:
        rejoinder mcp slack-export.zip
        rejoinder mcp slack-export.zip mails/index --port 8080
    """
    require("mcp", "mcp", "fastapi", "httptools", "orjson", "prometheus_client")
    from rejoinder.serve.mcp import Archive, answer_on_stdio
    from rejoinder.serve.server import ServerSettings

    archives = [*map(Archive, index)]
    if port is None:
        answer_on_stdio(archives)
        return
    settings = ServerSettings(
        host=host, port=port, api_key=api_key(api_key_file), allowed_hosts=tuple(allowed_host or ())
    )
    first = archives[0]
    run_server(
        Served(
            settings, index=first.index.folder, ready=first.ready, archives=tuple(index),
            name=first.name,
        )
    )  # fmt: skip
