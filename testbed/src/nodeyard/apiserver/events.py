"""Events: one collection under two groups, each Event removed an hour after its last write.

core/v1 and events.k8s.io/v1 name the fields of an Event differently. An Event written in one group is stored in the
other at the same revision, so that both can be read, listed, selected and watched. etcd expires events by a lease;
here a read or write of events removes the expired ones.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from nodeyard.apiserver import codec
from nodeyard.apiserver.registry import Registry
from nodeyard.apiserver.resources import GroupResource, Resource
from nodeyard.apiserver.responses import canonical
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Event, Key, Store
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock

CORE = GroupResource("", "events")
OWN = GroupResource("events.k8s.io", "events")
TTL = timedelta(hours=1)
_BATCH = 500
"""Events that are removed in about 10 ms."""

_CORE_TO_OWN = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_OWN_TO_CORE = {own: core for core, own in _CORE_TO_OWN.items()}


class Events:
    """Mirrors events between the two groups and removes expired ones."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        core, own = registry.get(*CORE), registry.get(*OWN)
        assert core is not None
        assert own is not None
        self._store = store
        self._clock = clock
        self._written: deque[tuple[datetime, Key, int]] = deque()
        """Write time, key and revision of each, the oldest first."""
        store.pair(CORE, OWN, lambda obj: _converted(obj, own, _CORE_TO_OWN))
        store.pair(OWN, CORE, lambda obj: _converted(obj, core, _OWN_TO_CORE))
        store.listen(self._note)

    async def expire(self) -> None:
        """Remove the events that were last written an hour ago or earlier; other requests are served meanwhile."""
        until = self._clock.now() - TTL
        for count in itertools.count(1):
            if not self._written or self._written[0][0] > until:
                return
            _, key, revision = self._written.popleft()
            stored = self._store.get(CORE, *key)
            if stored is not None and stored.revision == revision:
                self._store.remove(CORE, stored)
            if count % _BATCH == 0:
                await asyncio.sleep(0)

    def written(self) -> dict[int, float]:
        """Return the write times of all events by revision."""
        return {revision: time.timestamp() for time, _, revision in self._written}

    def restore(self, written: Mapping[int, float]) -> None:
        """Take over the write times of an earlier process."""
        times = (
            (datetime.fromtimestamp(written[stored.revision], UTC), stored.key, stored.revision)
            for stored in self._store.list(CORE)
            if stored.revision in written
        )
        self._written = deque(sorted(times))

    def _note(self, resource: GroupResource, event: Event) -> None:
        if resource == CORE and event.type != "DELETED":
            self._written.append((self._clock.now(), event.stored.key, event.revision))


def _converted(obj: Object, into: Resource, names: Mapping[str, str]) -> tuple[Object, Mapping[str, str]]:
    """Convert an event to the other group, with its selectable fields."""
    renamed = {names.get(name, name): value for name, value in obj.items() if value not in (None, "", {}, 0)}
    version = into.storage_version
    read = codec.read(into, version, renamed)[0]
    return canonical(read, into.kind, into.api_version(version)), selectable(into, read)
