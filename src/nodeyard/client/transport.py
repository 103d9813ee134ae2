"""The transport protocol of a `Client`.

`HttpTransport` uses HTTP over sockets, `InProcessTransport` calls a server in the same process. Tests and fault
injection wrap either.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

REQUEST_SECONDS: Final = 30.0
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})

Hold: TypeAlias = Callable[[], str]
"""Returns why a request must not be sent, or an empty string if it may be."""


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Header names are in lower case."""
    body: bytes
    warnings: tuple[str, ...] = ()
    """The raw Warning headers."""


@dataclass(slots=True)
class Stream:
    """A streamed response."""

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class Transport(Protocol):
    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        body: bytes = b"",
        timeout: float = REQUEST_SECONDS,
        retry: bool = True,
        hold: Hold | None = None,
    ) -> Response:
        """Send a request and return the whole response with any status, within `timeout` seconds of being sent.

        Raises TransportError without a response. `retry` allows to resend a request that the server has not processed
        (429, and 503 for reads, both with Retry-After) while time is left. `hold` is called right before each attempt,
        after all waiting; if it returns a reason, Withheld is raised with it.
        """

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] = NOTHING,
        headers: Mapping[str, str] = NOTHING,
        timeout: float = REQUEST_SECONDS,
        idle_timeout: float = 60.0,
    ) -> AbstractAsyncContextManager[Stream]:
        """Send a GET and return the response as a stream.

        `timeout` applies until the response begins. After that, `idle_timeout` seconds without data raise
        TransportTimeout, and a broken connection raises TransportError. The connection is closed on exit.
        """

    async def close(self) -> None: ...
