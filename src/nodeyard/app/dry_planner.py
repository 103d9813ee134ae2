"""Plans for a cluster without writing: the base of `nodeyard plan`, `why` and `approve`.

A DryPlanner uses the informers, snapshots and planners of the operator, so it shows what would run. `overlay` adds
objects to the caches, to plan as if they were applied. Remote clusters are read too; one that does not answer in time
is planned as unreachable and listed in `unreachable`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from random import Random
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.resources import of_kind
from nodeyard.kube.json import Object
from nodeyard.plan.brake import Limit
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.process.clock import Clock, SystemClock
from nodeyard.runtime.capability import Capability, Key, WatchNotSynced
from nodeyard.runtime.dry_plan import DryPlan, prepare_plan
from nodeyard.runtime.remote.cluster import ClusterCallbacks, ClusterEnvironment
from nodeyard.runtime.remote.clusters import Clusters
from nodeyard.runtime.remote.connect import Connect, Read, connect_by_kubeconfig, secret_reader
from nodeyard.watch.informers import InformerFactory
from nodeyard.watch.reflector import FORBIDDEN, InformerKey
from nodeyard.watch.shared_informer import SharedInformer, key_of
from nodeyard.watch.view import CacheView

SYNC_SECONDS: Final = 60.0
CLUSTER_SECONDS: Final = 10.0
"""Timeout for all remote clusters together."""
POLL_SECONDS: Final = 0.02
NAMED: Final = 3
"""Watches that a timeout error lists."""
MAX_ROUNDS: Final = 16
"""Bound on the chain of owners whose kinds an explanation needs."""

ConnectOf: TypeAlias = Callable[[Capability], Connect]
"""Returns how a capability connects to its remote clusters; two capabilities may have clusters of the same name."""
NO_LIMITS: Final[Mapping[str, Limit]] = MappingProxyType({})


class NotSynced(TimeoutError):
    """Informers did not sync in time; the text names the kinds."""


class ReadForbidden(Exception):
    """The account may not list what some capabilities watch; `reasons` are by capability."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
        self.reasons = reasons


@dataclass(frozen=True)
class UnreachableCluster:
    """A remote cluster that could not be read completely."""

    capability: str
    cluster: str
    reason: str

    def __str__(self) -> str:
        return f"{self.capability}: cluster {self.cluster} is unreachable: {self.reason}"


