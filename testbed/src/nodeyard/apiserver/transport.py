"""Request and response, independent of a transport.

The listener makes them from sockets; tests, the simulation and `plan -f` make them in process.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from nodeyard.kube.json import Json

Chunk: TypeAlias = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Peer:
    """The verified client certificate: CN is the user, each O a group."""

    common_name: str
    organizations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """The names are in lower case."""
    body: bytes = b""
    peer: Peer | None = None
    document: Any = None
    """The decoded body of a large request; see `request_body.read_ahead`."""
    user: User | None = None
    """Set by in-process callers, who are trusted; never set by the listener."""

    def param(self, name: str, default: str = "") -> str:
        values = self.query.get(name)
        return values[0] if values else default

    def flag(self, name: str) -> bool:
        """True if a parameter is given and neither `false` nor `0`; an empty one counts as set."""
        return self.param(name, "false").lower() not in ("false", "0")


def request(
    method: str,
    url: str,
    body: bytes | Json = b"",
    *,
    user: User | None = None,
    content_type: str = "application/json",
    accept: str = "application/json",
) -> Request:
    """Make a request from a URL with query; a body that is not bytes is encoded as JSON."""
    parts = urlsplit(url)
    query: dict[str, tuple[str, ...]] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        query[name] = (*query.get(name, ()), value)
    payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
    headers = {"accept": accept}
    if payload:
        headers["content-type"] = content_type
    return Request(method, parts.path, query, headers, payload, user=user)


@dataclass(slots=True)
class Response:
    status: int
    body: bytes = b""
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None
    """The chunks of a watch; `body` is then empty. The consumer must close it, read or not."""
    chunks: list[Chunk] | None = None
    """A large body in pieces, so that a list is never copied."""

    def payload(self) -> bytes:
        return b"".join(self.chunks) if self.chunks is not None else self.body

    def json(self) -> Json:
        return msgspec.json.decode(self.payload())
