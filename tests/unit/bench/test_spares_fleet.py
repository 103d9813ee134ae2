"""The fleet of the spares benchmark: spares, newcomers, templates and heartbeats."""

from __future__ import annotations

from bench import spares_fleet
from bench.load import encode
from bench.spares_fleet import newcomer, spare, template

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.snapshot import is_spare
from nodeyard.client.decoder import decode_as
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node


def node(obj: Object) -> Node:
    return decode_as(Node, encode(obj))


def test_a_newcomer_is_spare_by_its_taint_alone():
    assert is_spare(node(newcomer(1)))
    assert names.SPARE_LABEL not in newcomer(1)["metadata"]["labels"]
    assert names.SPARE_LABEL in spare(1)["metadata"]["labels"]


def test_the_fleet_spans_several_zones():
    zones = {spare(number)["metadata"]["labels"]["topology.kubernetes.io/zone"] for number in range(9)}

    assert zones == {"zone-a", "zone-b", "zone-c"}


def test_templates_differ_in_name_and_priority():
    assert template(3, 50)["spec"]["nodes"] == 50
    assert len({template(number, 1)["spec"]["priority"] for number in range(10)}) == 10


def test_a_heartbeat_changes_only_the_heartbeat_time_of_each_condition():
    call = spares_fleet._heartbeat(7)

    assert call.path == "/api/v1/nodes/node-00007/status"
    assert b"lastHeartbeatTime" in call.body
    assert b"lastTransitionTime" not in call.body
