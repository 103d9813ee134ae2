"""Pool of keep-alive connections to one server; a TLS handshake costs more than most requests."""

from __future__ import annotations

import http.client
import select
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class ConnectionPool:
    """Thread-safe; each connection serves one request at a time."""

    def __init__(self, url: str, authority: bytes) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self.trust = ssl.create_default_context(cadata=authority.decode())
        self._idle: list[http.client.HTTPSConnection] = []

    @contextmanager
    def connection(self, timeout: float) -> Iterator[http.client.HTTPSConnection]:
        """Borrow a connection for one request and its whole response; it is closed on failure."""
        connection = self._idle_connection(timeout) or self.new(timeout)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        # After `Connection: close` the socket is gone.
        if connection.sock is not None:
            self._idle.append(connection)

    def new(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self.trust)

    def close(self) -> None:
        """Close idle connections; later requests connect again."""
        while self._idle:
            self._idle.pop().close()

    def _idle_connection(self, timeout: float) -> http.client.HTTPSConnection | None:
        """Return an idle connection that the server has not closed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if _is_silent(connection):
                connection.sock.settimeout(timeout)
                return connection
            connection.close()


def _is_silent(connection: http.client.HTTPSConnection) -> bool:
    """Return whether nothing can be read: between requests a server only sends a close."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)
