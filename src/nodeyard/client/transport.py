"""The transport protocol of a `Client`.

`HttpTransport` uses HTTP over sockets. The testbed's transport calls a server in the same process. Tests and fault
injection wrap either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

import msgspec

REQUEST_SECONDS: Final = 30.0
# Bookmarks arrive each minute, so a longer silence is a dead connection.
IDLE_SECONDS: Final = 70.0
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

Hold: TypeAlias = Callable[[], str]
"""Returns why a request must not be sent, or an empty string if it may be."""


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: Mapping[str, str] = NOTHING
    headers: Mapping[str, str] = NOTHING
    body: bytes = b""
    timeout: float = REQUEST_SECONDS
    """Seconds from sending until the whole response has arrived; for a stream, until the response begins."""
    retry: bool = True
    """Allows to resend a request that the server has not processed while time is left: after 429, and for reads after
    503, both with Retry-After."""
    hold: Hold | None = None
    """Called right before each attempt, after all waiting; if it returns a reason, Withheld is raised with it."""
    flow: str = ""
    """The component that sends the request. Flows share the bound of requests in flight fairly (`flow_control`)."""
    idle_timeout: float = IDLE_SECONDS
    """Seconds without data after which a stream has failed."""


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: bytes
    warnings: tuple[str, ...] = ()
    """The raw Warning headers."""
    waited: float = 0.0
    """Seconds that the request waited for its turn before it was sent."""


@dataclass(slots=True)
class Stream:
    """A streamed response."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class RequestSender(Protocol):
    async def send(self, request: Request) -> Response:
        """Send a request and return the whole response with any status. Raises TransportError without a response."""


class Transport(RequestSender, Protocol):
    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        """Send a GET and return the response as a stream; the connection is closed on exit.

        Silence for longer than the idle timeout raises TransportTimeout, and a broken connection TransportError.
        """

    async def close(self) -> None: ...
