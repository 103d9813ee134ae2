"""Incremental aggregates, such as sums per leaf or spares per zone. A change costs the same for any number of objects.

An update removes the old object and adds the new one. A group without objects is deleted and starts again from empty,
so rounding errors do not accumulate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from nodeyard.kube.object_key import Key


class Folding(Protocol):
    """Declaration of an aggregate by a capability; `add` and `remove` are pure and inverse to each other."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def empty(self) -> Callable[[], Any]: ...
    @property
    def group(self) -> Callable[[Any], Iterable[str]]: ...
    @property
    def add(self) -> Callable[[Any, Any], Any]: ...
    @property
    def remove(self) -> Callable[[Any, Any], Any]: ...


class Fold:
    def __init__(self, folding: Folding, group: Callable[[Any], Iterable[str]] | None = None) -> None:
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
