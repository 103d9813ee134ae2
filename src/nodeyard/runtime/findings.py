"""What loops found out that no watch tells, by name, for `collect` to read.

    lease loop ──publish("leaf/a", finding, keys=("a",))──▶ main loop: shown from here on, and the keys are due

Everything happens on the main loop, so that a finding does not change while a snapshot is being taken; whoever
publishes may run on any thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from nodeyard.runtime.capability import Key


class Findings:
    def __init__(self, shown: dict[str, Any], mark: Callable[[Key], None]) -> None:
        """`shown` is what views show; `mark` makes a key due."""
        self._shown = shown
        self._mark = mark
        self._home: asyncio.AbstractEventLoop

    def start(self) -> None:
        """On the main loop."""
        self._home = asyncio.get_running_loop()

    def publish(self, name: str, value: Any, keys: Iterable[Key] = ()) -> None:
        """From any loop. None takes back what was published under the name."""
        due = tuple(keys)
        if asyncio.get_running_loop() is self._home:
            self._show(name, value, due)
        else:
            self._home.call_soon_threadsafe(self._show, name, value, due)

    def _show(self, name: str, value: Any, keys: tuple[Key, ...]) -> None:
        if value is None:
            self._shown.pop(name, None)
        else:
            self._shown[name] = value
        for key in keys:
            self._mark(key)
