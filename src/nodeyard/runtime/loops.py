"""What a capability's own loop is given: a loop is for what is not a plan, such as renewing leases of others.

It runs on the lease thread with connections of its own, until `stopped` is set. It works from `briefs`, asks `gate_of`
before each write, and says what it found out with `publish`:

    while not context.stopped.is_set():
        context.changed.clear()
        for key, brief in context.briefs.items(): ...      begin with those that are new, end with those that are gone
        await first_of(context.stopped.wait(), context.changed.wait(), context.clock.sleep(10))
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from nodeyard.client.api import Client
from nodeyard.process.clock import Clock
from nodeyard.runtime.briefs import Briefs
from nodeyard.runtime.capability import Key, View
from nodeyard.runtime.elections import Gate
from nodeyard.runtime.reaching import Connect, reach


class Publish(Protocol):
    def __call__(self, name: str, value: Any, keys: Iterable[Key] = ()) -> None:
        """`view.finding(name)` is this from here on, and the keys are due; None takes it back.

        It is the loop that takes back what it found out about a key that has left the briefs."""


class Looking(Protocol):
    @property
    def is_observing(self) -> bool:
        """Whether we only look on, such as beside the operator that we replace; constant time, any thread."""


@dataclass(frozen=True)
class LoopGate:
    """Of one key, for a loop: a loop does not pass the reconciler, where observing ends a pass."""

    gate: Gate
    looking: Looking

    def may_write(self) -> bool:
        return self.gate.may_write() and not self.looking.is_observing


@dataclass(frozen=True)
class LoopContext:
    client: Client
    gate_of: Callable[[Key], Gate]
    """Whether what belongs to a key may be written now: it is ours, and we do not only observe. Constant time."""
    clock: Clock
    stopped: asyncio.Event
    view: View
    """Belongs to the main loop: only single reads of immutable objects are safe from here."""
    publish: Publish
    changed: asyncio.Event
    """Set when the briefs have changed; this loop's own, to be cleared before they are read."""
    known: Briefs
    connect: Connect = reach
    """Connections of its own to further clusters."""
    measure: Any = None
    """What `Capability.metrics` made, where it has any: a loop measures what happens between two passes."""

    @property
    def briefs(self) -> Mapping[Key, Any]:
        """What `Capability.brief` made of each key that is ours; does not change, so read it again each time."""
        return self.known.current
