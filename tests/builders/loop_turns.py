"""The embedded server on an event loop that measures its own turns.

A turn is what the loop does between two looks at its sockets: nobody else is served meanwhile. It is measured in CPU
time of the loop's thread, which other processes on a busy machine do not lengthen. What other threads of the process
compute during a turn is counted apart: the loop may have waited for them to release the interpreter.
"""

from __future__ import annotations

import asyncio
import http.client
import selectors
import ssl
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from nodeyard.testing.embedded import EmbeddedServer

_PIECE = 1 << 20


@dataclass(slots=True)
class Turns:
    """The longest turn since `Selector.reset`: seconds of the loop's own CPU time, and of other threads' during one."""

    own: float = 0.0
    others: float = 0.0
    count: int = 0


class Selector(selectors.DefaultSelector):
    """Ends a turn of the loop where the loop asks for events, and begins the next where it gets them."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns()
        self._own = self._process = 0.0

    def reset(self) -> None:
        self.turns = Turns()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        own, process = time.thread_time(), time.process_time()
        if self._own:
            turns, spent = self.turns, own - self._own
            turns.own = max(turns.own, spent)
            turns.others = max(turns.others, process - self._process - spent)
            turns.count += 1
        found = super().select(timeout)
        self._own, self._process = time.thread_time(), time.process_time()
        return found


class MeasuredServer(EmbeddedServer):
    """The embedded server over TLS, on a loop of a `Selector`."""

    def __init__(self) -> None:
        super().__init__()
        self._loop.close()
        self.selector = Selector()
        self._loop = asyncio.SelectorEventLoop(self.selector)
        self._thread = threading.Thread(target=self._loop.run_forever, name="embedded-apiserver", daemon=True)

    def idle(self) -> None:
        """Wait until no controller has anything left to do."""
        self.run(self.server.idle())

    def measure(self, work: Callable[[], None]) -> Turns:
        """Do the work, wait for what it causes, and tell of the longest turn meanwhile."""
        self.selector.reset()
        work()
        self.idle()
        return self.selector.turns

    def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json", **headers: str
    ) -> tuple[int, bytes]:
        """Send one request on a connection of its own; the status and the end of the answer."""
        parts = urlsplit(self.url)
        context = ssl.create_default_context(cadata=self.authority.pem.decode())
        connection = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=300)
        try:
            shown = {"Authorization": f"Bearer {self.admin_token}", "Content-Type": kind, **headers}
            connection.request(method, path, body or None, shown)
            answer = connection.getresponse()
            last = b""
            while piece := answer.read1(_PIECE):
                last = piece
            return answer.status, last
        finally:
            connection.close()
