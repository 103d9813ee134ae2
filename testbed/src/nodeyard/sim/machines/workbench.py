"""How procedures read and write: only what differs, and without minding that something is there already, or gone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nodeyard.client.api import Client, DeleteOptions
from nodeyard.client.errors import AlreadyExists, NotFound
from nodeyard.client.resources import EVENTS
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro
from nodeyard.process.clock import Clock
from nodeyard.sim.kinds import Kinds
from nodeyard.sim.machines.facts import Seen, conditions, is_deleting
from nodeyard.sim.stage_format import Kind


class Workbench:
    def __init__(self, client: Client, clock: Clock) -> None:
        self.client = client
        self.clock = clock
        self._kinds = Kinds(client, clock)

    def now(self) -> str:
        return format_rfc3339(self.clock.now())

    # reading

    async def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        try:
            found = await self.client.get(await self._kinds.resource(kind), name, namespace)
        except NotFound:
            return None
        return {**found, **_typed(kind)}

    async def follow(self, reference: Object, namespace: str) -> Object | None:
        """What a reference by group and kind leads to."""
        try:
            resource = await self._kinds.referred(reference["apiGroup"], reference["kind"])
            found = await self.client.get(resource, reference["name"], namespace)
        except NotFound:
            return None
        return {**found, "apiVersion": resource.api_version, "kind": resource.kind}

    async def api_version(self, group: str, kind: str) -> str:
        return (await self._kinds.referred(group, kind)).api_version

    # writing

    async def create(self, obj: Object) -> bool:
        """Whether it is new."""
        try:
            await self.client.create(await self._kinds.resource(_kind(obj)), obj)
        except AlreadyExists:
            return False
        return True

    async def patch(self, obj: Object, body: Object, part: str = "") -> None:
        """A merge patch; nothing is sent when it changes nothing."""
        if _adds_nothing(obj, body):
            return
        metadata = obj["metadata"]
        resource = await self._kinds.resource(_kind(obj))
        try:
            await self.client.patch(resource, metadata["name"], body, metadata.get("namespace", ""), subresource=part)
        except NotFound:
            return

    async def report(self, obj: Object, status: Object, seen: Iterable[Seen] = ()) -> None:
        """Set these fields of its status, and these conditions beside those of others."""
        wanted = dict(status)
        if seen:
            old = (obj.get("status") or {}).get("conditions") or []
            wanted["conditions"] = conditions(old, seen, self.now(), obj["metadata"].get("generation", 0))
        await self.patch(obj, {"status": wanted}, "status")

    async def delete(self, obj: Object) -> None:
        """That very object, unless it is on its way."""
        metadata = obj["metadata"]
        if is_deleting(obj):
            return
        try:
            resource = await self._kinds.resource(_kind(obj))
            options = DeleteOptions(uid=metadata.get("uid", ""))
            await self.client.delete(resource, metadata["name"], metadata.get("namespace", ""), options)
        except NotFound:
            return

    async def finalize(self, obj: Object, finalizer: str, *, is_held: bool) -> None:
        """Hold it, or let it go."""
        present = obj["metadata"].get("finalizers") or []
        if (finalizer in present) == is_held:
            return
        wanted = [*present, finalizer] if is_held else [each for each in present if each != finalizer]
        version = obj["metadata"]["resourceVersion"]  # a list is replaced whole: not on top of what others added
        await self.patch(obj, {"metadata": {"finalizers": wanted, "resourceVersion": version}})

    async def warn(self, obj: Object, reason: str, note: str) -> None:
        """An Event about it, once."""
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


def _adds_nothing(present: Any, patch: Any) -> bool:
    if isinstance(patch, dict):
        return all(
            (value is None and (not isinstance(present, dict) or present.get(key) is None))
            or (value is not None and isinstance(present, dict) and _adds_nothing(present.get(key), value))
            for key, value in patch.items()
        )
    return bool(present == patch)
