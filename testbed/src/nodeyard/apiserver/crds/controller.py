"""Serves the kinds of the stored CustomResourceDefinitions.

A new kind is in the registry before the create of its definition is answered; one whose names are taken waits until
they are free. A task then writes the conditions. It also carries out deletion: objects first, then the cleanup
finalizer, then the kind. A changed schema applies to writes at once; stored objects are pruned by it in batches, beside
the event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Protocol

from nodeyard.apiserver.crds.names import NameCheck, check_names
from nodeyard.apiserver.crds.reprune import Reprune, repruner
from nodeyard.apiserver.crds.resource import compile_ahead, resource_of
from nodeyard.apiserver.crds.strategy import CLEANUP
from nodeyard.apiserver.deletion import Deleter
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.store import Event, Store, Stored
from nodeyard.apiserver.watches import Hub
from nodeyard.apiserver.worker_thread import BATCH, STEP, WorkerThread
from nodeyard.kube.json import Json, Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import Clock

DEFINITIONS = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
_URL = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RETRY_SECONDS = 1.0


class Host(Protocol):
    """The part of the server that the controller needs."""

    store: Store
    registry: Registry
    clock: Clock
    hub: Hub
    deleter: Deleter
    worker_thread: WorkerThread

    async def call(self, method: str, url: str, body: Json = None) -> Json: ...


class _Names(NamedTuple):
    """The names of a definition in its spec and its status."""

    wanted: Object
    accepted: Object
    is_written: bool
    """True if the status has conditions."""


class DefinitionController:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._generations: dict[str, int] = {}
        self._names: dict[str, _Names] = {}
        self._pending: dict[str, None] = {}
        self._to_reprune: dict[GroupResource, deque[tuple[Reprune, list[Stored]]]] = {}
        """Objects that are still to be pruned by a changed schema."""
        self._working = False
        self._resumes = False
        self._wake = asyncio.Event()
        host.store.listen(self._on_event)

    def is_idle(self) -> bool:
        return not self._pending and not self._to_reprune and not self._working

    def resume(self) -> None:
        """Prepare for the events of a store that an earlier process has filled.

        The first definition may want the names of another one, and objects may wait to be pruned.
        """
        self._resumes = True
        for stored in self._host.store.list(DEFINITIONS):
            self._names[stored.key.name] = _names_of(stored.object())

    async def run(self) -> None:
        """Write conditions and carry out deletions until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending or self._to_reprune:
                for key in tuple(self._to_reprune):
                    await self._reprune_rest(key)
                if not self._pending:
                    break
                name = next(iter(self._pending))
                del self._pending[name]
                self._working = True
                try:
                    await self._reconcile(name)
                except ApiError as error:
                    self._pending[name] = None
                    await self._host.clock.sleep(0 if error.code == 409 else _RETRY_SECONDS)
                finally:
                    self._working = False

    def _on_event(self, key: GroupResource, event: Event) -> None:
        if key != DEFINITIONS:
            self._on_instance(key, event)
            return
        definition = event.stored.object()
        name = event.stored.key.name
        if event.type == "DELETED":
            self._withdraw(definition)
            self._generations.pop(name, None)
            self._pending.pop(name, None)
            self._names.pop(name, None)
        else:
            self._names[name] = _names_of(definition)
            self._serve(definition, name)
            self._pending[name] = None
        self._pending |= dict.fromkeys(self._waiting())
        self._wake.set()

    def _waiting(self) -> Iterator[str]:
        """Yield the definitions that are not served: a change of another one may release the names they want."""
        for name in self._names:
            if name not in self._generations:
                yield name

    def _on_instance(self, key: GroupResource, event: Event) -> None:
        """Reconcile a terminating definition after each deletion of an object, which may be the last one."""
        if event.type != "DELETED":
            return
        resource = self._host.registry.get(*key)
        if resource is not None and resource.terminating:
            self._pending[f"{key.plural}.{key.group}"] = None
            self._wake.set()

    def _serve(self, definition: Object, name: str) -> None:
        generation = definition["metadata"].get("generation", 0)
        spec = definition["spec"]
        current = self._host.registry.get(spec["group"], spec["names"]["plural"])
        if "deletionTimestamp" in definition["metadata"]:
            if current is None and self._resumes and _is_established(definition):
                current = resource_of(definition)
                self._host.registry.add(current)
            if current is not None:
                current.terminating = True
            return
        if current is None:
            if self._check_names(definition).has_conflict:
                return
        elif self._generations.get(name) == generation:
            return
        resource = resource_of(definition)
        reprune = repruner(current, resource) if current is not None else self._announced_repruner(resource)
        if reprune is not None:
            self._reprune_stored(resource.key, reprune)
        self._host.registry.add(resource)
        self._generations[name] = generation

    def _announced_repruner(self, resource: Resource) -> Reprune | None:
        """Return the function for objects that a process may have left unpruned when it was killed."""
        if not self._resumes or not self._host.store.count(resource.key):
            return None
        return repruner(replace(resource, versions={}), resource)

    def _reprune_stored(self, key: GroupResource, reprune: Reprune) -> None:
        """Prune a single batch at once and queue several: until then reads show what was stored."""
        if self._host.store.is_undoing:
            self._to_reprune.pop(key, None)  # The schema is taken back.
            return
        for earlier, batch in self._to_reprune.pop(key, ()):
            self._host.store.reread(key, _reprune_batch(earlier, batch))
        batches = list(_batches(self._host.store.list(key)))
        if len(batches) > 1:
            self._to_reprune[key] = deque((reprune, batch) for batch in batches)
            return
        for batch in batches:
            self._host.store.reread(key, _reprune_batch(reprune, batch))

    async def _reprune_rest(self, key: GroupResource) -> None:
        while left := self._to_reprune.get(key):
            reprune, batch = left[0]
            with self._host.worker_thread.work() as work:
                read = await work.run(True, partial(_reprune_batch, reprune, batch))
                if self._to_reprune.get(key) is left:
                    self._host.store.reread(key, read)
                    left.popleft()
        self._to_reprune.pop(key, None)

    def _withdraw(self, definition: Object) -> None:
        spec = definition["spec"]
        key = GroupResource(spec["group"], spec["names"]["plural"])
        self._to_reprune.pop(key, None)
        self._host.registry.remove(key)
        self._host.hub.end(key)

    async def _reconcile(self, name: str) -> None:
        stored = self._host.store.get(DEFINITIONS, "", name)
        if stored is None:
            return
        definition = stored.object()
        if "deletionTimestamp" in definition["metadata"]:
            await self._clean_up(definition)
            return
        if name not in self._generations:  # It may be served soon, and then from the loop.
            with self._host.worker_thread.work() as work:
                await work.run(True, partial(compile_ahead, definition))
        status = self._status(definition)
        if status != definition.get("status"):
            await self._host.call("PUT", f"{_URL}/{name}/status", {**definition, "status": status})

    def _status(self, definition: Object) -> Object:
        """Compute the status. An established kind stays established, whatever names it wants later."""
        status = definition.get("status") or {}
        check = self._check_names(definition)
        now = format_rfc3339(self._host.clock.now())
        accepted = "False" if check.has_conflict else "True"
        conditions = status.get("conditions") or []
        is_established = _is_established(definition)
        conditions = _set(conditions, now, "NamesAccepted", accepted, check.reason, check.message)
        if not is_established:
            reason, message = (
                ("NotAccepted", "not all names are accepted")
                if check.has_conflict
                else ("InitialNamesAccepted", "the initial names have been accepted")
            )
            conditions = _set(conditions, now, "Established", accepted, reason, message)
        return {**status, "conditions": conditions, "acceptedNames": check.accepted}

    def _check_names(self, definition: Object) -> NameCheck:
        """Check whether the names that the definition wants are free in its group."""
        name = definition["metadata"]["name"]
        group = name.partition(".")[2]
        others = (self._accepted(other) for other in self._names if other != name and other.partition(".")[2] == group)
        return check_names(
            definition["spec"]["names"], (definition.get("status") or {}).get("acceptedNames") or {}, others
        )

    def _accepted(self, name: str) -> Object:
        """Return the accepted names; those of the spec if it is served and its status is not written yet."""
        names = self._names[name]
        return names.accepted if names.is_written or name not in self._generations else names.wanted

    async def _clean_up(self, definition: Object) -> None:
        """Delete the objects; when the last is gone, remove the cleanup finalizer."""
        spec, name = definition["spec"], definition["metadata"]["name"]
        resource = self._host.registry.get(spec["group"], spec["names"]["plural"])
        if resource is not None:
            await self._host.deleter.discard(resource, self._host.worker_thread)
            if self._host.store.count(resource.key):
                return
        finalizers = [each for each in definition["metadata"].get("finalizers") or () if each != CLEANUP]
        metadata = {**definition["metadata"], "finalizers": finalizers}
        await self._host.call("PUT", f"{_URL}/{name}", {**definition, "metadata": metadata})


def _names_of(definition: Object) -> _Names:
    status = definition.get("status") or {}
    return _Names(definition["spec"]["names"], status.get("acceptedNames") or {}, bool(status.get("conditions")))


def _is_established(definition: Object) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _batches(objects: Iterable[Stored]) -> Iterator[list[Stored]]:
    batch: list[Stored] = []
    size = 0
    for stored in objects:
        batch.append(stored)
        size += len(stored.raw) + STEP
        if size > BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _reprune_batch(reprune: Reprune, batch: list[Stored]) -> list[tuple[Stored, Stored]]:
    return [(stored, reprune(stored)) for stored in batch]


def _set(conditions: Iterable[Object], now: str, kind: str, status: str, reason: str, message: str) -> list[Object]:
    found: list[Object] = []
    current = {"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message}
    is_known = False
    for condition in conditions:
        if condition["type"] != kind:
            found.append(condition)
            continue
        is_known = True
        if condition["status"] == status:
            current["lastTransitionTime"] = condition["lastTransitionTime"]
        found.append(current)
    return found if is_known else [*found, current]
