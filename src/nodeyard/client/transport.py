"""How requests travel: the one protocol that a `Client` stands on.

`AioTransport` speaks HTTP over sockets, `InProcessTransport` calls a server in the same process, and tests and fault
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
"""Why a request must not be sent any more; empty while it may be."""


class Response(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Looked up in lower case."""
    body: bytes
    warnings: tuple[str, ...] = ()
    """The Warning headers, each as it came."""


@dataclass(slots=True)
class Stream:
    """An answer that is still coming."""

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
        """One request and its whole answer, whatever its status, within `timeout` seconds of being sent.

        Raises TransportError where there is none. `retry` allows a request that the server has turned away unread
        (429, and 503 for reads, both with Retry-After) to be sent again while time is left. `hold` is asked each time
        right before sending, when whatever had to be waited for is there; Withheld is raised with what it says.
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
        """A GET whose answer is read as it comes.

        `timeout` is for the answer to begin; after that, silence of `idle_timeout` seconds raises TransportTimeout and
        a broken connection TransportError. The connection is closed on leaving.
        """

    async def close(self) -> None: ...
