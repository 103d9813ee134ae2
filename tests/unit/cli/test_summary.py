"""The fleet at a glance."""

from io import StringIO

import msgspec
import pytest
from rich.console import Console

from nodeyard.cli.summary import Fleet, NodeView, PodView, table
from nodeyard.process.clock import EPOCH
from nodeyard.sim.nodes import node, spare_node


def seen(obj):
    return msgspec.convert(obj, NodeView)


def pod(name, node, phase="Running"):
    return msgspec.convert(
        {"metadata": {"name": name}, "spec": {"nodeName": node}, "status": {"phase": phase}}, PodView
    )


@pytest.fixture
def fleet():
    nodes = [
        seen(node("a1", EPOCH, zone="a", is_ready=True)),
        seen(node("b1", EPOCH, zone="b", is_ready=True)),
        seen(spare_node("b2", EPOCH, zone="b")),
    ]
    return Fleet(nodes, [pod("p", "a1"), pod("q", "b1"), pod("r", "b1", "Pending")], {"a1", "b1"})


def test_the_table_counts_by_zone(fleet):
    output = StringIO()
    Console(file=output, width=100).print(table(fleet))
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in output.getvalue().splitlines()]
    assert ["a", "1", "1", "1", "0", "1", "1"] in rows
    assert ["b", "2", "1", "1", "1", "1", "1"] in rows
    assert ["all", "3", "2", "2", "1", "2", "2"] in rows


def test_a_fleet_is_complete_when_all_is_ready_and_runs(fleet):
    assert fleet.is_complete(2, 2)
    assert not fleet.is_complete(3, 2)
    assert not fleet.is_complete(2, 3)
