"""Keeping up with one kind: list, then watch, and list again when the watch has lost its place.

A list replaces what was known: what is no longer there is reported as gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.decoding import Bookmark, Malformed
from nodeyard.client.errors import ClientError, Expired
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger

RETRY_SECONDS: Final = 1.0

_Name = tuple[str, str]
_log = get_logger("sim.feed")


class Informer:
    def __init__(
        self,
        client: Client,
        resource: Resource[Object],
        clock: Clock,
        on_put: Callable[[Object], None],
        on_gone: Callable[[Object], None],
    ) -> None:
        self.resource = resource
        self.is_synced = False
        self._client = client
        self._clock = clock
        self._on_put = on_put
        self._on_gone = on_gone
        self._known: dict[_Name, Object] = {}
        self._version = ""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Expired:
                self._version = ""
            except ClientError as error:
                _log.info("retrying", resource=str(self.resource), reason=str(error))
                await self._clock.sleep(RETRY_SECONDS)

    async def _list(self) -> None:
        page = await self._client.list(self.resource)
        present = {_name(item): item for item in page.items}
        for name in [name for name in self._known if name not in present]:
            self._gone(name)
        for name, item in present.items():
            self._put(name, item)
        self._version = page.resource_version
        self.is_synced = True

    async def _watch(self) -> None:
        async with self._client.watch(self.resource, resource_version=self._version) as events:
            async for event in events:
                if isinstance(event, (Bookmark, Malformed)):
                    self._version = event.resource_version
                elif event.type == "DELETED":
                    self._version = event.object["metadata"]["resourceVersion"]
                    self._gone(_name(event.object))
                else:
                    self._version = event.object["metadata"]["resourceVersion"]
                    self._put(_name(event.object), event.object)

    def _put(self, name: _Name, obj: Object) -> None:
        slim = self._slim(obj)
        self._known[name] = slim
        self._on_put(slim)

    def _gone(self, name: _Name) -> None:
        obj = self._known.pop(name, None)
        if obj is not None:
            self._on_gone(obj)

    def _slim(self, obj: Object) -> Object:
        """With its kind, and without what no stage looks at and takes most of the room: field ownership, images."""
        metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        slim = {**obj, "apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": metadata}
        status = obj.get("status")
        if isinstance(status, dict) and "images" in status:
            slim["status"] = {key: value for key, value in status.items() if key != "images"}
        return slim


def _name(obj: Object) -> _Name:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
