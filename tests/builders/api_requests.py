"""Requests of an operator in the terms of RBAC: verb, group, resource and name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from nodeyard.client.errors import ClientError, Status, TransportError, error_from_status
from nodeyard.client.transport import Request, Response, Stream, Transport

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAME = "metadata.name="


class Right(NamedTuple):
    group: str
    resource: str
    """Includes the subresource: `pods/eviction`."""
    verb: str

    def __str__(self) -> str:
        resource, slash, part = self.resource.partition("/")
        return f"{self.verb} {resource}{'.' if self.group else ''}{self.group}{slash}{part}"


class ResourceRequest(NamedTuple):
    right: Right
    namespace: str
    name: str
    """Name of the one object; also of a list or a watch that selects it by its name."""


def parse_request(method: str, path: str, query: Mapping[str, str]) -> ResourceRequest | None:
    """Parse a request; None if it is not for a resource, such as discovery, versions and health."""
    parts = path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    if parts[0] not in ("api", "apis") or not rest:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    resource, name, part = (*rest, "", "")[:3]
    verb = _VERBS.get(method, "get")
    if verb == "get" and not name:
        verb = "watch" if query.get("watch") else "list"
        name = query.get("fieldSelector", "").removeprefix(_NAME)
    return ResourceRequest(Right(group, f"{resource}/{part}" if part else resource, verb), namespace, name)


class Listener(Protocol):
    def record(self, request: ResourceRequest, body: bytes) -> None:
        """Receive a request before it is sent."""

    def drops_answer(self, request: ResourceRequest, status: int) -> bool:
        """Return whether a response with this status is lost."""


class RecordingTransport:
    """Forwards each request and reports it. Lists are not streamed, as by older servers, and responses may be lost."""

    def __init__(self, inner: Transport, listener: Listener) -> None:
        self._inner = inner
        self._listener = listener

    async def send(self, request: Request) -> Response:
        found = parse_request(request.method, request.path, request.query)
        if found is None:
            return await self._inner.send(request)
        self._listener.record(found, request.body)
        response = await self._inner.send(request)
        if self._listener.drops_answer(found, response.status):
            raise TransportError("the answer was lost", may_have_run=True)
        return response

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        if "sendInitialEvents" in request.query:
            raise _not_streamed()
        if (found := parse_request("GET", request.path, request.query)) is not None:
            self._listener.record(found, b"")
        return self._inner.stream(request)

    async def close(self) -> None:
        await self._inner.close()


def _not_streamed() -> ClientError:
    return error_from_status(Status(kind="Status", code=400, message="sendInitialEvents is forbidden for watch"))
