"""HTTP/1.1 for requests that are answered whole: the least work between a body and its answer.

    pool = Pool("10.0.0.1", 6443, server_name=None, keepalive=45)
    answer = await pool.ask("PATCH", request, context)

An operator spends most of its time on requests, and most of a request is what surrounds it. Here one is a single write,
and its answer one parse by llhttp. A connection carries one request at a time and is kept for the next; one that the
server closed while it was idle is replaced without anybody noticing where the request may be repeated.

What is kept of an answer has limits, its head included: who answers may be anybody.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

import httptools

from nodeyard.client.errors import Withheld
from nodeyard.client.framing import PART_BYTES, TooLarge, most_of
from nodeyard.client.transport import REQUEST_SECONDS, Hold, Response

CONNECT_SECONDS: Final = 10.0
# Requests that may be sent again on another connection where one is found closed.
_REPEATABLE: Final = frozenset({"GET", "PUT", "DELETE"})
_FIRST_FINAL_STATUS: Final = 200

ANSWER_BYTES: Final = 4 << 30
"""Of an answer, where nothing else is said: a list of everything in a large cluster is hundreds of megabytes."""
HEAD_BYTES: Final = 1 << 20
"""Of what comes before the body."""


class CannotConnect(Exception):
    """Nothing was sent. The text says where to, and why not."""


class Headers(Mapping[str, str]):
    """Decoded when they are asked for: of most answers none ever is."""

    __slots__ = ("_fields",)

    def __init__(self, fields: list[tuple[bytes, bytes]]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> str:
        wanted = name.lower().encode()
        for key, value in reversed(self._fields):
            if key.lower() == wanted:
                return value.decode("utf-8", "replace")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter({key.lower().decode("latin-1"): None for key, _ in self._fields})

    def __len__(self) -> int:
        return len({key.lower() for key, _ in self._fields})


class Connection(asyncio.Protocol):
    """One connection, and the one request that is on it."""

    def __init__(self, largest: int) -> None:
        self.is_open = False
        self.has_heard = False
        """Whether anything of an answer to the current request has come."""
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[Response] | None = None
        self._fields: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._has_headers = False
        self._largest = largest
        self._size = 0
        """Bytes that have come of the answer, whatever they are."""
        self._most = HEAD_BYTES

    async def ask(self, request: bytes, deadline: float) -> Response:
        """Raises TimeoutError when the loop's time is past the deadline."""
        transport = self._transport
        if transport is None or not self.is_open:
            raise ConnectionResetError("the connection is closed")
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        self.has_heard = False
        self._size, self._most = 0, HEAD_BYTES
        # Cheaper than a timeout around it, and this is done for every request.
        timer = loop.call_at(deadline, self._fail, TimeoutError())
        transport.write(request)
        try:
            return await self._answer
        except BaseException:
            # What still comes would be taken for the answer to the next request.
            self.close()
            raise
        finally:
            timer.cancel()
            self._answer = None

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # what the socket tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.is_open = cast(asyncio.Transport, transport), True

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            # Nobody asked: a server that says goodbye.
            self.close()
            return
        self.has_heard = True
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(ConnectionError(f"the answer is no HTTP/1.1: {error}"))
            self.close()
            return
        # Looked at afterwards, when it is known what has come: the limit of a body is not that of a head.
        self._size += len(data)
        if self._size + PART_BYTES * len(self._body) > self._most:
            self._fail(TooLarge("the answer" if self._has_headers else "the head of the answer", self._most))
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if exc is None and self._has_headers and self._ends_with_connection():
            self._complete()
        else:
            self._fail(exc or ConnectionResetError("the server closed the connection"))

    # what the parser tells

    def on_message_begin(self) -> None:
        self._fields, self._body, self._has_headers = [], [], False

    def on_header(self, name: bytes, value: bytes) -> None:
        # Those after the body say nothing to us.
        if not self._has_headers:
            self._fields.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._has_headers = status >= _FIRST_FINAL_STATUS
        if self._has_headers:
            self._most = most_of(status, self._largest)

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < _FIRST_FINAL_STATUS:
            return
        if not self._parser.should_keep_alive():
            self.is_open = False
        self._complete()

    def _ends_with_connection(self) -> bool:
        """Of an answer that has begun: whether nothing else says where it ends."""
        headers = Headers(self._fields)
        return "content-length" not in headers and "chunked" not in headers.get("transfer-encoding", "")

    def _complete(self) -> None:
        self._has_headers = False
        if self._answer is not None and not self._answer.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            warnings = tuple([value.decode("utf-8", "replace") for name, value in self._fields if _is_warning(name)])
            self._answer.set_result(Response(self._parser.get_status_code(), Headers(self._fields), body, warnings))
        # An idle connection keeps nothing of what it brought.
        self._fields, self._body = [], []

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)