class DryPlanner:
    def __init__(
        self,
        informers: InformerFactory,
        views: Sequence[tuple[Capability, CacheView]],
        clock: Clock,
        clusters: Mapping[str, Clusters] | None = None,
    ) -> None:
        """`clusters` has the remote clusters of each capability, by its name."""
        self._informers = informers
        self._views = views
        self._clock = clock
        self._clusters = clusters or {}
        self.skipped: Mapping[str, str] = {}
        """Capabilities whose kinds the account may not read, with the missing right."""

    @property
    def capabilities(self) -> list[Capability]:
        """The capabilities that are planned."""
        return [capability for capability, _ in self._views]

    @property
    def views(self) -> dict[str, CacheView]:
        """The caches by capability."""
        return {capability.name: view for capability, view in self._views}

    def plans(self, limit: Limit, limits: Mapping[str, Limit] = NO_LIMITS) -> list[DryPlan]:
        """Plan every key, ordered by capability and key. `limits` override `limit` for single capabilities."""
        now = self._begin()
        found = [
            self._plan(capability, view, key, now, limits.get(capability.name, limit), ())
            for capability, view in self._views
            for key in sorted(set(capability.all_keys(view)))
        ]
        return [each for each in found if each is not None]

    def why(self, ref: ObjectRef, limits: Mapping[str, Limit] = NO_LIMITS) -> list[tuple[DryPlan, Decision]]:
        """Return the decisions about an object, each with the plan that contains it."""
        now = self._begin()
        return [
            (dry_plan, decision)
            for capability, view in self._views
            for key in sorted(set(capability.explain.keys_of(view, ref)))
            if (dry_plan := self._plan(capability, view, key, now, limits.get(capability.name, Limit()), (ref,)))
            for decision in dry_plan.decisions
        ]

    def why_all(
        self, refs: Iterable[ObjectRef], limits: Mapping[str, Limit] = NO_LIMITS
    ) -> list[tuple[DryPlan, Decision]]:
        """Return the decisions about many objects: each key is planned once for all its objects."""
        now, asked = self._begin(), tuple(refs)
        found: list[tuple[DryPlan, Decision]] = []
        for capability, view in self._views:
            by_key: dict[Key, dict[ObjectRef, None]] = {}
            for ref in asked:
                for key in capability.explain.keys_of(view, ref):
                    by_key.setdefault(key, {})[ref] = None
            for key, about in sorted(by_key.items()):
                limit = limits.get(capability.name, Limit())
                dry_plan = self._plan(capability, view, key, now, limit, tuple(about))
                found += ((dry_plan, decision) for decision in dry_plan.decisions) if dry_plan else ()
        return found

    def _begin(self) -> datetime:
        """Forget the reservations of earlier plans; return the time of the next ones."""
        for _, view in self._views:
            view.reservations.clear()
        return self._clock.now()

    async def watch_kinds_of(self, ref: ObjectRef) -> None:
        """Start watches on the kinds that only the explanation of this object needs (`Explain.kinds`)."""
        for _ in range(MAX_ROUNDS):
            unwatched = [
                (view, pair)
                for capability, view in self._views
                for pair in capability.explain.kinds(view, ref)
                if pair not in view.recent_kinds
            ]
            if not unwatched:
                return
            for view, (api_version, kind) in unwatched:
                view.record_lookup(of_kind(api_version, kind))
            await self.wait_for_sync()

    async def overlay(self, objects: Iterable[Object]) -> None:
        """Add objects to the caches, as the server answered them to a dry run.

        They may declare kinds or require others. Watches of those start then, and get their objects in a next round.
        """
        added = tuple(objects)
        done: set[SharedInformer] = set()
        fresh = self._informers.all
        while fresh:
            done |= {informer for informer in fresh if informer.is_running}
            for informer in fresh:
                _overlay(informer, added)
            await self.wait_for_sync()
            fresh = tuple(each for each in self._informers.all if each.is_running and each not in done)

    async def wait_for_sync(self) -> None:
        """Wait until all informers are synced, and until remote clusters are or their timeout has passed."""
        await _wait_for_sync(self._informers, self.capabilities)
        await asyncio.gather(*(each.settle(CLUSTER_SECONDS) for each in self._clusters.values()))

    @property
    def unreachable(self) -> list[UnreachableCluster]:
        return [
            UnreachableCluster(capability, each.name, each.view.error or f"no answer in {CLUSTER_SECONDS:g} s")
            for capability, clusters in sorted(self._clusters.items())
            for each in sorted(clusters.running, key=lambda cluster: cluster.name)
            if each.view.error or not each.is_settled
        ]

    def _plan(
        self,
        capability: Capability,
        view: CacheView,
        key: Key,
        now: datetime,
        limit: Limit,
        explain: Sequence[ObjectRef],
    ) -> DryPlan | None:
        try:
            make_plan = prepare_plan(capability, view, key, now, limit, explain)
        except WatchNotSynced as error:
            raise NotSynced(f"not synced: {error}; check that the server answers, and try again") from None
        if make_plan is None:
            return None
        planned, dry_plan = make_plan()
        # Nothing is written, so the keys that are planned later find these reservations, as in the operator.
        view.reservations.reserve(key, planned.reserves, planned.waits_for)
        return dry_plan


@asynccontextmanager
async def dry_planning(
    client: Client,
    capabilities: Sequence[Capability],
    clock: Clock | None = None,
    connect_of: ConnectOf = lambda _capability: connect_by_kubeconfig,
    read: Read | None = None,
) -> AsyncIterator[DryPlanner]:
    """Open a DryPlanner whose informers are synced."""
    clock = clock or SystemClock()
    informers = InformerFactory(client, clock, Random())
    env = ClusterEnvironment(clock, Random(), read=read or secret_reader(client))
    views = [(each, _register(informers, each)) for each in capabilities]
    clusters: dict[str, Clusters] = {}
    for capability, view in views:
        if capability.remote is not None:
            clusters[capability.name] = Clusters(
                capability, replace(env, connect=connect_of(capability)), ClusterCallbacks()
            )
            clusters[capability.name].attach(view)
    # A planner may need the cluster's uid and served versions. The operator would replan once they are known; a dry
    # plan is made only once, so both are requested beforehand.
    informers.server_info.ask_uid()
    informers.server_info.ask_versions()
    running = [asyncio.create_task(informers.run(), name="informers")]
    running += [asyncio.create_task(each.run(), name=f"clusters {name}") for name, each in clusters.items()]
    try:
        planner = DryPlanner(informers, views, clock, clusters)
        await planner.wait_for_sync()
        yield planner
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


