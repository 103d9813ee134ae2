"""HTTP server for untrusted clients: aiohttp's server with the limits it lacks.

    accept ─▶ room? ─▶ TLS ─▶ head ─▶ handler ─▶ idle ─▶ head ...
                       └── HEAD_SECONDS ──┘      └ idle_seconds

Connections are limited in total and per peer. If the limit is reached, the longest idle connection of the peer with the
most connections is closed, so that no peer can lock out others. A `Budget` limits the requests of each peer.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from aiohttp import web

from nodeyard.process.logs import get_logger

# The time limit from the first byte of a request to the end of its headers.
HEAD_SECONDS: Final = 10.0
SWEEP_SECONDS: Final = 1.0
# The delay after running out of file descriptors, so that others can be closed.
FULL_SECONDS: Final = 0.1
BACKLOG: Final = 512
MOST_FILES: Final = 65536
# One server uses at most one part in this many of the process's file descriptors, so that probes and the operator's own
# connections have the rest even where RLIMIT_NOFILE cannot be raised.
FILES_DIVISOR: Final = 2

_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = get_logger("http")


@dataclass(frozen=True)
class Limits:
    connections: int = 1024
    """In all."""
    per_peer: int = 512
    """The limit per peer address; several API servers behind one address count as one peer."""
    idle_seconds: float = 120.0
    stop_seconds: float = 5.0


@dataclass
class Budget:
    """Token bucket per peer: `rate` units of work per second, and `burst` at once."""

    rate: float
    burst: float
    most_peers: int = 4096
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The remaining units of each peer, and the time they were computed."""

    def take(self, peer: str, now: float, units: float = 1.0) -> bool:
        """Take units from a peer; return False if it has too few left."""
        if peer not in self._left and len(self._left) >= self.most_peers:
            self._forget(now)
        left, since = self._left.get(peer, (self.burst, now))
        left = min(self.burst, left + (now - since) * self.rate)
        is_enough = left >= units
        self._left[peer] = (left - units if is_enough else left, now)
        return is_enough

    def _forget(self, now: float) -> None:
        """Drop peers with a full bucket; if there are none, drop the least recently seen peer."""
        full = [peer for peer, (left, since) in self._left.items() if left + (now - since) * self.rate >= self.burst]
        for peer in full or [min(self._left, key=lambda peer: self._left[peer][1])]:
            del self._left[peer]


class HttpServer:
    """Serves one application on one address, over TLS if a context is given."""

    def __init__(
        self, app: web.Application, limits: Limits | None = None, *, context: ssl.SSLContext | None = None
    ) -> None:
        self._limits = limits or Limits()
        self.context = context
        """For new connections."""
        app.middlewares.append(self._mark_busy)
        # A compressed body can expand a thousandfold, so handlers get the raw bytes.
        self._runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=self._limits.idle_seconds,
            shutdown_timeout=self._limits.stop_seconds,
            auto_decompress=False,
        )
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._peers: dict[str, dict[_Connection, None]] = {}
        self._count = 0
        self._most = self._limits.connections
        self._by_transport: dict[asyncio.BaseTransport, _Connection] = {}

    def bind(self, host: str, port: int) -> int:
        """Bind the address and return its port; raise OSError if it is in use."""
        family, _, _, _, where = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind(where)
        except OSError:
            self._socket.close()
            raise
        return int(self._socket.getsockname()[1])

    async def start(self) -> None:
        """Start accepting connections."""
        if self._socket is None:
            raise RuntimeError("bind first")
        await self._runner.setup()
        self._most = min(self._limits.connections, _file_limit() // FILES_DIVISOR)
        self._socket.listen(BACKLOG)
        self._begin(self._accept(self._socket), "accept")
        self._begin(self._sweep(), "sweep")

    async def close(self) -> None:
        """Shut down gracefully: finish requests in flight and accept no more."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
        await self._runner.cleanup()

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # connections

    async def _accept(self, listening: socket.socket) -> None:
        loop, make = asyncio.get_running_loop(), self._runner.server
        if make is None:
            raise RuntimeError("set up first")
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                _log.warning("accept failed", reason=str(error), connections=self._count)
                self._make_room()
                await asyncio.sleep(FULL_SECONDS)
                continue
            peer = str(address[0])
            if not self._has_room(peer):
                accepted.close()
                continue
            connection = _Connection(self, peer, make())
            self._peers.setdefault(peer, {})[connection] = None
            self._count += 1
            connection.handshake = self._begin(self._serve(connection, accepted), "serve")

    async def _serve(self, connection: _Connection, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        seconds = None if self.context is None else HEAD_SECONDS
        try:
            await loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self.context, ssl_handshake_timeout=seconds
            )
        except OSError:
            # Includes ssl.SSLError: no TLS, an unsupported version, or a missing client certificate.
            self.forget(connection)
        except asyncio.CancelledError:
            self.forget(connection)
            raise

    def _has_room(self, peer: str) -> bool:
        if len(self._peers.get(peer, ())) >= self._limits.per_peer and not self._make_room(peer):
            return False
        return self._count < self._most or self._make_room()

    def _make_room(self, peer: str = "") -> bool:
        """Close the longest idle connection of the peer, or of the peer with the most connections."""
        if not self._peers:
            return False
        if not peer:
            peer = max(self._peers, key=lambda each: len(self._peers[each]))
        idle = [each for each in self._peers[peer] if not each.is_busy]
        if not idle:
            return False
        oldest = min(idle, key=lambda each: each.since)
        oldest.abort()
        self.forget(oldest)
        return True

    def know(self, connection: _Connection, transport: asyncio.BaseTransport) -> None:
        self._by_transport[transport] = connection

    def forget(self, connection: _Connection) -> None:
        """Forget a connection that is closed or about to be."""
        known = self._peers.get(connection.peer, {})
        if connection in known:
            del known[connection]
            self._count -= 1
            if not known:
                del self._peers[connection.peer]
        if connection.transport is not None:
            self._by_transport.pop(connection.transport, None)

    async def _sweep(self) -> None:
        """Close connections that take too long to send a request."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = time.monotonic()
            for known in tuple(self._peers.values()):
                for connection in tuple(known):
                    if connection.is_overdue(now, self._limits.idle_seconds):
                        connection.abort()

    @web.middleware
    async def _mark_busy(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        connection = None if request.transport is None else self._by_transport.get(request.transport)
        if connection is None:
            return await handler(request)
        connection.is_busy = True
        try:
            return await handler(request)
        finally:
            connection.rest()


class _Connection(asyncio.Protocol):
    """Wraps aiohttp's protocol, and records since when it waits for a request."""

    def __init__(self, server: HttpServer, peer: str, inner: asyncio.Protocol) -> None:
        self.peer = peer
        self.is_busy = False
        self.since = time.monotonic()
        self.transport: asyncio.Transport | None = None
        self.handshake: asyncio.Task[None] | None = None
        self._is_head_begun = True
        """True from the start: the first request must arrive at once; a later one may begin within idle_seconds."""
        self._server = server
        self._inner = inner

    def is_overdue(self, now: float, idle_seconds: float) -> bool:
        if self.is_busy or self.transport is None:
            return False
        return now - self.since > (HEAD_SECONDS if self._is_head_begun else idle_seconds)

    def rest(self) -> None:
        self.is_busy = self._is_head_begun = False
        self.since = time.monotonic()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._server.know(self, transport)
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.forget(self)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.is_busy and not self._is_head_begun:
            self._is_head_begun = True
            self.since = time.monotonic()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def _file_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def raise_file_limit() -> None:
    """Raise RLIMIT_NOFILE, so that client connections do not use up the process's file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