def _is_warning(name: bytes) -> bool:
    return len(name) == 7 and name.lower() == b"warning"


class Pool:
    """Connections to one server. How many requests are sent at once is for others to bound."""

    def __init__(
        self, host: str, port: int, *, server_name: str | None, keepalive: float, largest: int = ANSWER_BYTES
    ) -> None:
        """`largest` is the most that an answer may have, in bytes."""
        self._host, self._port = host, port
        self._server_name = server_name
        self._keepalive = keepalive
        self._largest = largest
        self._context: ssl.SSLContext | None = None
        self._idle: list[tuple[float, Connection]] = []
        """With when each was last used; the latest is the last."""
        self._open: set[Connection] = set()
        self.is_closed = False

    async def ask(
        self,
        method: str,
        request: bytes,
        context: ssl.SSLContext | None,
        seconds: float = REQUEST_SECONDS,
        hold: Hold | None = None,
    ) -> Response:
        """Raises CannotConnect, or OSError, TimeoutError among them, where it is not known what became of it.

        Withheld where `hold` says why it must not be sent: asked on each connection that it would be sent on.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        if context is not self._context:
            # Other credentials, or another authority: what was opened with the old ones ends with its request.
            self._drop(connection for _, connection in self._idle)
            self._context, self._idle = context, []
        # What was sent on a connection that then broke may have arrived.
        broken: OSError | None = None
        while True:
            if self.is_closed:
                raise broken or self.closed()
            connection = self._rested()
            is_fresh = connection is None
            if connection is None:
                async with asyncio.timeout_at(deadline):
                    connection = await self._connect(context)
                if self.is_closed:
                    self._drop((connection,))
                    continue
            if hold is not None and (why := hold()):
                self._keep(connection, context)
                raise broken or Withheld(why)
            try:
                answer = await connection.ask(request, deadline)
            except OSError as error:
                self._open.discard(connection)
                is_late = isinstance(error, TimeoutError)
                if is_fresh or is_late or connection.has_heard or method not in _REPEATABLE:
                    raise
                broken = error
            except BaseException:
                self._open.discard(connection)
                raise
            else:
                self._keep(connection, context)
                return answer

    def close(self) -> None:
        """For good: what is under way breaks, and nothing is sent any more."""
        self.is_closed = True
        self._drop(list(self._open))
        self._idle = []

    def closed(self) -> CannotConnect:
        """What is said of a request that comes too late."""
        return CannotConnect(f"{self._host}:{self._port}: closed by ourselves")

    def _rested(self) -> Connection | None:
        """The one used last, so that those which are not needed grow old together."""
        oldest = asyncio.get_running_loop().time() - self._keepalive
        while self._idle:
            since, connection = self._idle.pop()
            if connection.is_open and since >= oldest:
                return connection
            self._drop((connection,))
        return None

    def _keep(self, connection: Connection, context: ssl.SSLContext | None) -> None:
        if not connection.is_open or context is not self._context:
            self._drop((connection,))
            return
        now = asyncio.get_running_loop().time()
        while self._idle and self._idle[0][0] < now - self._keepalive:
            self._drop((self._idle.pop(0)[1],))
        self._idle.append((now, connection))

    def _drop(self, connections: Iterable[Connection]) -> None:
        for connection in connections:
            connection.close()
            self._open.discard(connection)

    async def _connect(self, context: ssl.SSLContext | None) -> Connection:
        loop = asyncio.get_running_loop()
        server_name = self._server_name if context is not None else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: Connection(self._largest),
                    self._host,
                    self._port,
                    ssl=context,
                    server_hostname=server_name,
                )
        except TimeoutError:
            raise CannotConnect(f"{self._host}:{self._port}: no answer in {CONNECT_SECONDS:g} s") from None
        except OSError as error:
            why = str(error) or type(error).__name__
            raise CannotConnect(f"{self._host}:{self._port}: {why}") from error
        self._open.add(connection)
        return connection
