"""The tiles of the yard: one row per node, joined from what each capability knows of it.

A watch event marks the nodes that it concerns, in constant time. `refresh` computes only the marked rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from nodeyard.client.resources import NODES
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Node
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability, Watch
from nodeyard.runtime.surface import Surface, Tile, TileState
from nodeyard.watch.cache import Change
from nodeyard.watch.view import CacheView

NODE_WATCH: Final = Watch(NODES.decoded_as(Node))
"""The same informer as that of capabilities which watch nodes."""
_NODE: Final = "Node.core"
_ORDER: Final = {state: place for place, state in enumerate(TileState)}

_log = get_logger("dashboard")


class Row(NamedTuple):
    """A node on the wire; the fields are its columns."""

    name: str
    zone: str
    pool: str
    template: str
    placement_class: str
    leaf: str
    profile: str
    state: str
    hue: str
    free: float | None
    since: float | None
    """Seconds since the epoch; None if nobody saw the state begin."""


COLUMNS: Final = tuple("class" if name == "placement_class" else name for name in Row._fields)


class TileBoard:
    def __init__(
        self, nodes: CacheView, views: Sequence[tuple[Capability, CacheView]], on_marked: Callable[[], None]
    ) -> None:
        """`nodes` watches all nodes. `on_marked` is called after each change that marks a node."""
        self._nodes = nodes
        self._surfaces = [(each.surface, view) for each, view in views if each.surface is not None]
        self._on_marked = on_marked
        self._marked: set[str] = set()
        self.rows: dict[str, Row] = {}
        nodes.listen(_NODE, lambda change: self.mark((change.key[1],)))
        for surface, view in self._surfaces:
            for kind, nodes_of in surface.tile_nodes.items():
                view.listen(kind, _marker(self.mark, view, nodes_of))

    def mark(self, names: Iterable[str]) -> None:
        """Compute these rows again with the next refresh."""
        before = len(self._marked)
        self._marked.update(names)
        if len(self._marked) > before:
            self._on_marked()

    def mark_all(self) -> None:
        self.mark(node.metadata.name for node in self._nodes.all(_NODE))

    def refresh(self, now: datetime, most: int) -> tuple[list[Row], list[str]]:
        """Compute up to `most` marked rows; return those that changed and the names of deleted nodes."""
        changed: list[Row] = []
        deleted: list[str] = []
        for _ in range(min(most, len(self._marked))):
            name = self._marked.pop()
            node: Node | None = self._nodes.get(_NODE, name)
            before = self.rows.get(name)
            if node is None:
                if before is not None:
                    del self.rows[name]
                    deleted.append(name)
                continue
            row = self._row(node, before, now)
            if row != before:
                self.rows[name] = row
                changed.append(row)
        return changed, deleted

    @property
    def is_marked(self) -> bool:
        return bool(self._marked)

    def _row(self, node: Node, before: Row | None, now: datetime) -> Row:
        name = node.metadata.name
        tiles = [default_tile(node), *(tile for surface, view in self._surfaces if (tile := _ask(surface, view, name)))]
        tile = join(tiles)
        state = (tile.state or TileState.OTHER).value
        since = None if tile.since is None else tile.since.timestamp()
        if since is None and before is not None:
            since = before.since if before.state == state else round(now.timestamp(), 3)
        return Row(
            name,
            node.metadata.labels.get(ZONE, ""),
            tile.pool,
            tile.template,
            tile.placement_class,
            tile.leaf,
            tile.profile,
            state,
            tile.hue,
            None if tile.free is None else round(tile.free, 2),
            since,
        )


def _marker(
    mark: Callable[[Iterable[str]], None], view: CacheView, nodes_of: Callable[..., Iterable[str]]
) -> Callable[[Change[object]], None]:
    def on_change(change: Change[object]) -> None:
        try:
            mark(tuple(nodes_of(view, change.old, change.new)))
        except Exception:
            # A failure here must not end the watch that operators share.
            _log.exception("tile mapping failed", object="/".join(change.key))

    return on_change


def _ask(surface: Surface, view: CacheView, name: str) -> Tile | None:
    try:
        return surface.tile(view, name)
    except Exception:
        _log.exception("tile failed", node=name)
        return None


def default_tile(node: Node) -> Tile:
    """Return what every node shows: whether it is cordoned, and whether its kubelet reports."""
    if node.spec.unschedulable:
        return Tile(state=TileState.DRAINING)
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    if ready is not None and ready.status != "True":
        return Tile(state=TileState.NOT_READY, since=ready.last_transition_time)
    return Tile()


def join(tiles: Sequence[Tile]) -> Tile:
    """Join what several capabilities know of one node: the first state by urgency, and the first value of others."""
    stated = [tile for tile in tiles if tile.state is not None]
    first = min(stated, key=lambda tile: _ORDER[tile.state or TileState.OTHER], default=Tile())
    values: Mapping[str, str] = {
        name: next((value for tile in tiles if (value := getattr(tile, name))), "")
        for name in ("hue", "pool", "template", "placement_class", "leaf", "profile")
    }
    free = next((tile.free for tile in tiles if tile.free is not None), None)
    return Tile(state=first.state, since=first.since, free=free, **values)
