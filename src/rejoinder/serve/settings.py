"""The settings of a server, checked before it starts."""

from dataclasses import dataclass, field
from ipaddress import ip_address

from rejoinder.errors import InputError

MOST_CHARACTERS = 32 << 20
"""Most characters of all texts in an answer."""
_LEAST_KEY = 8


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Addresses, limits and the key of a server."""

    host: str = "127.0.0.1"
    """Address to listen on. Only this machine can reach the default."""
    allowed_hosts: tuple[str, ...] = ()
    """Hosts that requests may name, besides names of the loopback. Without any, a server on the
    loopback allows only those, and a server on another address any host."""
    port: int = 8080
    """Port to listen on; 0 takes a free one."""
    max_batch: int = 4_096
    """Most texts to encode at a time; 1 encodes each request alone."""
    max_queue: int = 65_536
    """Most texts that wait for the encoder. More get status 429."""
    max_body_bytes: int = 4 << 20
    """Most bytes of a request's body. A longer body gets status 413."""
    max_texts: int = 2_048
    """Most texts of a request."""
    drain_seconds: float = 8.0
    """Seconds for current requests to finish after SIGTERM."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the server from a browser; `*` is any origin."""
    api_key: str | None = field(default=None, repr=False)
    """Key that requests must send as `Authorization: Bearer KEY`."""

    def serves(self, host: str) -> bool:
        """Returns whether a request may have this `Host` header."""
        if not self.allowed_hosts and not _is_loopback(_name_of(self.host)):
            return True
        name = _name_of(host)
        return _is_loopback(name) or name in map(_name_of, self.allowed_hosts)

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            InputError: a setting is out of range, or two contradict each other.
        """
        _within("port", self.port, 0, 65_535)
        _within("max_batch", self.max_batch, 1, 1 << 20)
        _within("max_body_bytes", self.max_body_bytes, 1, 1 << 30)
        _within("max_texts", self.max_texts, 1, 1 << 20)
        _within("max_queue", self.max_queue, 1, 1 << 24)
        _within("drain_seconds", self.drain_seconds, 0, 3_600)
        if self.max_queue < 2 * self.max_texts:
            raise InputError(
                f"max_queue {self.max_queue:,} is too small for two requests of max_texts "
                f"{self.max_texts:,}; it must be {2 * self.max_texts:,} or more."
            )
        if self.api_key is not None:
            _check_key(self.api_key)
        for name in self.allowed_hosts:
            _check_host(name)
        for origin in self.cors_origins:
            _check_origin(origin)


def _name_of(host: str) -> str:
    """Returns the name or address in a `Host` header.

    >>> _name_of("[::1]:8080"), _name_of("LOCALHOST.:80"), _name_of("::1")
    ('::1', 'localhost', '::1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().removesuffix(".")


def _is_loopback(name: str) -> bool:
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _within(name: str, value: float, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{name} must be from {least:,} to {most:,}; got {value}.")


def _check_key(key: str) -> None:
    if len(key) < _LEAST_KEY or not all("!" <= character <= "~" for character in key):
        raise InputError(
            f"the API key must be {_LEAST_KEY} or more visible ASCII characters without spaces; "
            f"got {len(key)} characters. openssl rand -hex 32 makes one."
        )


def _check_host(name: str) -> None:
    if not name or "/" in name or (":" in name and not name.startswith("[")):
        raise InputError(
            f"allowed host {name!r}: give a name or an address without scheme, port and path, such "
            "as search.example.org."
        )


def _check_origin(origin: str) -> None:
    scheme, separator, host = origin.partition("://")
    known = scheme in ("http", "https") and separator and host and "/" not in host
    if origin != "*" and not known:
        raise InputError(
            f"CORS origin {origin!r}: give a scheme, a host and maybe a port, such as "
            "https://example.org, or * for any."
        )
