"""Spares on the dashboard."""

from datetime import timedelta

import msgspec
import pytest
from tests.builders.spares import NOW, node, owned, pod, snapshot, template

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.plan import plan
from nodeyard.capabilities.spares.surface import SURFACE
from nodeyard.capabilities.spares.types import NodeTemplateStatus
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.surface import Severity, TileState


class View:
    """Caches of nodes and templates."""

    def __init__(self, *, nodes=(), templates=(), pods=()):
        self._kept = {
            "Node": {each.metadata.name: each for each in nodes},
            names.KIND: {each.name: each for each in templates},
        }
        self._pods = pods

    def get(self, kind, name):
        return self._kept[kind].get(name)

    def all(self, kind):
        return list(self._kept[kind].values())

    def is_synced(self, _kind):
        return self._pods is not None

    def indexed(self, _kind, _index, value):
        return [each for each in self._pods if each.spec.node_name == value]


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


# releases

NOTE = '{"template":"web","since":"2029-12-31T23:00:00Z"}'


def releasing(name):
    return owned(name, "web", annotations={names.RELEASE: NOTE}, is_cordoned=True)


def web(**spec):
    return template("web", 1, releasePolicy="Release", **spec)


def test_a_release_counts_empty_nodes_and_names_the_pods_in_its_way():
    pods = [pod("db", "n1"), pod("log", "n1", owner="DaemonSet")]
    view = View(nodes=[releasing("n1"), releasing("n2"), owned("n3", "web")], templates=[web()], pods=pods)
    (row,) = SURFACE.rollouts(view, NOW)
    assert (row.kind, row.object.name, row.done, row.total) == ("Drain", "web", 1, 2)
    assert row.since == NOW - timedelta(hours=1)
    assert row.next == "The pods have to leave by themselves: spec.release.evictAfterSeconds is not set."
    assert "default/db" in row.message
    (blocker,) = row.blockers
    assert (blocker.object.namespace, blocker.object.name, blocker.reason) == ("default", "db", "WaitingForPods")
    assert blocker.message == "Runs on n1; it belongs to ReplicaSet owner"
    assert blocker.ways_out[:2] == (
        "kubectl delete pod db --namespace default",
        """kubectl patch nodetemplates web --type=merge -p '{"spec":{"release":{"evictAfterSeconds":0}}}'""",
    )


def test_a_release_that_evicts_retries_within_the_budgets():
    view = View(nodes=[releasing("n1")], templates=[web(release={"evictAfterSeconds": 60})], pods=[pod("db", "n1")])
    (row,) = SURFACE.rollouts(view, NOW)
    assert row.next == "Evictions are retried within their budgets."


def test_an_eviction_that_is_not_due_yet_has_its_time():
    view = View(nodes=[releasing("n1")], templates=[web(release={"evictAfterSeconds": 7200})], pods=[pod("db", "n1")])
    (row,) = SURFACE.rollouts(view, NOW)
    assert row.next == "Pods are evicted from 2030-01-01T01:00:00Z on."


def test_an_empty_release_is_about_to_end():
    (row,) = SURFACE.rollouts(View(nodes=[releasing("n1")], templates=[web()]), NOW)
    assert (row.done, row.total, row.next, row.blockers) == (1, 1, "The nodes become spare again.", ())


def test_unknown_pods_block_nothing_and_nothing_counts_as_drained():
    (row,) = SURFACE.rollouts(View(nodes=[releasing("n1")], templates=[web()], pods=None), NOW)
    assert (row.done, row.blockers) == (0, ())


# why


def why(kind, name, nodes, templates, pods=()):
    ref = ObjectRef(api_version="v1", kind=kind, name=name)
    (decision,) = plan(snapshot(nodes, templates, pods), NOW, (ref,)).plan.decisions
    return decision, SURFACE.remedies(View(nodes=nodes, templates=templates), decision)


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        ({"paused": True}, '{"spec":{"paused":false},"metadata":{"annotations":{"nodeyard.dev/paused":null}}}'),
        ({"dryRun": True}, '{"spec":{"dryRun":false}}'),
        ({"dry-run": True}, '{"spec":{"dryRun":false,"dry-run":false}}'),
        ({}, '{"spec":{"nodes":2}}'),
    ],
)
def test_a_remedy_of_a_template_has_its_command(spec, command):
    _, remedies = why(names.KIND, "web", [owned("n1", "web")], [template("web", 1, **spec)])
    assert f"kubectl patch nodetemplates web --type=merge -p '{command}'" in [each.command for each in remedies]


def test_a_remedy_of_a_node_has_its_command():
    nodes = [releasing("n1"), owned("n2", "web")]
    decision, remedies = why("Node", "n1", nodes, [web()], [pod("db", "n1")])
    assert decision.rule == "WaitingForPods"
    assert [each.command for each in remedies] == ["kubectl drain n1 --ignore-daemonsets --delete-emptydir-data"]


def test_a_claimed_node_is_given_back_by_a_smaller_template():
    _, remedies = why("Node", "n1", [owned("n1", "web")], [web()])
    patch = '{"spec":{"nodes":0,"releasePolicy":"Release"}}'
    assert f"kubectl patch nodetemplates web --type=merge -p '{patch}'" in [each.command for each in remedies]


@pytest.mark.parametrize(
    ("nodes", "spec", "rule"),
    [
        ([owned("n1", "web")], {}, "SufficientNodes"),
        ([], {}, "NoSpareNodesFound"),
        ([], {"paused": True}, "Paused"),
        ([owned("n1", "web"), owned("n2", "web")], {}, "SurplusRetained"),
    ],
)
def test_the_rule_of_a_template_is_a_rung_of_its_ladder(nodes, spec, rule):
    decision, _ = why(names.KIND, "web", nodes, [template("web", 1, **spec)])
    assert decision.rule == rule
    assert rule in [each.reason for each in SURFACE.ladders[names.KIND]]
