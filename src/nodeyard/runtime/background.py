"""Background loops of a capability: their input, their output and their context.

A loop does work that is not a plan and must be on time, such as renewing leases of other nodes. It runs on the lease
thread with its own connections until `stopped` is set:

    main loop:  collect ──Background.input──▶ LoopInputs.put ──changed──▶ loop: reads `inputs`, an immutable mapping
    loop:       publish("leaf/a", value, keys=("a",)) ──▶ main loop: view.finding("leaf/a"), and key a is queued

    while not context.stopped.is_set():
        context.changed.clear()
        for key, value in context.inputs.items(): ...      start work for new keys, end it for keys that are gone
        await first_of(context.stopped.wait(), context.changed.wait(), context.clock.sleep(10))
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from nodeyard.client.api import Client
from nodeyard.process.clock import Clock
from nodeyard.runtime.capability import Key, View
from nodeyard.runtime.leader.write_fence import WriteFence
from nodeyard.runtime.remote.connect import Connect, connect_by_kubeconfig


class LoopInputs:
    """`Background.input` of each key that this replica owns. Written on the main loop, read on any loop.

    Each change replaces the mapping, so that a mapping that a loop has read never changes. A key that no longer exists
    or that another replica owns is not in it.
    """

    def __init__(self) -> None:
        self.current: Mapping[Key, Any] = MappingProxyType({})
        self._listeners: tuple[tuple[asyncio.AbstractEventLoop, asyncio.Event], ...] = ()

    def put(self, key: Key, value: Any) -> None:
        if key not in self.current or self.current[key] != value:
            self._change({**self.current, key: value})

    def drop(self, key: Key) -> None:
        if key in self.current:
            self._change({known: value for known, value in self.current.items() if known != key})

    def clear(self) -> None:
        if self.current:
            self._change({})

    @contextlib.contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """Yield an event of the running loop that is set after every change. Clear it before reading `current`."""
        listener = (asyncio.get_running_loop(), asyncio.Event())
        self._listeners = (*self._listeners, listener)
        try:
            yield listener[1]
        finally:
            self._listeners = tuple(each for each in self._listeners if each is not listener)

    def _change(self, values: dict[Key, Any]) -> None:
        self.current = MappingProxyType(values)
        for loop, event in self._listeners:
            # The loop may close between reading the list and this call; then nobody listens.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(event.set)


class LoopFindings:
    """Values that loops publish by name for `collect` to read as `view.finding(name)`.

    They change on the main loop only, so that none changes during a snapshot. `publish` may be called on any thread.
    """

    def __init__(self, shown: dict[str, Any], enqueue: Callable[[Key], None]) -> None:
        """`shown` is the mapping that views read; `enqueue` puts a key on the workqueue."""
        self._shown = shown
        self._enqueue = enqueue
        self._main_loop: asyncio.AbstractEventLoop

    def start(self) -> None:
        """Bind to the main loop; called on it."""
        self._main_loop = asyncio.get_running_loop()

    def publish(self, name: str, value: Any, keys: Iterable[Key] = ()) -> None:
        """Show the value and queue the keys; None removes it. Any loop may call this."""
        queued = tuple(keys)
        if asyncio.get_running_loop() is self._main_loop:
            self._show(name, value, queued)
        else:
            self._main_loop.call_soon_threadsafe(self._show, name, value, queued)

    def _show(self, name: str, value: Any, keys: tuple[Key, ...]) -> None:
        if value is None:
            self._shown.pop(name, None)
        else:
            self._shown[name] = value
        for key in keys:
            self._enqueue(key)


class Publish(Protocol):
    def __call__(self, name: str, value: Any, keys: Iterable[Key] = ()) -> None:
        """Make `view.finding(name)` return the value and queue the keys; None removes it.

        The loop must remove its findings about keys that have left the inputs."""


class ObserveOnly(Protocol):
    @property
    def is_observing(self) -> bool:
        """Return True in observe-only mode; constant time, any thread."""


@dataclass(frozen=True)
class LoopFence:
    """The write fence of one key for a loop, which does not pass the reconciler's observe-only check."""

    fence: WriteFence
    observe_only: ObserveOnly

    def may_write(self) -> bool:
        return self.fence.may_write() and not self.observe_only.is_observing


@dataclass(frozen=True)
class LoopContext:
    """Everything a loop works with."""

    client: Client
    fence_of: Callable[[Key], WriteFence]
    """The write fence of a key, to be checked before each write: closed if another replica owns the key, and in
    observe-only mode. Constant time."""
    clock: Clock
    stopped: asyncio.Event
    view: View
    """Belongs to the main loop: only single reads of immutable objects are safe from here."""
    publish: Publish
    changed: asyncio.Event
    """Set after each change of the inputs. It belongs to this loop, which clears it before it reads them."""
    known: LoopInputs
    connect: Connect = connect_by_kubeconfig
    """Opens this loop's own connections to remote clusters."""
    metrics_recorder: Any = None
    """The metrics that `Capability.metrics` created, if any."""

    @property
    def inputs(self) -> Mapping[Key, Any]:
        """`Background.input` of each key that this replica owns. Immutable: read it again after each change."""
        return self.known.current
