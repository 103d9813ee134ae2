"""Informer of one kind: lists, then watches, and relists when its resourceVersion has expired.

A list replaces what is known: objects that it lacks are reported as deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.decoder import Bookmark, Malformed
from nodeyard.client.errors import ClientError, Expired
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

RETRY_SECONDS: Final = 1.0

_Name = tuple[str, str]
_log = get_logger("sim.informer")


class Informer:
    def __init__(
        self,
        client: Client,
        resource: Resource[Object],
        clock: Clock,
        on_update: Callable[[Object], None],
        on_delete: Callable[[Object], None],
    ) -> None:
        self.resource = resource
        self.is_synced = False
        self._client = client
        self._clock = clock
        self._on_update = on_update
        self._on_delete = on_delete
        self._known: dict[_Name, Object] = {}
        self._version = ""

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired:
                self._version = ""
            except ClientError as error:
                _log.info("watch failed", resource=str(self.resource), error=str(error))
                await self._clock.sleep(RETRY_SECONDS)

    async def _list(self) -> None:
        page = await self._client.list(self.resource)
        present = {_name(item): item for item in page.items}
        for name in [name for name in self._known if name not in present]:
            self._delete(name)
        for name, item in present.items():
            self._update(name, item)
        self._version = page.resource_version
        self.is_synced = True

    async def _watch(self) -> None:
        async with self._client.watch(self.resource, resource_version=self._version) as events:
            async for event in events:
                if isinstance(event, (Bookmark, Malformed)):
                    self._version = event.resource_version
                elif event.type == "DELETED":
                    self._version = event.object["metadata"]["resourceVersion"]
                    self._delete(_name(event.object))
                else:
                    self._version = event.object["metadata"]["resourceVersion"]
                    self._update(_name(event.object), event.object)

    def _update(self, name: _Name, obj: Object) -> None:
        trimmed = self._trimmed(obj)
        self._known[name] = trimmed
        self._on_update(trimmed)

    def _delete(self, name: _Name) -> None:
        obj = self._known.pop(name, None)
        if obj is not None:
            self._on_delete(obj)

    def _trimmed(self, obj: Object) -> Object:
        """Add apiVersion and kind; drop managedFields and images, which no stage reads and which take most memory."""
        metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        trimmed = {**obj, "apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": metadata}
        status = obj.get("status")
        if isinstance(status, dict) and "images" in status:
            trimmed["status"] = {key: value for key, value in status.items() if key != "images"}
        return trimmed


def _name(obj: Object) -> _Name:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
