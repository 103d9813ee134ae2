"""The ways to the servers that a capability writes to: its own, and further clusters by name.

Each way has its own sender, its own settling and its own bound on what is in flight, so that a slow cluster holds up
nothing but itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from nodeyard.apply.patience import Patience
from nodeyard.apply.sending import Sender
from nodeyard.apply.settling import Settler
from nodeyard.client.api import Client
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock

Lookup: TypeAlias = Callable[[str, str], Resource[Any] | None]
"""The resource of an apiVersion and kind; None where it is not served."""
OnWritten: TypeAlias = Callable[[Resource[Any], Json], None]
"""Told the object that the server answered, for the overlay."""
OnDeleted: TypeAlias = Callable[[Resource[Any], ObjectRef], None]
"""Told which object is gone."""


@dataclass(frozen=True, eq=False)
class Target:
    """A server to write to, and who is told what was written there."""

    client: Client
    lookup: Lookup
    on_written: OnWritten = lambda _resource, _answer: None
    on_deleted: OnDeleted = lambda _resource, _ref: None
    since: float = 0.0
    """When it became this very server, by the monotonic clock: what was seen before was another one's, for all we know.
    """


Elsewhere: TypeAlias = Callable[[str], Target | str]
"""The further cluster of a name, or why nothing can be sent there now."""


def nowhere(_cluster: str) -> Target | str:
    return "the capability names no such cluster"


@dataclass(frozen=True, eq=False)
class Way:
    target: Target
    sender: Sender
    settler: Settler
    turn: asyncio.Semaphore


@dataclass(frozen=True)
class Manner:
    """How one capability writes, wherever it does."""

    field_manager: str
    clock: Clock
    patience: Patience
    random: Random
    in_flight: int

    def way(self, target: Target) -> Way:
        sender = Sender(target.client, self.field_manager)
        settler = Settler(sender, self.clock, self.patience, self.random)
        return Way(target, sender, settler, asyncio.Semaphore(self.in_flight))


class Ways:
    def __init__(self, own: Target, elsewhere: Elsewhere, manner: Manner) -> None:
        self._manner = manner
        self._own = manner.way(own)
        self._elsewhere = elsewhere
        self._further: dict[str, Way] = {}

    def find(self, cluster: str) -> Way | str:
        """The way to our own server where no cluster is named; else to that one, or why there is none."""
        if not cluster:
            return self._own
        target = self._elsewhere(cluster)
        if isinstance(target, str):
            self._further.pop(cluster, None)
            return f"cluster {cluster} is not connected: {target}"
        way = self._further.get(cluster)
        if way is None or way.target is not target:
            way = self._further[cluster] = self._manner.way(target)
        return way

    def swapped(self, cluster: str, seen_at: float) -> str:
        """Why nothing that follows from what was seen then is sent there; empty where it may be."""
        target = self._elsewhere(cluster)
        is_newer = isinstance(target, Target) and target.since > seen_at
        return f"cluster {cluster} may be another one than this was planned for" if is_newer else ""
