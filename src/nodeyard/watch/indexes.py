"""Indexes and aggregates of a cache, kept current with every change.

An index finds objects by a value read from them, such as pods by node. The cost of a change depends on the number of
values of that object, not on the number of objects. A lookup sorts its result once and returns the identical tuple
until an object with that value changes.

An aggregate folds the objects of a group, such as the sum of pod requests per node. An update removes the old object
and adds the new one. A group without objects is deleted and starts again from empty, so rounding errors do not
accumulate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nodeyard.kube.object_key import Key


class _IndexChange(NamedTuple):
    key: Key
    new: Any | None
    removed: frozenset[str]
    current: frozenset[str]


class Index:
    def __init__(self, values: Callable[[Any], Iterable[str]]) -> None:
        self._values = values
        self._objects: dict[str, dict[Key, Any]] = {}
        self._answers: dict[str, tuple[Any, ...]] = {}

    def find(self, value: str) -> tuple[Any, ...]:
        """Return the objects with this value, ordered by namespace and name."""
        answer = self._answers.get(value)
        if answer is None:
            objects = self._objects.get(value)
            if objects is None:
                return ()
            answer = self._answers[value] = tuple(objects[key] for key in sorted(objects))
        return answer

    def count(self, value: str) -> int:
        """Return how many objects `find` would return, without sorting them."""
        return len(self._objects.get(value, ()))

    def values(self) -> Iterable[str]:
        """Return all values that some object has."""
        return self._objects.keys()

    def stage(self, key: Key, old: Any | None, new: Any | None) -> _IndexChange:
        before = frozenset() if old is None else frozenset(self._values(old))
        after = frozenset() if new is None else frozenset(self._values(new))
        return _IndexChange(key, new, before - after, after)

    def commit(self, staged: _IndexChange) -> None:
        key, new, removed, current = staged
        for value in removed:
            self._answers.pop(value, None)
            objects = self._objects[value]
            del objects[key]
            if not objects:
                del self._objects[value]
        for value in current:
            self._answers.pop(value, None)
            self._objects.setdefault(value, {})[key] = new


@dataclass(frozen=True)
class Aggregate:
    """An incremental fold over one kind: `add` and `remove` are pure and undo each other."""

    name: str
    kind: str
    empty: Callable[[], Any]
    group: Callable[[Any], Iterable[str]]
    add: Callable[[Any, Any], Any]
    remove: Callable[[Any, Any], Any]


class Fold:
    def __init__(self, folding: Aggregate, group: Callable[[Any], Iterable[str]] | None = None) -> None:
        """`group` replaces the declared group function."""
        self._empty = folding.empty
        self._group = group or folding.group
        self._add = folding.add
        self._remove = folding.remove
        self._groups: dict[str, tuple[Any, int]] = {}

    def value(self, group: str) -> Any:
        held = self._groups.get(group)
        return self._empty() if held is None else held[0]

    def values(self) -> Mapping[str, Any]:
        """Return the value of each group that has an object."""
        return {group: value for group, (value, _) in self._groups.items()}

    def stage(self, _key: Key, old: Any | None, new: Any | None) -> dict[str, tuple[Any, int]]:
        before = frozenset() if old is None else frozenset(self._group(old))
        after = frozenset() if new is None else frozenset(self._group(new))
        return {group: self._stage_group(group, old, new, before, after) for group in before | after}

    def commit(self, staged: dict[str, tuple[Any, int]]) -> None:
        for group, held in staged.items():
            if held[1]:
                self._groups[group] = held
            else:
                del self._groups[group]

    def _stage_group(
        self, group: str, old: Any | None, new: Any | None, before: frozenset[str], after: frozenset[str]
    ) -> tuple[Any, int]:
        held = self._groups.get(group)
        value, count = (self._empty(), 0) if held is None else held
        if group in before:
            value, count = self._remove(value, old), count - 1
        if group in after:
            value, count = self._add(value, new), count + 1
        return value, count
