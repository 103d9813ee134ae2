"""The caches as one capability sees them: by kind, with its own indexes and aggregates under its own names.

Nothing is copied for a plan. `collect` runs on the event loop without awaiting, so no cache can change under it; what
it takes out are immutable objects and tuples, which it may carry to another thread. A kind that two groups have is
named with its group: `Cluster.kosmos.io`, `Node.core`. Kinds that users declare come and go while it is looked at.

Views of further clusters are of the same make; who connects them says how the connection is doing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nodeyard.client.decoding import Malformed
from nodeyard.client.resources import Resource
from nodeyard.kube.identity import Key
from nodeyard.watch.aggregates import Fold
from nodeyard.watch.facts import Inquiry
from nodeyard.watch.feeds import Feed, full_name
from nodeyard.watch.indexes import Index
from nodeyard.watch.sightings import Sightings


class CacheView:
    def __init__(
        self,
        feeds: Mapping[str, Feed],
        indexes: Mapping[tuple[str, str], Index],
        folds: Mapping[str, Fold],
        inquiry: Inquiry,
    ) -> None:
        self._feeds = feeds
        self._indexes = indexes
        self._folds = folds
        self._inquiry = inquiry
        self._sightings = Sightings()
        self.name = ""
        """Of a further cluster; ours has none."""
        self.is_connected = True
        self.connected_at: datetime | None = None
        self.error = ""
        self.version = ""
        """Of a further cluster's API server."""
        self.findings: dict[str, Any] = {}
        """What loops have found out, by name."""
        self.elsewhere: Callable[[str], CacheView] = _nowhere
        """The view of a further cluster, by its name."""
        self.look: Callable[[], None] = lambda: None
        """Called for what is not shown: it may have been declared just now."""

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return self._feed(kind).cache.get((namespace, name))

    def all(self, kind: str) -> Sequence[Any]:
        """By namespace and name; the same tuple until something changes."""
        return self._feed(kind).cache.all()

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        return self._index(kind, index).find(value)

    def counted(self, kind: str, index: str, value: str) -> int:
        """How many are indexed so, in time that does not grow with them."""
        return self._index(kind, index).count(value)

    def _index(self, kind: str, index: str) -> Index:
        found = self._indexes.get((kind, index))
        if found is None:
            self.look()
            found = self._indexes.get((kind, index))
        if found is None:
            raise KeyError(f'{kind} has no index "{index}"')
        return found

    def aggregate(self, name: str, group: str) -> Any:
        found = self._folds.get(name)
        if found is None:
            self.look()
            found = self._folds.get(name)
        if found is None:
            raise KeyError(f'there is no aggregate "{name}"')
        return found.value(group)

    def is_synced(self, kind: str) -> bool:
        return self._feed(kind).is_synced

    def trouble(self, kind: str) -> str:
        return self._feed(kind).error

    def malformed(self, kind: str) -> Mapping[Key, str]:
        return self._feed(kind).cache.malformed

    def aside(self, kind: str) -> Mapping[Key, Malformed]:
        return self._feed(kind).cache.aside

    @property
    def uid(self) -> str:
        return self._inquiry.uid

    def versions(self, group: str, kind: str) -> Sequence[str]:
        return self._inquiry.versions(group, kind)

    def plural(self, kind: str) -> str:
        return self._feed(kind).resource.plural

    def is_namespaced(self, kind: str) -> bool:
        return self._feed(kind).resource.namespaced

    @property
    def is_answered(self) -> bool:
        """Whether what was asked about the server itself is known; a plan made before would be made of guesses."""
        return self._inquiry.is_answered

    def cluster(self, name: str) -> CacheView:
        return self.elsewhere(name)

    @property
    def sightings(self) -> Sequence[tuple[str, str]]:
        return self._sightings.shown

    def see(self, resource: Resource[Any]) -> None:
        """An object of this kind was read from the server, since it is not in the cache."""
        feed = self._feeds.get(full_name(resource))
        if feed is None or not feed.is_vital:
            self._sightings.see(resource, is_other=feed is not None and feed.is_served is False)

    def on_sighting(self, told: Callable[[], None]) -> None:
        """Told when there are other sightings than before."""
        self._sightings.on_change = told

    def finding(self, name: str) -> Any | None:
        return self.findings.get(name)

    def _feed(self, kind: str) -> Feed:
        self._sightings.use(kind)
        feed = self._feeds.get(kind)
        if feed is None:
            self.look()
            feed = self._feeds.get(kind)
        if feed is None:
            raise KeyError(f"{kind} is not watched, or more than one group has it: {', '.join(sorted(self._feeds))}")
        return feed


def _nowhere(name: str) -> CacheView:
    raise KeyError(f'there is no further cluster "{name}": the capability names none')
