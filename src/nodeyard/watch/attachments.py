"""What one view hangs on one feed: its need, its indexes and aggregates, and those who hear of changes; taken off again
as one.

Most are there for as long as the process lives. A kind that users declare is attached when it is named and detached
when it is not any more; while it is, the functions of the latest naming are the ones that count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, TypeVar

from nodeyard.process.logs import get_logger
from nodeyard.watch.aggregates import Fold, Folding
from nodeyard.watch.cache import Cache
from nodeyard.watch.derived import Derived
from nodeyard.watch.feeds import Feed, Watched
from nodeyard.watch.indexes import Index
from nodeyard.watch.meaning import is_same

Values = Callable[[Any], Iterable[str]]
D = TypeVar("D", bound=Derived)

_log = get_logger("watches")


@dataclass(frozen=True)
class Hearing:
    """Who hears what of a view."""

    mark: Callable[[str], None]
    """Each key that a change concerns."""
    on_synced: Callable[[str], None]
    """A kind that has been told for the first time."""
    on_change: Sequence[Callable[[], None]]
    """That there was a change."""
    on_news: Callable[[], None]
    """About objects that are not understood."""
    on_trouble: Callable[[], None]
    """A watch is doing worse than before, or well again."""


class _Kept(Generic[D]):
    """What is derived from a cache, by name; each for as long as it means the same."""

    def __init__(self, cache: Cache[Any]) -> None:
        self._cache = cache
        self._meanings: Mapping[str, Any] = {}
        self.derived: dict[str, D] = {}

    def renew(self, meanings: Mapping[str, Any], make: Callable[[str], D]) -> bool:
        """From here on these; whether one is another object than before."""
        stale = [name for name, known in self._meanings.items() if not is_same(meanings.get(name), known)]
        fresh = [name for name in meanings if name in stale or name not in self._meanings]
        for name in stale:
            self._cache.underive(self.derived.pop(name))
        self._meanings = meanings
        for name in fresh:
            self.derived[name] = make(name)
            self._cache.derive(self.derived[name])
        return bool(stale or fresh)

    def end(self) -> None:
        for each in self.derived.values():
            self._cache.underive(each)


class Attachment:
    def __init__(
        self,
        feed: Feed,
        watches: Sequence[Watched],
        hearing: Hearing,
        need: Callable[[], bool] = lambda: True,
        *,
        is_late: bool = False,
    ) -> None:
        """More than one watch where several declare the same kind: the keys and the indexed values of all count, and
        of aggregates with one name the first.

        The cache of one that comes late may have objects already. What its indexes and aggregates cannot take they
        leave out.
        """
        self.feed = feed
        self._is_late = is_late
        self._indexes: _Kept[Index] = _Kept(feed.cache)
        self._folds: _Kept[Fold] = _Kept(feed.cache)
        self._watches: Sequence[Watched] = ()
        self._mark = hearing.mark
        kind = feed.resource.kind
        self._ends: list[Callable[[], None]] = [
            _held(feed.needs, need),
            _held(feed.on_synced, lambda: hearing.on_synced(kind)),
            _held(feed.on_trouble, hearing.on_trouble),
        ]
        self.renew(watches)
        self._ends += [feed.cache.listen(self._changed), feed.cache.listen_aside(hearing.on_news)]
        self._ends += [feed.cache.listen(_calling(each)) for each in hearing.on_change]

    @property
    def indexes(self) -> Mapping[str, Index]:
        return self._indexes.derived

    @property
    def folds(self) -> Mapping[str, Fold]:
        return self._folds.derived

    def renew(self, watches: Sequence[Watched]) -> bool:
        """From here on these functions; whether an index or an aggregate is another object than before."""
        self._watches = watches
        functions, foldings = _functions(watches), _foldings(watches)
        meanings = {name: (each.empty, each.group, each.add, each.remove) for name, each in foldings.items()}
        is_other = self._indexes.renew(functions, lambda name: Index(self._values(functions[name])))
        return self._folds.renew(meanings, lambda name: self._fold(foldings[name])) or is_other

    def detach(self) -> None:
        for end in self._ends:
            end()
        self._indexes.end()
        self._folds.end()

    def _fold(self, folding: Folding) -> Fold:
        return Fold(folding, _guarded(_taken(folding))) if self._is_late else Fold(folding)

    def _values(self, functions: tuple[Values, ...]) -> Values:
        if not self._is_late and len(functions) == 1:
            return functions[0]
        judged = [_guarded(each) for each in functions] if self._is_late else functions
        return lambda obj: [value for function in judged for value in function(obj)]

    def _changed(self, old: Any | None, new: Any | None) -> None:
        for watch in self._watches:
            try:
                keys = tuple(watch.keys(old, new))
            except Exception:
                # One object that the mapping cannot take must not end the watch of all others.
                _log.exception("leaving a change unmapped", resource=str(watch.resource))
                continue
            for key in keys:
                self._mark(key)


def _functions(watches: Sequence[Watched]) -> dict[str, tuple[Values, ...]]:
    names = dict.fromkeys(name for watch in watches for name in watch.indexes)
    return {name: tuple(watch.indexes[name] for watch in watches if name in watch.indexes) for name in names}


def _foldings(watches: Sequence[Watched]) -> dict[str, Folding]:
    return {each.name: each for watch in reversed(watches) for each in reversed(watch.aggregates)}


def _taken(folding: Folding) -> Values:
    """The groups of an object that can be added; what cannot be could not be removed later either."""

    @wraps(folding.group)
    def groups(obj: Any) -> Iterable[str]:
        folding.add(folding.empty(), obj)
        return folding.group(obj)

    return groups


def _guarded(function: Values) -> Values:
    def values(obj: Any) -> Iterable[str]:
        try:
            return tuple(function(obj))
        except Exception as error:
            _log.warning(
                "not indexing an object", index=function.__qualname__, reason=f"{type(error).__name__}: {error}"
            )
            return ()

    return values


def _held(those: list[Callable[[], Any]], one: Callable[[], Any]) -> Callable[[], None]:
    """Among those from here on; answers how to end it."""
    those.append(one)

    def end() -> None:
        del those[next(place for place, each in enumerate(those) if each is one)]

    return end


def _calling(function: Callable[[], None]) -> Callable[[Any | None, Any | None], None]:
    return lambda _old, _new: function()
