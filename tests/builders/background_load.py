"""Repeated calls from several threads, as load while a test does something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from nodeyard.testing.rest import RestError

PAUSE_SECONDS = 0.05


class Load:
    """Threads that repeat calls, each up to twenty times a second. A value that a call returns is a fault.

    The rate is limited: unlimited threads would take the CPU from the code under test, and from other tests.
    """

    def __init__(self) -> None:
        self.faults: list[Any] = []
        self.counts: list[int] = []
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def repeat(self, action: Callable[[], Any]) -> None:
        place = len(self.counts)
        self.counts.append(0)

        def run() -> None:
            while not self._stopped.wait(PAUSE_SECONDS):
                try:
                    fault = action()
                except (OSError, RestError) as error:
                    fault = repr(error)
                self.counts[place] += 1
                if fault:
                    self.faults.append(fault)

        self._threads.append(threading.Thread(target=run))

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
