"""What the dashboard shows of spares."""

from datetime import timedelta

import msgspec
from tests.builders.spares import NOW, node, template

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.surface import SURFACE
from nodeyard.capabilities.spares.types import NodeTemplateStatus
from nodeyard.kube.objects import Condition
from nodeyard.runtime.surface import Severity, TileState


class View:
    """Caches of nodes and templates."""

    def __init__(self, *, nodes=(), templates=()):
        self._nodes = {each.metadata.name: each for each in nodes}
        self._templates = templates

    def get(self, _kind, name):
        return self._nodes.get(name)

    def all(self, _kind):
        return self._templates


def lacking(name, reason, *, current=0):
    since = NOW - timedelta(minutes=5)
    condition = Condition(
        type="Sufficient", status="False", reason=reason, message="No spare matches", last_transition_time=since
    )
    status = NodeTemplateStatus(current_nodes=current, conditions=(condition,))
    return msgspec.structs.replace(template(name), status=status)


def tile_of(one):
    return SURFACE.tile(View(nodes=[one]), one.metadata.name)


def test_a_claimed_node_has_its_templates_colour():
    tile = tile_of(node("n1", labels={names.TEMPLATE_LABEL: "web"}))
    assert (tile.state, tile.template, tile.hue) == (TileState.CLAIMED, "web", "web")


def test_a_node_that_is_released_says_since_when():
    note = '{"template":"web","since":"2029-12-31T23:00:00Z"}'
    tile = tile_of(node("n1", labels={names.TEMPLATE_LABEL: "web"}, annotations={names.RELEASE: note}))
    assert (tile.state, tile.since) == (TileState.RELEASING, NOW - timedelta(hours=1))


def test_a_spare_and_a_foreign_node_differ():
    assert tile_of(node("n1", taints=[f"{names.SPARE_TAINT}=true:NoSchedule"])).state is TileState.SPARE
    assert tile_of(node("n2")) is None
    assert SURFACE.tile(View(), "gone") is None


def test_a_template_without_any_node_is_critical():
    view = View(templates=[lacking("web", "NoSpareNodesFound"), lacking("db", "NoSpareNodesFound", current=2)])
    web, db = SURFACE.attention(view, NOW)
    assert (web.kind, web.severity, db.severity) == ("Shortage", Severity.CRITICAL, Severity.WARNING)
    assert (web.object.name, web.reason, web.since) == ("web", "NoSpareNodesFound", NOW - timedelta(minutes=5))


def test_a_template_that_its_user_paused_needs_nobody():
    assert list(SURFACE.attention(View(templates=[lacking("web", "Paused")]), NOW)) == []
