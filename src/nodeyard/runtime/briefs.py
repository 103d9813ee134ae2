"""What loops work from: of each key that is ours, what the capability extracted from its last snapshot.

    main loop: collect ──brief──▶ Briefs.put ──changed──▶ lease loop: reads `current`, a mapping that never changes

A mapping that somebody reads is never written to again: each change makes another. A key that names nothing any more,
or that another replica has now, is not in it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from nodeyard.runtime.capability import Key


class Briefs:
    """Written to on the main loop, read and waited for on any."""

    def __init__(self) -> None:
        self.current: Mapping[Key, Any] = MappingProxyType({})
        self._listeners: tuple[tuple[asyncio.AbstractEventLoop, asyncio.Event], ...] = ()

    def put(self, key: Key, brief: Any) -> None:
        if key not in self.current or self.current[key] != brief:
            self._change({**self.current, key: brief})

    def drop(self, key: Key) -> None:
        if key in self.current:
            self._change({known: brief for known, brief in self.current.items() if known != key})

    def clear(self) -> None:
        if self.current:
            self._change({})

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event of the loop that runs, set whenever the briefs have changed. Whoever waits for it clears it first,
        and reads then."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        self._listeners = (*self._listeners, listener)
        try:
            yield listener[1]
        finally:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

    def _change(self, briefs: dict[Key, Any]) -> None:
        self.current = MappingProxyType(briefs)
        for loop, event in self._listeners:
            # A loop that ends between our look at the list and the call has nobody left who listens.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)
