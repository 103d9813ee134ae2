"""View of the caches for one capability: objects by kind, with the capability's own indexes and aggregates.

A plan copies nothing. `collect` runs on the event loop without awaiting, so no cache changes under it. It takes out
immutable objects and tuples, which may be passed to another thread. A kind that exists in two groups is named with its
group: `Cluster.kosmos.io`, `Node.core`. Kinds declared at run time come and go.

A remote cluster has the same view; the runtime sets its connection state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from nodeyard.client.decoder import Malformed
from nodeyard.client.resources import Resource
from nodeyard.kube.object_key import Key
from nodeyard.watch.cache import Listener
from nodeyard.watch.dynamic import RecentKinds
from nodeyard.watch.indexes import Fold, Index
from nodeyard.watch.reservations import Reservations
from nodeyard.watch.server_info import ServerInfoQueries
from nodeyard.watch.shared_informer import SharedInformer, full_name

T = TypeVar("T")

MEMO_TIME: Final = timedelta(seconds=5)
"""Time for which a value is shared, so that a state that changes with every key is not computed for every key."""


class Memos:
    """Values computed from a view for many keys. Each is valid for one state of its causes, and for a few seconds."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Hashable, datetime, Any]] = {}

    def get(self, subject: Hashable, state: Hashable, now: datetime, compute: Callable[[], T]) -> T:
        """Return the value of the subject in this state; compute it if it is not known or too old."""
        found = self._known.get(subject)
        if found is not None and found[0] == state and now < found[1]:
            value: T = found[2]
            return value
        self._known = {each: known for each, known in self._known.items() if now < known[1]}
        value = compute()
        self._known[subject] = state, now + MEMO_TIME, value
        return value


class CacheView:
    def __init__(
        self,
        informers: Mapping[str, SharedInformer],
        indexes: Mapping[tuple[str, str], Index],
        folds: Mapping[str, Fold],
        queries: ServerInfoQueries,
    ) -> None:
        self._informers = informers
        self._indexes = indexes
        self._folds = folds
        self._queries = queries
        self._recent_kinds = RecentKinds()
        self.name = ""
        """The name of a remote cluster; empty for the operator's own."""
        self.is_connected = True
        self.connected_at: datetime | None = None
        self.error = ""
        self.version = ""
        """The version of a remote cluster's API server."""
        self.findings: dict[str, Any] = {}
        """Results of background loops, by name."""
        self.reservations = Reservations()
        self._memos = Memos()
        self.elsewhere: Callable[[str], CacheView] = _no_remote_cluster
        """Returns the view of a remote cluster by name."""
        self.refresh: Callable[[], None] = lambda: None
        """Called when a lookup finds nothing: the kind may have been declared just now."""

    def informers(self) -> Iterable[SharedInformer]:
        """Return each informer once, even if its kind has two names."""
        return {id(informer): informer for informer in self._informers.values()}.values()

    def get(self, kind: str, name: str, namespace: str = "") -> Any | None:
        return self._informer(kind).cache.get((namespace, name))

    def all(self, kind: str) -> Sequence[Any]:
        """Return all objects ordered by namespace and name; the identical tuple until a change."""
        return self._informer(kind).cache.all()

    def listen(self, kind: str, listener: Listener) -> None:
        """Call the listener after each change of an object of this kind, for as long as its informer exists."""
        self._informer(kind).cache.listen(listener)

    def indexed(self, kind: str, index: str, value: str) -> Sequence[Any]:
        return self._index(kind, index).find(value)

    def counted(self, kind: str, index: str, value: str) -> int:
        """Return the number of objects with this index value, in constant time."""
        return self._index(kind, index).count(value)

    def _index(self, kind: str, index: str) -> Index:
        found = self._indexes.get((kind, index))
        if found is None:
            self.refresh()
            found = self._indexes.get((kind, index))
        if found is None:
            raise KeyError(f'{kind} has no index "{index}"')
        return found

    def aggregate(self, name: str, group: str) -> Any:
        found = self._folds.get(name)
        if found is None:
            self.refresh()
            found = self._folds.get(name)
        if found is None:
            raise KeyError(f'the capability declares no aggregate "{name}"')
        return found.value(group)

    def is_synced(self, kind: str) -> bool:
        return self._informer(kind).is_synced

    def watch_error(self, kind: str) -> str:
        return self._informer(kind).error

    def staleness(self, kind: str, seconds: float = 0.0) -> str:
        """Return why the cache of a kind has been stale for at least this many seconds; empty if it is not."""
        return self._informer(kind).staleness(seconds)

    def malformed(self, kind: str) -> Mapping[Key, Malformed]:
        return self._informer(kind).cache.malformed

    @property
    def uid(self) -> str:
        return self._queries.uid

    def versions(self, group: str, kind: str) -> Sequence[str]:
        return self._queries.versions(group, kind)

    def plural(self, kind: str) -> str:
        return self._informer(kind).resource.plural

    def is_namespaced(self, kind: str) -> bool:
        return self._informer(kind).resource.namespaced

    @property
    def is_answered(self) -> bool:
        """True if every fact about the server that was asked for is known; a plan made earlier would be a guess."""
        return self._queries.is_answered

    def cluster(self, name: str) -> CacheView:
        return self.elsewhere(name)

    @property
    def recent_kinds(self) -> Sequence[tuple[str, str]]:
        return self._recent_kinds.shown

    def record_lookup(self, resource: Resource[Any]) -> None:
        """Record that an object of this kind was read from the server because the kind is not watched."""
        informer = self._informers.get(full_name(resource))
        if informer is None or not informer.is_static:
            self._recent_kinds.record_lookup(resource, is_other=informer is not None and informer.is_served is False)

    def on_recent_kinds(self, callback: Callable[[], None]) -> None:
        """Call back when the set of recent kinds changes."""
        self._recent_kinds.on_change = callback

    def finding(self, name: str) -> Any | None:
        return self.findings.get(name)

    def memo(self, subject: Hashable, state: Hashable, now: datetime, compute: Callable[[], T]) -> T:
        return self._memos.get(subject, state, now, compute)

    def reserved(self, budget: str) -> Mapping[str, str]:
        return self.reservations.reserved(budget)

    def waiting(self, budget: str) -> Sequence[str]:
        return self.reservations.waiting(budget)

    def _informer(self, kind: str) -> SharedInformer:
        self._recent_kinds.use(kind)
        informer = self._informers.get(kind)
        if informer is None:
            self.refresh()
            informer = self._informers.get(kind)
        if informer is None:
            raise KeyError(
                f"{kind} is not watched, or more than one group has it: {', '.join(sorted(self._informers))}"
            )
        return informer


def _no_remote_cluster(name: str) -> CacheView:
    raise KeyError(f'no remote cluster "{name}": the capability declares none')
