"""Looks at a cluster once and plans, without writing: what `nodeyard plan`, `why` and `approve` stand on.

The same watches, snapshots and planners as in the operator, so what is shown is what would run. Objects can be laid
over what is there (`suppose`), to see what would be done if they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Braked, Limit, brake
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.plan.reasons import Messages
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.runtime.capability import Capability, Key, View
from nodeyard.runtime.roots import approvals
from nodeyard.watch.watches import Watches

SYNC_SECONDS: Final = 60.0


class NotSynced(TimeoutError):
    """The text names the kinds that the server did not tell."""


@dataclass(frozen=True)
class Look:
    """One key of one capability, planned."""

    capability: Capability
    key: Key
    braked: Braked
    decisions: tuple[Decision, ...]
    roots: Sequence[Any]

    @property
    def has_changes(self) -> bool:
        return bool(self.braked.now.actions) or self.braked.held is not None


class Inspection:
    def __init__(self, watches: Watches, views: Sequence[tuple[Capability, View]], clock: Clock) -> None:
        self._watches = watches
        self._views = views
        self._clock = clock

    def plans(self, limit: Limit) -> list[Look]:
        """Every key of every capability, by capability and key."""
        now = self._clock.now()
        found = [
            self._look(capability, view, key, now, limit, ())
            for capability, view in self._views
            for key in sorted(set(capability.all_keys(view)))
        ]
        return [look for look in found if look is not None]

    def why(self, ref: ObjectRef) -> list[tuple[str, Decision, Messages]]:
        """What each capability has to say about an object."""
        now = self._clock.now()
        return [
            (capability.name, decision, capability.messages)
            for capability, view in self._views
            for key in sorted(set(capability.keys_of(view, ref)))
            if (look := self._look(capability, view, key, now, Limit(), (ref,))) is not None
            for decision in look.decisions
        ]

    async def suppose(self, objects: Iterable[Object]) -> None:
        """From here on these are there, as the server answered them to a dry run."""
        for obj in objects:
            for feed in self._watches.feeds:
                if (feed.resource.api_version, feed.resource.kind) == (obj.get("apiVersion"), obj.get("kind")):
                    _lay_over(feed.cache, obj, feed.resource.view)
        await _synced(self._watches)

    def _look(
        self,
        capability: Capability,
        view: View,
        key: Key,
        now: datetime,
        limit: Limit,
        explain: Sequence[ObjectRef],
    ) -> Look | None:
        snapshot = capability.collect(view, key, now)
        if snapshot is None:
            return None
        plan = capability.plan(snapshot, now, explain).plan
        roots = capability.roots(view, key)
        braked = brake(plan, limit, capability.managed(snapshot), approvals(roots))
        return Look(capability, key, braked, plan.decisions, roots)


@asynccontextmanager
async def inspecting(
    client: Client, capabilities: Sequence[Capability], clock: Clock | None = None
) -> AsyncIterator[Inspection]:
    """Everything the capabilities watch has been told when it yields."""
    clock = clock or SystemClock()
    watches = Watches(client, clock, Random())
    views = [(each, watches.register(each.watches, each.aggregates)) for each in capabilities]
    running = asyncio.create_task(watches.run(), name="watches")
    try:
        await _synced(watches)
        yield Inspection(watches, views, clock)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _synced(watches: Watches) -> None:
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            await watches.synced()
    except TimeoutError:
        missing = [f"{each.source} ({each.error})" for each in watches.reports() if not each.is_synced]
        raise NotSynced(f"the server did not tell within {SYNC_SECONDS:g} s: {', '.join(missing)}") from None


def _lay_over(cache: Any, obj: Object, type: type[Any]) -> None:
    """Without a version it is like no other, so the cache takes it whatever it has; its own place it keeps."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    supposed = {**obj, "metadata": metadata}
    version = cache.version
    cache.deliver(supposed if type is dict else msgspec.convert(supposed, type))
    cache.version = version
