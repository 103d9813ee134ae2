"""The live feed: the present state, and the last events for streams that resume.

    board, planner, operators ──publish──▶ Feed ──▶ backlog ──▶ one cursor per stream

Lists are kept by capability, since a viewer may be allowed to see only some. An event is encoded once for all viewers
who see the same.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from nodeyard.dashboard.tiles import COLUMNS, Row
from nodeyard.dashboard.wire import LISTED, encode
from nodeyard.process.clock import Clock
from nodeyard.runtime.surface import Places, Severity

BACKLOG: Final = 512
"""Events that a stream may be behind before it gets a snapshot instead."""
NODES: Final = "nodes"
PLACES: Final = "places"
RECORDER: Final = "recorder"
ATTENTION: Final = "attention"
ROLLOUTS: Final = "rollouts"
LISTS: Final = (ATTENTION, "plans", ROLLOUTS, "operators")

_Source: TypeAlias = tuple[str, str]
"""The capability, and who says something of it."""
Visible: TypeAlias = frozenset[str] | None
"""The capabilities that a viewer may see; None for all."""


@dataclass(frozen=True)
class Event:
    seq: int
    now: float
    name: str
    data: Any
    encoded: dict[Visible, bytes] = field(default_factory=dict)
    """The event as sent, by what the viewer may see."""

    def encode(self, visible: Visible) -> bytes:
        known = self.encoded.get(visible)
        if known is None:
            known = self.encoded[visible] = self._frame(visible)
        return known

    def _frame(self, visible: Visible) -> bytes:
        if self.name == NODES:
            body = {"now": self.now, **self.data}
        elif self.name == RECORDER:
            body = {"now": self.now, "entries": _select(self.data, visible)}
        else:
            body = {"now": self.now, **_section(self.name, self.data, visible)}
        return frame(self.name, self.seq, encode(body))


def frame(name: str, seq: int, data: bytes) -> bytes:
    """Return one server-sent event; JSON has no line breaks."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, name.encode(), data)


class Feed:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # All events of a process that started earlier are older, so its streams resume with a snapshot.
        self.seq = int(self.now * 1000)
        self.rows: Mapping[str, Row] = {}
        self._lists: dict[str, dict[_Source, Any]] = {name: {} for name in (*LISTS, PLACES)}
        self._backlog: deque[Event] = deque()
        self._forgotten = self.seq
        """Events up to this one may be missing in the backlog."""
        self._changed = asyncio.Event()

    @property
    def now(self) -> float:
        return round(self._clock.now().timestamp(), 3)

    def publish_nodes(self, changed: Sequence[Row], deleted: Sequence[str]) -> None:
        self._publish(NODES, {"set": changed, "delete": deleted})

    def publish(self, name: str, capability: str, value: Any, by: str = "") -> None:
        """Replace what one source (`by`) says of a capability in a list; an equal value is no event."""
        parts, source = self._lists[name], (capability, by)
        if parts.get(source) == value or (not value and source not in parts):
            return
        self._lists[name] = parts | {source: value}
        self._publish(name, self._lists[name])

    def publish_entries(self, entries: Mapping[str, Sequence[Any]]) -> None:
        """Publish entries of the recorder, by capability."""
        self._publish(RECORDER, {(name, ""): each for name, each in entries.items()})

    def _publish(self, name: str, data: Any) -> None:
        self.seq += 1
        if name in self._lists:
            # Each event has the whole list, so that only the last one is needed.
            self._backlog = deque(event for event in self._backlog if event.name != name)
        self._backlog.append(Event(self.seq, self.now, name, data))
        if len(self._backlog) > BACKLOG:
            self._forgotten = self._backlog.popleft().seq
        self._changed.set()
        self._changed = asyncio.Event()

    def snapshot(self, visible: Visible) -> dict[str, Any]:
        state: dict[str, Any] = {
            "seq": self.seq,
            "now": self.now,
            "nodes": {"columns": COLUMNS, "rows": list(self.rows.values())},
        }
        totals: dict[str, int] = {}
        for name, parts in self._lists.items():
            section = _section(name, parts, visible)
            if "total" in section:
                totals[name] = section.pop("total")
            state |= section
        return {**state, "totals": totals}

    def part(self, name: str, visible: Visible) -> list[Any]:
        """Return a list as a viewer sees it."""
        return _select(self._lists[name], visible)

    def since(self, seq: int) -> list[Event] | None:
        """Return the events after this one; None if they are not known any more, or never were."""
        if seq == self.seq:
            return []
        if seq > self.seq or seq < self._forgotten:
            return None
        return [event for event in self._backlog if event.seq > seq]

    async def wait(self, seq: int) -> None:
        """Wait for an event after this one."""
        while self.seq <= seq:
            await self._changed.wait()


def _select(parts: Mapping[_Source, Iterable[Any]], visible: Visible) -> list[Any]:
    return [item for source, items in parts.items() if visible is None or source[0] in visible for item in items]


def _section(name: str, parts: Mapping[_Source, Any], visible: Visible) -> dict[str, Any]:
    """Return one list with its total, if it is cut."""
    if name == PLACES:
        places = [each for source, each in parts.items() if visible is None or source[0] in visible]
        return {PLACES: join_places(places)}
    items = _select(parts, visible)
    if name == ATTENTION:
        items.sort(key=lambda item: item.severity is not Severity.CRITICAL)
    return {name: items} if len(items) <= LISTED else {name: items[:LISTED], "total": len(items)}


def join_places(places: Collection[Places]) -> Places:
    return Places(
        leaves=tuple(leaf for each in places for leaf in each.leaves)[:LISTED],
        tenants=tuple(tenant for each in places for tenant in each.tenants)[:LISTED],
    )
