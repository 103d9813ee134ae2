"""Rows of the yard: joined from capabilities, computed only where something changed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.builders import labels

from nodeyard.dashboard.tiles import TileBoard, default_tile, join
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Condition, Node, NodeSpec, NodeStatus, ObjectMeta
from nodeyard.runtime.surface import Surface, Tile, TileState
from nodeyard.watch.cache import Change

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def node(name, *, cordoned=False, ready="True", zone="a"):
    conditions = (Condition(type="Ready", status=ready, last_transition_time=NOW),)
    return Node(
        metadata=ObjectMeta(name=name, labels={ZONE: zone}),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(conditions=conditions),
    )


class View:
    def __init__(self):
        self.nodes = {}
        self.listeners = {}

    def listen(self, kind, listener):
        self.listeners.setdefault(kind, []).append(listener)

    def get(self, _kind, name, _namespace=""):
        return self.nodes.get(name)

    def all(self, _kind):
        return list(self.nodes.values())

    def put(self, one):
        name = one.metadata.name
        old, self.nodes[name] = self.nodes.get(name), one
        self.tell("Node.core", Change(("", name), old, one))

    def delete(self, name):
        self.tell("Node.core", Change(("", name), self.nodes.pop(name), None))

    def tell(self, kind, change):
        for listener in self.listeners.get(kind, ()):
            listener(change)


def board(view, *surfaces):
    marked = []
    capabilities = [(replace(labels.LABELS, surface=each), view) for each in surfaces]
    return TileBoard(view, capabilities, lambda: marked.append(1)), marked


def test_a_row_joins_the_facts_of_all_capabilities():
    view = View()
    spares = Surface(tile=lambda _view, _name: Tile(state=TileState.CLAIMED, template="web", hue="web"))
    profiles = Surface(tile=lambda _view, _name: Tile(profile="compute"))
    tiles, marked = board(view, spares, profiles)
    view.put(node("n1"))
    assert marked == [1]
    ((row,), deleted) = tiles.refresh(NOW, 10)
    assert row == ("n1", "a", "", "web", "", "", "compute", "claimed", "web", None, None)
    assert deleted == []


def test_only_the_rows_of_changed_nodes_are_computed():
    asked = []
    view = View()
    tiles, _ = board(view, Surface(tile=lambda _view, name: asked.append(name)))
    for number in range(100):
        view.put(node(f"n{number}"))
    tiles.refresh(NOW, 1000)
    asked.clear()
    view.put(node("n7", zone="b"))
    assert [row.zone for row in tiles.refresh(LATER, 1000)[0]] == ["b"]
    assert asked == ["n7"]


def test_an_event_without_a_visible_change_gives_no_row():
    view = View()
    tiles, _ = board(view)
    view.put(node("n1"))
    tiles.refresh(NOW, 10)
    view.put(node("n1"))
    assert tiles.refresh(LATER, 10) == ([], [])


def test_a_deleted_node_is_named_once():
    view = View()
    tiles, _ = board(view)
    view.put(node("n1"))
    tiles.refresh(NOW, 10)
    view.delete("n1")
    assert tiles.refresh(LATER, 10) == ([], ["n1"])
    assert tiles.rows == {}


def test_a_state_that_was_seen_to_begin_has_a_time():
    view = View()
    tiles, _ = board(view)
    view.put(node("n1"))
    assert tiles.refresh(NOW, 10)[0][0].since is None
    view.put(node("n1", cordoned=True))
    assert tiles.refresh(LATER, 10)[0][0].since == LATER.timestamp()
    view.put(node("n1", cordoned=True, zone="b"))
    assert tiles.refresh(LATER + timedelta(minutes=1), 10)[0][0].since == LATER.timestamp()


def test_other_kinds_mark_the_nodes_that_they_concern():
    view = View()
    by_pod = Surface(tile_nodes={"Pod": lambda _view, _old, new: [new]})
    tiles, _ = board(view, by_pod)
    view.put(node("n1"))
    tiles.refresh(NOW, 10)
    view.tell("Pod", Change(("ns", "p"), None, "n1"))
    assert tiles.is_marked


def test_a_failing_capability_neither_ends_the_watch_nor_hides_the_node():
    def fail(*_arguments):
        raise ValueError("bug")

    view = View()
    tiles, _ = board(view, Surface(tile=fail, tile_nodes={"Pod": fail}))
    view.put(node("n1"))
    view.tell("Pod", Change(("ns", "p"), None, "n1"))
    assert [row.name for row in tiles.refresh(NOW, 10)[0]] == ["n1"]


def test_the_most_urgent_state_is_shown():
    states = [
        Tile(state=TileState.CLAIMED, hue="web"),
        Tile(state=TileState.NOT_READY),
        Tile(state=TileState.RELEASING),
    ]
    joined = join(states)
    assert (joined.state, joined.hue) == (TileState.RELEASING, "web")


def test_every_node_shows_its_cordon_and_its_kubelets_silence():
    assert default_tile(node("n1", cordoned=True)).state is TileState.DRAINING
    silent = default_tile(node("n1", ready="Unknown"))
    assert (silent.state, silent.since) == (TileState.NOT_READY, NOW)
    assert default_tile(node("n1")).state is None
