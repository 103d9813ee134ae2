"""Looks at a cluster once and plans, without writing: what `nodeyard plan`, `why` and `approve` stand on.

The same watches, snapshots and planners as in the operator, so what is shown is what would run. Objects can be laid
over what is there (`suppose`), to see what would be done if they were. Further clusters are looked at too; one that
does not answer in time is planned as out of reach, and named.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.resources import of_kind
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Braked, Limit, brake
from nodeyard.plan.identity import identified
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.plan.reasons import Messages
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.runtime.capability import Capability, Key, View
from nodeyard.runtime.cluster import Following, Surroundings
from nodeyard.runtime.clusters import Clusters
from nodeyard.runtime.reaching import Connect, reach
from nodeyard.runtime.roots import approvals
from nodeyard.watch.feeds import Feed
from nodeyard.watch.view import CacheView
from nodeyard.watch.watches import Watches

SYNC_SECONDS: Final = 60.0
CLUSTER_SECONDS: Final = 10.0
"""How long further clusters are waited for, all at once."""
MOST_ROUNDS: Final = 16
"""Of owners and owners' owners."""


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
    wider: Sequence[Any] = ()

    @property
    def has_changes(self) -> bool:
        return bool(self.braked.now.actions) or self.braked.held is not None


@dataclass(frozen=True)
class Unreached:
    """A further cluster that was not seen, or not all of it."""

    capability: str
    cluster: str
    why: str

    def __str__(self) -> str:
        return f"{self.capability}: cluster {self.cluster} could not be reached: {self.why}"


class Inspection:
    def __init__(
        self,
        watches: Watches,
        views: Sequence[tuple[Capability, CacheView]],
        clock: Clock,
        clusters: Mapping[str, Clusters] | None = None,
    ) -> None:
        """The further clusters are those of each capability, by its name."""
        self._watches = watches
        self._views = views
        self._clock = clock
        self._clusters = clusters or {}

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

    async def meet(self, ref: ObjectRef) -> None:
        """Have the kinds watched that an object's explanation needs beyond what is watched anyway."""
        for _ in range(MOST_ROUNDS):
            met = [
                (view, pair)
                for capability, view in self._views
                for pair in capability.sights(view, ref)
                if pair not in view.sightings
            ]
            if not met:
                return
            for view, (api_version, kind) in met:
                view.see(of_kind(api_version, kind))
            await self.settle()

    async def suppose(self, objects: Iterable[Object]) -> None:
        """From here on these are there, as the server answered them to a dry run.

        They may declare kinds, or make others needed, whose watches only then begin and whose objects follow.
        """
        supposed = tuple(objects)
        told: set[Feed] = set()
        fresh = self._watches.feeds
        while fresh:
            told |= {feed for feed in fresh if feed.is_running}
            for feed in fresh:
                _suppose(feed, supposed)
            await self.settle()
            fresh = tuple(feed for feed in self._watches.feeds if feed.is_running and feed not in told)

    async def settle(self) -> None:
        """Everything that is watched has been told, here and, where it answers in time, elsewhere."""
        await _synced(self._watches)
        await asyncio.gather(*(each.settle(CLUSTER_SECONDS) for each in self._clusters.values()))

    @property
    def unreached(self) -> list[Unreached]:
        return [
            Unreached(capability, each.name, each.view.error or f"no answer in {CLUSTER_SECONDS:g} s")
            for capability, clusters in sorted(self._clusters.items())
            for each in sorted(clusters.named, key=lambda cluster: cluster.name)
            if each.view.error or not each.is_settled
        ]

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
        plan = identified(capability.plan(snapshot, now, explain).plan)
        roots, wider = capability.roots(view, key), capability.wider(view, key)
        braked = brake(plan, limit, capability.managed(snapshot), approvals((*roots, *wider)))
        return Look(capability, key, braked, plan.decisions, roots, wider)


@asynccontextmanager
async def inspecting(
    client: Client, capabilities: Sequence[Capability], clock: Clock | None = None, connect: Connect = reach
) -> AsyncIterator[Inspection]:
    """Everything the capabilities watch has been told when it yields."""
    clock = clock or SystemClock()
    watches, around = Watches(client, clock, Random()), Surroundings(clock, Random(), connect)
    views = [(each, _registered(watches, each)) for each in capabilities]
    clusters = {each.name: Clusters(each, around, Following()) for each, _ in views if each.has_clusters}
    for capability, view in views:
        if capability.has_clusters:
            clusters[capability.name].attach(view)
    # A planner may ask which cluster this is and what it serves; there is no second look at which it would be known.
    watches.facts.ask_uid()
    watches.facts.ask_versions()
    running = [asyncio.create_task(watches.run(), name="watches")]
    running += [asyncio.create_task(each.run(), name=f"clusters {name}") for name, each in clusters.items()]
    try:
        inspection = Inspection(watches, views, clock, clusters)
        await inspection.settle()
        yield inspection
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _registered(watches: Watches, capability: Capability) -> CacheView:
    declared = capability.declared if capability.has_declared else None
    return watches.register(capability.watches, capability.aggregates, declared=declared)


async def _synced(watches: Watches) -> None:
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            await watches.synced()
    except TimeoutError:
        missing = [f"{each.source} ({each.error})" for each in watches.reports() if not each.is_synced]
        what = ", ".join(missing) or "which kinds it serves"
        raise NotSynced(f"the server did not tell within {SYNC_SECONDS:g} s: {what}") from None


def _suppose(feed: Feed, objects: Iterable[Object]) -> None:
    kind = (feed.resource.api_version, feed.resource.kind)
    for obj in objects:
        if (obj.get("apiVersion"), obj.get("kind")) == kind:
            _lay_over(feed.cache, obj, feed.resource.view)


def _lay_over(cache: Any, obj: Object, type: type[Any]) -> None:
    """Without a version it is like no other, so the cache takes it whatever it has; its own place it keeps."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    supposed = {**obj, "metadata": metadata}
    version = cache.version
    cache.deliver(supposed if type is dict else msgspec.convert(supposed, type))
    cache.version = version