@asynccontextmanager
async def dry_planning_readable(
    client: Client,
    capabilities: Sequence[Capability],
    clock: Clock | None = None,
    connect_of: ConnectOf = lambda _capability: connect_by_kubeconfig,
    read: Read | None = None,
) -> AsyncIterator[DryPlanner]:
    """Open a DryPlanner without the capabilities that the account may not read; ReadForbidden if none is left."""
    left = list(capabilities)
    refused: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        while True:
            try:
                planner = await stack.enter_async_context(dry_planning(client, left, clock, connect_of, read))
                break
            except ReadForbidden as error:
                refused |= error.reasons
                left = [each for each in left if each.name not in refused]
                if not left:
                    raise ReadForbidden(refused) from None
        planner.skipped = refused
        yield planner


def _register(informers: InformerFactory, capability: Capability) -> CacheView:
    declared = None if capability.dynamic is None else capability.dynamic.watches
    return informers.register(capability.watches, capability.aggregates, declared=declared)


async def _wait_for_sync(informers: InformerFactory, capabilities: Sequence[Capability]) -> None:
    """Wait for all informers. Raises ReadForbidden as soon as only forbidden watches are left."""
    try:
        async with asyncio.timeout(SYNC_SECONDS):
            while not informers.is_synced:
                if reasons := _forbidden(informers, capabilities):
                    raise ReadForbidden(reasons)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        missing = [f"{each.resource} ({each.error})" for each in informers.reports() if not each.is_synced]
        shown = ", ".join(missing[:NAMED]) + (f" and {len(missing) - NAMED} more" if len(missing) > NAMED else "")
        waiting = shown or "API discovery"
        raise NotSynced(f"not synced within {SYNC_SECONDS:g} s: {waiting}; check that the server answers") from None


def _forbidden(informers: InformerFactory, capabilities: Sequence[Capability]) -> dict[str, str]:
    """Return the missing rights by capability, once every other watch is synced."""
    waiting = [informer for informer in informers.all if informer.is_wanted and not informer.is_settled]
    if not all(FORBIDDEN in informer.error for informer in waiting):
        return {}
    refused = {_selection(informer.key): informer.error for informer in waiting}
    found = {}
    for capability in capabilities:
        watched = [_selection(key_of(watch)) for watch in capability.watches]
        errors = [refused[each] for each in watched if each in refused]
        if errors:
            watch, _, denial = errors[0].partition(FORBIDDEN)
            more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
            found[capability.name] = f"{watch}{more} ({denial.partition(' cannot ')[0]} lacks the right)"
    return found


def _selection(source: InformerKey) -> tuple[str, str, str, str, bool]:
    """Return the key of a watch without its version: a fallback version may be served instead."""
    resource = source.resource
    return resource.group, resource.kind, source.label_selector, source.field_selector, source.metadata_only


def _overlay(informer: SharedInformer, objects: Iterable[Object]) -> None:
    kind = (informer.resource.api_version, informer.resource.kind)
    for obj in objects:
        is_covered = informer.key.covers(obj.get("metadata", {}).get("namespace", ""))
        if is_covered and (obj.get("apiVersion"), obj.get("kind")) == kind:
            _put(informer.cache, obj, informer.resource.view)


def _put(cache: Any, obj: Object, type: type[Any]) -> None:
    """Put an object into a cache, and keep the cache's resourceVersion.

    The object is put without a resourceVersion, so the cache does not take it for older than what it has.
    """
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    unversioned = {**obj, "metadata": metadata}
    version = cache.version
    cache.deliver(unversioned if type is dict else msgspec.convert(unversioned, type))
    cache.version = version
