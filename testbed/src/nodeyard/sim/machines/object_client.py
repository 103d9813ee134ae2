"""Client of the simulated controllers: writes only differences and ignores objects that exist already or are gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nodeyard.client.api import Client, DeleteOptions
from nodeyard.client.errors import AlreadyExists, NotFound
from nodeyard.client.resources import EVENTS
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro
from nodeyard.process.clock import Clock
from nodeyard.sim.machines.objects import NewCondition, conditions, is_deleting
from nodeyard.sim.rest_mapper import LazyRESTMapper
from nodeyard.sim.stage_format import Kind


class ObjectClient:
    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock
        self._mapper = LazyRESTMapper(client, clock)

    def now(self) -> str:
        return format_rfc3339(self.clock.now())

    # reads

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        try:
            found = await self.client.get(await self._mapper.find(kind), name, namespace)
        except NotFound:
            return None
        return {**found, **_typed(kind)}

    async def resolve(self, reference: Object, namespace: str) -> Object | None:
        """Get the object that a reference by group, kind and name refers to."""
        try:
            resource = await self._mapper.find_preferred(reference["apiGroup"], reference["kind"])
            found = await self.client.get(resource, reference["name"], namespace)
        except NotFound:
            return None
        return {**found, "apiVersion": resource.api_version, "kind": resource.kind}

    async def api_version(self, group: str, kind: str) -> str:
        return (await self._mapper.find_preferred(group, kind)).api_version

    # writes

    async def create(self, obj: Object) -> bool:
        """Create an object; return False if it exists already."""
        try:
            await self.client.create(await self._mapper.find(_kind(obj)), obj)
        except AlreadyExists:
            return False
        return True

    async def patch(self, obj: Object, body: Object, part: str = "") -> None:
        """Send a merge patch, unless it changes nothing."""
        if _is_unchanged(obj, body):
            return
        metadata = obj["metadata"]
        resource = await self._mapper.find(_kind(obj))
        try:
            await self.client.patch(resource, metadata["name"], body, metadata.get("namespace", ""), subresource=part)
        except NotFound:
            return

    async def update_status(self, obj: Object, status: Object, updates: Iterable[NewCondition] = ()) -> None:
        """Set these fields and conditions of the status; keep other conditions."""
        wanted = dict(status)
        if updates:
            old = (obj.get("status") or {}).get("conditions") or []
            wanted["conditions"] = conditions(old, updates, self.now(), obj["metadata"].get("generation", 0))
        await self.patch(obj, {"status": wanted}, "status")

    async def delete(self, obj: Object) -> None:
        """Delete the object with this uid, unless it is being deleted."""
        metadata = obj["metadata"]
        if is_deleting(obj):
            return
        try:
            resource = await self._mapper.find(_kind(obj))
            options = DeleteOptions(uid=metadata.get("uid", ""))
            await self.client.delete(resource, metadata["name"], metadata.get("namespace", ""), options)
        except NotFound:
            return

    async def set_finalizer(self, obj: Object, finalizer: str, *, is_present: bool) -> None:
        """Add or remove a finalizer."""
        present = obj["metadata"].get("finalizers") or []
        if (finalizer in present) == is_present:
            return
        wanted = [*present, finalizer] if is_present else [each for each in present if each != finalizer]
        version = obj["metadata"]["resourceVersion"]  # optimistic locking: the patch replaces the whole list
        await self.patch(obj, {"metadata": {"finalizers": wanted, "resourceVersion": version}})

    async def record_warning(self, obj: Object, reason: str, note: str) -> None:
        """Record a Warning event about the object, once per reason."""
        metadata = obj["metadata"]
        regarding = {**_typed(_kind(obj)), "name": metadata["name"], "uid": metadata.get("uid", "")}
        namespace = metadata.get("namespace", "default")
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{metadata['name']}.{reason.lower()}", "namespace": namespace},
            "eventTime": format_rfc3339_micro(self.clock.now()),
            "reportingController": "nodeyard.dev/sim",
            "reportingInstance": "sim",
            "action": "Simulate",
            "reason": reason,
            "note": note,
            "type": "Warning",
            "regarding": {**regarding, "namespace": namespace},
        }
        try:
            await self.client.create(EVENTS, event)
        except AlreadyExists:
            return


def _kind(obj: Object) -> Kind:
    return Kind(obj["apiVersion"], obj["kind"])


def _typed(kind: Kind) -> dict[str, str]:
    return {"apiVersion": kind.api_version, "kind": kind.kind}


def _is_unchanged(present: Any, patch: Any) -> bool:
    if isinstance(patch, dict):
        return all(
            (value is None and (not isinstance(present, dict) or present.get(key) is None))
            or (value is not None and isinstance(present, dict) and _is_unchanged(present.get(key), value))
            for key, value in patch.items()
        )
    return bool(present == patch)
