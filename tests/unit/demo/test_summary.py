"""The summary of the fleet."""

import re
from io import StringIO

import msgspec
import pytest
from rich.console import Console

from nodeyard.demo.summary import Fleet, NodeView, ObjectState, PodView, mirror_table, summarize, zone_table
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.process.clock import EPOCH
from nodeyard.sim.nodes import NodeShape, node, spare_node


def seen(obj):
    return msgspec.convert(obj, NodeView)


def pod(name, node, phase="Running"):
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"nodeName": node}, "status": {"phase": phase}}, PodView
    )


def mirror(name, cluster):
    shape = NodeShape(cpu=4, extended={"nvidia.com/gpu": "2"})
    return node(
        name,
        EPOCH,
        zone="b",
        shape=shape,
        labels={MIRRORED_NODE: "true"},
        annotations={MIRRORED_CLUSTER: cluster},
        is_ready=True,
    )


@pytest.fixture
def fleet():
    nodes = [
        seen(node("a1", EPOCH, zone="a", is_ready=True)),
        seen(node("b1", EPOCH, zone="b", is_ready=True)),
        seen(spare_node("b2", EPOCH, zone="b")),
        seen(mirror("kosmos-east", "east")),
    ]
    return Fleet(nodes, [pod("p", "a1"), pod("q", "b1"), pod("r", "b1", "Pending")], {"a1", "b1"})


def printed(made):
    output = StringIO()
    Console(file=output, width=160).print(made)
    return [re.split(r"  +", line.strip()) for line in output.getvalue().splitlines()]


def test_the_table_counts_by_zone(fleet):
    rows = printed(zone_table(fleet))
    assert ["a", "1", "1", "1", "0", "0", "1", "1"] in rows
    assert ["b", "3", "2", "1", "1", "1", "1", "1"] in rows
    assert ["all", "4", "3", "2", "1", "1", "2", "2"] in rows


def test_mirrors_are_listed_with_what_they_offer(fleet):
    (row,) = [row for row in printed(mirror_table(fleet)) if row[0] == "kosmos-east"]
    assert row[1:3] == ["east", "yes"]
    assert row[3] == "3760m"
    assert "nvidia.com/gpu: 2" in row[6]


def test_a_fleet_is_complete_when_all_is_ready_and_runs(fleet):
    assert fleet.is_complete(2, 2)
    assert not fleet.is_complete(3, 2)
    assert not fleet.is_complete(2, 3)


def test_the_summary_begins_with_what_is_not_fine(fleet):
    objects = [
        ObjectState("spares", "NodeTemplate", "compute", True, True, "Current nodes are sufficient"),
        ObjectState("pools", "LatticeService", "inference", False, True, "No pool matches"),
    ]
    rows = printed(summarize(fleet, objects, []))
    assert rows[0] == ["Not fine: 2"]
    assert rows[1] == ["latticeservice/inference", "No pool matches"]
    assert rows[2][0] == "node/b2"
    assert ["spares", "1 NodeTemplate"] in rows


@pytest.mark.parametrize("width", [80, 160])
def test_the_summary_fits_on_a_screen_however_much_is_wrong(fleet, width):
    capabilities = ("spares", "pools", "affinity", "clustertree", "profiles")
    objects = [
        ObjectState(each, f"Kind{number}", "a-rather-long-name-of-an-object", False, False, "long message " * 20)
        for each in capabilities
        for number in range(10)
    ]
    nodes = [seen(node(f"n{number}", EPOCH, zone=f"zone-{number % 6}")) for number in range(40)]
    output = StringIO()
    Console(file=output, width=width).print(summarize(Fleet(nodes, [], set()), objects, []))
    lines = [line.rstrip() for line in output.getvalue().splitlines()]
    # One line more says how long it took.
    assert len(lines) < 25
    assert max(map(len, lines)) <= width
    assert "  and 86 more" in lines


def test_a_fleet_without_faults_reports_none(fleet):
    ready = Fleet([each for each in fleet.nodes if each.is_ready], [], set())
    assert printed(summarize(ready, [], []))[0] == ["Everything is fine"]
