"""Kinds that were met on the way: of owners that reviews had to read from the server since nobody watches them.

Whoever wants to watch them from then on names them among the declared kinds. There are never more than so many: what
was not asked for the longest makes room, and its watch goes with it.

    look-up ──see──▶ sightings ──declared(view)──▶ watched ──▶ the next review asks the cache, and that counts as use
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from nodeyard.client.resources import Resource
from nodeyard.watch.feeds import full_name

MOST: Final = 64


class Sightings:
    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._seen: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """By the name that the kind has in a view; the first is the next to go."""
        self._shown: tuple[tuple[str, str], ...] = ()
        self.on_change: Callable[[], None] = lambda: None
        """Called when there are others than before."""

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """Each as apiVersion and kind, in the order of their names."""
        return self._shown

    def see(self, resource: Resource[Any], *, is_other: bool = False) -> None:
        """An object of it was read. A kind is kept in the version in which it was first met, since all are views of the
        same objects; `is_other`: the server does not have that one any more."""
        name, seen = full_name(resource), (resource.api_version, resource.kind)
        known = self._seen.get(name)
        if known is None or is_other:
            self._seen[name] = seen
        self._seen.move_to_end(name)
        if self._seen[name] == known:
            return
        if len(self._seen) > self._most:
            self._seen.popitem(last=False)
        self._shown = tuple(self._seen[each] for each in sorted(self._seen))
        self.on_change()

    def use(self, name: str) -> None:
        """Somebody asked the cache of a kind, by the name it has in a view."""
        if name in self._seen:
            # Loops on other threads look at views too: it may have made room just now.
            with suppress(KeyError):
                self._seen.move_to_end(name)
