"""The garbage collector: deletes dependents of missing owners, and releases owners when their dependents have gone.

Finalizers tell three deletions apart. In the background the owner is removed at once, and each dependent is checked
after it. In the foreground (`foregroundDeletion`) the owner waits for the dependents that block it. With `orphan` it
waits until its dependents no longer refer to it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from nodeyard.apiserver.controllers.controller import Cluster, Controller, service_account
from nodeyard.apiserver.controllers.metadata import (
    CRDS,
    FOREGROUND,
    ORPHAN,
    Metadata,
    ObjectId,
    OwnerReference,
    may_be_deleting,
    may_have_owners,
    metadata_of,
)
from nodeyard.apiserver.controllers.ownership_graph import Owners, OwnershipGraph, unblocked
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Event
from nodeyard.kube.json import Json

_IGNORED: Final = frozenset((GroupResource("", "events"), GroupResource("events.k8s.io", "events")))


class _OwnerStates(NamedTuple):
    """The owners of an object by their state."""

    solid: Owners
    dangling: Owners
    waiting: Owners
    """Owners that are being deleted in the foreground and wait for this object."""


class _UnresolvedError(Exception):
    """An owner's kind is not served or cannot own this object, which is then left alone."""


class GarbageCollector(Controller[ObjectId]):
    name = "garbage-collector-controller"
    user = service_account("generic-garbage-collector")

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._graph = OwnershipGraph()
        self._foreground: dict[str, ObjectId] = {}
        """Owners that wait for their dependents, by uid."""
        self._unresolved: dict[str, ObjectId] = {}
        """Dependents of owners whose kind is not served (yet)."""

    def observe(self, resource: GroupResource, event: Event) -> None:
        if resource in _IGNORED:
            return
        stored = event.stored
        if event.type == "DELETED":
            self._observe_end(stored.uid)
            return
        if may_have_owners(stored.raw) or stored.uid in self._graph:
            self._observe_owners(ObjectId(resource, stored.key, stored.uid), metadata_of(stored.raw).owners)
        if may_be_deleting(stored.raw):
            self._observe_deletion(ObjectId(resource, stored.key, stored.uid), metadata_of(stored.raw))
        if resource == CRDS:
            self._requeue_unresolved()

    def _observe_end(self, uid: str) -> None:
        self._unresolved.pop(uid, None)
        self._foreground.pop(uid, None)
        for dependent in self._graph.dependents(uid):
            self.queue.add(dependent)
        for owner in self._graph.forget(uid):
            self._requeue_waiting(owner.uid)

    def _observe_owners(self, dependent: ObjectId, owners: Owners) -> None:
        before = self._graph.owners(dependent.uid)
        if before == owners:
            return
        self._graph.replace(dependent, owners)
        for uid in unblocked(before, owners):
            self._requeue_waiting(uid)
        self.queue.add(dependent)

    def _observe_deletion(self, found: ObjectId, metadata: Metadata) -> None:
        if not metadata.is_deleting:
            return
        if metadata.has_finalizer(ORPHAN):
            self.queue.add(found)
        elif metadata.has_finalizer(FOREGROUND) and found.uid not in self._foreground:
            self._foreground[found.uid] = found
            for dependent in self._graph.dependents(found.uid):
                self.queue.add(dependent)
            self.queue.add(found)

    def _requeue_waiting(self, uid: str) -> None:
        waiting = self._foreground.get(uid)
        if waiting is not None:
            self.queue.add(waiting)

    def _requeue_unresolved(self) -> None:
        """Requeue the dependents of kinds that were not served before."""
        for dependent in self._unresolved.values():
            self.queue.add(dependent)

    async def reconcile(self, key: ObjectId) -> float | None:
        stored = self.store.get(key.resource, *key.key)
        if stored is None or stored.uid != key.uid:
            return None
        metadata = metadata_of(stored.raw)
        if not metadata.is_deleting:
            await self._collect(key, metadata)
        elif metadata.has_finalizer(ORPHAN):
            await self._orphan_dependents(key, metadata)
        elif metadata.has_finalizer(FOREGROUND):
            await self._await_dependents(key, metadata)
        return None

    # dependents

    async def _collect(self, found: ObjectId, metadata: Metadata) -> None:
        self._unresolved.pop(found.uid, None)
        if not metadata.owners:
            return
        try:
            judgement = self._classify(found, metadata.owners)
        except _UnresolvedError:
            self._unresolved[found.uid] = found
            return
        if judgement.solid:
            if judgement.dangling or judgement.waiting:
                await self._set_owners(found, metadata, judgement.solid)
        elif judgement.waiting and self._graph.dependents(found.uid):
            await self._break_cycle(found, metadata)
            await self._delete(found, "Foreground")
        else:
            await self._delete(found, _inherited_policy(metadata), metadata.resource_version)

    def _classify(self, found: ObjectId, owners: Owners) -> _OwnerStates:
        solid, dangling, waiting = [], [], []
        for owner in owners:
            metadata = self._owner_metadata(found, owner)
            if metadata is None:
                dangling.append(owner)
            elif metadata.is_deleting and metadata.has_finalizer(FOREGROUND):
                waiting.append(owner)
            else:
                solid.append(owner)
        return _OwnerStates(tuple(solid), tuple(dangling), tuple(waiting))

    def _owner_metadata(self, found: ObjectId, owner: OwnerReference) -> Metadata | None:
        """Return the owner; None if it is gone or another object has its name."""
        resource = self._kind(owner)
        if resource.namespaced and not found.key.namespace:
            raise _UnresolvedError
        namespace = found.key.namespace if resource.namespaced else ""
        stored = self.store.get(resource.key, namespace, owner.name)
        if stored is None or stored.uid != owner.uid:
            return None
        return metadata_of(stored.raw)

    def _kind(self, owner: OwnerReference) -> Resource:
        resource = self.cluster.registry.by_kind(owner.group, owner.kind)
        version = resource.versions.get(owner.version) if resource else None
        if resource is None or version is None or not version.served:
            raise _UnresolvedError
        return resource

    async def _break_cycle(self, found: ObjectId, metadata: Metadata) -> None:
        """Unblock the owners of an object that owns them: they would wait for each other."""
        if any(dependent.uid in self._foreground for dependent in self._graph.dependents(found.uid)):
            free = tuple(msgspec.structs.replace(owner, block_owner_deletion=False) for owner in metadata.owners)
            await self._set_owners(found, metadata, free)

    # owners

    async def _await_dependents(self, found: ObjectId, metadata: Metadata) -> None:
        blocking = self._graph.blocking_dependents(found.uid)
        if not blocking:
            await self._drop_finalizer(found, metadata, FOREGROUND)
        for dependent in blocking:
            if dependent.uid not in self._foreground:
                self.queue.add(dependent)

    async def _orphan_dependents(self, found: ObjectId, metadata: Metadata) -> None:
        for dependent in self._graph.dependents(found.uid):
            stored = self.store.get(dependent.resource, *dependent.key)
            if stored is None or stored.uid != dependent.uid:
                continue
            theirs = metadata_of(stored.raw)
            await self._set_owners(dependent, theirs, tuple(o for o in theirs.owners if o.uid != found.uid))
        await self._drop_finalizer(found, metadata, ORPHAN)

    # writes

    async def _delete(self, found: ObjectId, policy: str, resource_version: str = "") -> None:
        preconditions = {"uid": found.uid}
        if resource_version:
            preconditions["resourceVersion"] = resource_version
        options = {"preconditions": preconditions, "propagationPolicy": policy}
        await self.call("DELETE", self.url(found.resource, found.key), options)

    async def _set_owners(self, found: ObjectId, metadata: Metadata, owners: Owners) -> None:
        listed: Json = msgspec.to_builtins(owners) if owners else None
        await self._patch_metadata(found, metadata, {"ownerReferences": listed})

    async def _drop_finalizer(self, found: ObjectId, metadata: Metadata, name: str) -> None:
        kept = [finalizer for finalizer in metadata.finalizers or () if finalizer != name]
        await self._patch_metadata(found, metadata, {"finalizers": kept or None})

    async def _patch_metadata(self, found: ObjectId, metadata: Metadata, change: dict[str, Json]) -> None:
        known = {"uid": found.uid, "resourceVersion": metadata.resource_version}
        await self.patch(self.url(found.resource, found.key), {"metadata": {**known, **change}})


def _inherited_policy(metadata: Metadata) -> str:
    """Return the propagation policy; a finalizer of the object takes precedence."""
    if metadata.has_finalizer(ORPHAN):
        return "Orphan"
    if metadata.has_finalizer(FOREGROUND):
        return "Foreground"
    return "Background"
