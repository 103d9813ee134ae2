"""Connections to one server that are used again: to make one costs more than most answers."""

from __future__ import annotations

import http.client
import select
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class Connections:
    """From any thread; each connection is one request's at a time."""

    def __init__(self, url: str, authority: bytes) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self.trust = ssl.create_default_context(cadata=authority.decode())
        self._idle: list[http.client.HTTPSConnection] = []

    @contextmanager
    def one(self, timeout: float) -> Iterator[http.client.HTTPSConnection]:
        """For one request and its whole answer; closed where either fails."""
        connection = self._kept(timeout) or self.new(timeout)
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        # One that the server wants closed has no socket any more.
        if connection.sock is not None:
            self._idle.append(connection)

    def new(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self.trust)

    def close(self) -> None:
        """Hang up. Whoever asks again connects again."""
        while self._idle:
            self._idle.pop().close()

    def _kept(self, timeout: float) -> http.client.HTTPSConnection | None:
        """One that the server has not hung up on meanwhile."""
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
    """Between two requests a server has nothing to say, unless that it hangs up."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return not poll.poll(0)
