"""The embedded server, and an operator, on an event loop that measures its own turns.

A turn is what the loop does between two polls of its sockets: no other request is served meanwhile. It is measured in
CPU time of the loop's thread, which other processes on a busy machine do not lengthen.

The loop also waits while another thread holds the GIL. A heartbeat makes the loop poll at least once a millisecond, so
the CPU time that the other threads of the process spend between two turns is the time for which they kept the GIL.
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

from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.runtime.capability import Capability
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.operators import Operator, Options

_PIECE = 1 << 20
_HEARTBEAT = 0.001


@dataclass(slots=True)
class Turns:
    """The longest turn and the longest wait for the GIL since `Selector.reset`, in seconds of CPU time."""

    own: float = 0.0
    wait: float = 0.0
    count: int = 0
    total: float = 0.0
    """Sum of all turns."""


class Selector(selectors.DefaultSelector):
    """Selector that measures turns: one ends when the loop polls for events, the next begins when it gets them."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns()
        self._own = self._other = 0.0

    def reset(self) -> None:
        self.turns = Turns()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        own, others = time.thread_time(), self._others()
        turns = self.turns
        turns.own = max(turns.own, own - self._own)
        turns.total += own - self._own
        turns.wait = max(turns.wait, others - self._other)
        turns.count += 1
        self._other = others
        found = super().select(timeout)
        self._own, others = time.thread_time(), self._others()
        turns.wait = max(turns.wait, others - self._other)
        self._other = others
        return found

    def _others(self) -> float:
        return time.process_time() - time.thread_time()


class MeasuredServer(EmbeddedServer):
    """The embedded server over TLS, on a loop with a `Selector`."""

    def __init__(self) -> None:
        super().__init__()
        self._loop.close()
        self.selector = Selector()
        self._loop = asyncio.SelectorEventLoop(self.selector)
        self._thread = threading.Thread(target=self._run, name="embedded-apiserver", daemon=True)

    def _run(self) -> None:
        def beat() -> None:
            self._loop.call_later(_HEARTBEAT, beat)

        self._loop.call_soon(beat)
        self._loop.run_forever()

    def idle(self) -> None:
        """Wait until no controller has anything left to do."""
        self.run(self.server.idle())

    def measure(self, work: Callable[[], None]) -> Turns:
        """Do the work, wait until controllers are idle, and return the turns meanwhile."""
        self.selector.reset()
        work()
        self.idle()
        turns = self.selector.turns
        self.selector.reset()
        return turns

    def ask(
        self, method: str, path: str, body: bytes = b"", kind: str = "application/json", **headers: str
    ) -> tuple[int, bytes]:
        """Send one request on a connection of its own; return the status and the end of the response."""
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


class MeasuredOperator(Operator):
    """An operator with an administrator's rights, on a loop with a `Selector`."""

    def __init__(self, server: EmbeddedServer, capability: Capability) -> None:
        super().__init__(load_kubeconfig([server.kubeconfig]), capability, Options(identity="measured"))
        self._loop.close()
        self.selector = Selector()
        self._loop = asyncio.SelectorEventLoop(self.selector)
        self._thread = threading.Thread(target=self._loop.run_forever, name="measured-operator", daemon=True)

    def measure(self, work: Callable[[], None]) -> Turns:
        """Do the work, which waits for its effects; return the turns meanwhile."""
        self.selector.reset()
        work()
        return self.selector.turns
