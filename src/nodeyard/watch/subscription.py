"""Subscription of one view to one shared informer: its need, indexes, aggregates and event handlers.

Most subscriptions live as long as the process. A kind declared at run time is subscribed while it is declared, with the
functions of its latest declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Generic, TypeAlias, TypeVar

from nodeyard.process.logs import get_logger
from nodeyard.watch.cache import Cache, Change, Derived
from nodeyard.watch.indexes import Aggregate, Fold, Index
from nodeyard.watch.shared_informer import SharedInformer, WatchSpec

Values = Callable[[Any], Iterable[str]]
OnKey: TypeAlias = Callable[[str, Change[Any], WatchSpec], None]
D = TypeVar("D", bound=Derived)

_log = get_logger("watches")


@dataclass(frozen=True)
class EventHandlers:
    """Callbacks of one view."""

    on_key: OnKey = lambda _key, _change, _watch: None
    """Called with each key that a change concerns, the change, and the watch that mapped it."""
    on_synced: Callable[[str], None] = lambda _kind: None
    """Called with a kind after its first complete list."""
    on_change: Sequence[Callable[[], None]] = ()
    """Called after each change."""
    on_unmapped: Callable[[], None] = lambda: None
    """Called after a change that maps to no key: of a fact about the server, or of a malformed object."""
    on_watch_error: Callable[[], None] = lambda: None
    """Called when a watch fails in a new way or recovers."""


NO_HANDLERS: Final = EventHandlers()


class _DerivedSet(Generic[D]):
    """The indexes or aggregates of one subscription, by name; each is kept while its identity is the same."""

    def __init__(self, cache: Cache[Any]) -> None:
        self._cache = cache
        self._identities: Mapping[str, tuple[str, ...]] = {}
        self.derived: dict[str, D] = {}

    def renew(self, identities: Mapping[str, tuple[str, ...]], make: Callable[[str], D]) -> bool:
        """Replace the declarations; return True if an index or aggregate was rebuilt, added or removed."""
        stale = [name for name, known in self._identities.items() if identities.get(name) != known]
        fresh = [name for name in identities if name in stale or name not in self._identities]
        for name in stale:
            self._cache.detach(self.derived.pop(name))
        self._identities = identities
        for name in fresh:
            self.derived[name] = make(name)
            self._cache.attach(self.derived[name])
        return bool(stale or fresh)

    def end(self) -> None:
        for each in self.derived.values():
            self._cache.detach(each)


class Subscription:
    def __init__(
        self,
        informer: SharedInformer,
        watches: Sequence[WatchSpec],
        handlers: EventHandlers,
        need: Callable[[], bool] = lambda: True,
        *,
        is_late: bool = False,
    ) -> None:
        """Subscribe to an informer.

        Several watches may declare the same kind: the keys and index values of all are used, and of several aggregates
        with the same name the first. A late subscription (`is_late`) may find objects in the cache; its indexes and
        aggregates skip objects on which they fail.
        """
        self.informer = informer
        self._is_late = is_late
        self._indexes: _DerivedSet[Index] = _DerivedSet(informer.cache)
        self._folds: _DerivedSet[Fold] = _DerivedSet(informer.cache)
        self._watches: Sequence[WatchSpec] = ()
        self._handlers = handlers
        kind = informer.resource.kind
        self._ends: list[Callable[[], None]] = [
            _add(informer.needs, need),
            _add(informer.on_synced, lambda: handlers.on_synced(kind)),
            _add(informer.on_watch_error, handlers.on_watch_error),
        ]
        self.renew(watches)
        self._ends += [informer.cache.listen(self._on_change), informer.cache.listen_malformed(handlers.on_unmapped)]

    @property
    def indexes(self) -> Mapping[str, Index]:
        return self._indexes.derived

    @property
    def folds(self) -> Mapping[str, Fold]:
        return self._folds.derived

    def renew(self, watches: Sequence[WatchSpec]) -> bool:
        """Use the functions of these watches; return True if an index or aggregate was rebuilt, added or removed."""
        self._watches = watches
        by_index: dict[str, list[WatchSpec]] = {}
        by_fold: dict[str, tuple[WatchSpec, Aggregate]] = {}
        for watch in watches:
            for name in watch.indexes:
                by_index.setdefault(name, []).append(watch)
            for folding in watch.aggregates:
                by_fold.setdefault(folding.name, (watch, folding))
        is_other = self._indexes.renew(
            {name: tuple(watch.identity for watch in having) for name, having in by_index.items()},
            lambda name: Index(self._values([watch.indexes[name] for watch in by_index[name]])),
        )
        identities = {name: (watch.identity,) for name, (watch, _) in by_fold.items()}
        return self._folds.renew(identities, lambda name: self._fold(by_fold[name][1])) or is_other

    def detach(self) -> None:
        for end in self._ends:
            end()
        self._indexes.end()
        self._folds.end()

    def notify_gone(self) -> None:
        """Report every object as deleted, after detaching, so that the keys that used them are reconciled.

        Also calls `on_watch_error` if the watch was failing or not synced: nothing waits for it any longer.
        """
        cache = self.informer.cache
        for obj in cache.all():
            self._mark_keys(Change(cache.key_of(obj), obj, None))
        if len(cache):
            self._notify_change()
        if self.informer.error or not self.informer.is_synced:
            self._handlers.on_watch_error()

    def _fold(self, folding: Aggregate) -> Fold:
        return Fold(folding, _skip_failures(_addable_groups(folding))) if self._is_late else Fold(folding)

    def _values(self, functions: Sequence[Values]) -> Values:
        if not self._is_late and len(functions) == 1:
            return functions[0]
        used = [_skip_failures(each) for each in functions] if self._is_late else functions
        return lambda obj: [value for function in used for value in function(obj)]

    def _on_change(self, change: Change[Any]) -> None:
        self._mark_keys(change)
        self._notify_change()

    def _notify_change(self) -> None:
        for callback in self._handlers.on_change:
            callback()

    def _mark_keys(self, change: Change[Any]) -> None:
        for watch in self._watches:
            try:
                keys = tuple(watch.keys(change.old, change.new))
            except Exception:
                # One object on which the mapping fails must not end the watch of all others.
                _log.exception("key mapping failed", resource=str(watch.resource))
                continue
            for key in keys:
                self._handlers.on_key(key, change, watch)


def _addable_groups(folding: Aggregate) -> Values:
    """Return a group function that fails for objects that cannot be added, since they could not be removed later."""

    @wraps(folding.group)
    def groups(obj: Any) -> Iterable[str]:
        folding.add(folding.empty(), obj)
        return folding.group(obj)

    return groups


def _skip_failures(function: Values) -> Values:
    def values(obj: Any) -> Iterable[str]:
        try:
            return tuple(function(obj))
        except Exception as error:
            _log.warning("indexing failed", index=function.__qualname__, reason=f"{type(error).__name__}: {error}")
            return ()

    return values


def _add(callbacks: list[Callable[[], Any]], one: Callable[[], Any]) -> Callable[[], None]:
    """Append to the list; return a function that removes the element by identity."""
    callbacks.append(one)

    def end() -> None:
        del callbacks[next(place for place, each in enumerate(callbacks) if each is one)]

    return end
