"""Indexes of cached objects by a value read from them, such as pods by node or machines by owner.

The cost of a change depends on the number of values of that object, not on the number of objects. A lookup sorts its
result once and returns the identical tuple until an object with that value changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from nodeyard.kube.object_key import Key


class _Move(NamedTuple):
    key: Key
    new: Any | None
    leaves: frozenset[str]
    stands: frozenset[str]


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

    def stage(self, key: Key, old: Any | None, new: Any | None) -> _Move:
        before = frozenset() if old is None else frozenset(self._values(old))
        after = frozenset() if new is None else frozenset(self._values(new))
        return _Move(key, new, before - after, after)

    def commit(self, staged: _Move) -> None:
        key, new, leaves, stands = staged
        for value in leaves:
            self._answers.pop(value, None)
            objects = self._objects[value]
            del objects[key]
            if not objects:
                del self._objects[value]
        for value in stands:
            self._answers.pop(value, None)
            self._objects.setdefault(value, {})[key] = new
