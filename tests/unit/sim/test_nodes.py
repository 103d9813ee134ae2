"""Simulated nodes look like real ones."""

import msgspec

from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import EPOCH
from nodeyard.sim.nodes import NodeShape, node, renewed_conditions, spare_node


def ready(obj):
    return next(one for one in obj["status"]["conditions"] if one["type"] == "Ready")


def test_a_node_is_as_large_as_a_real_one():
    size = len(msgspec.json.encode(node("worker-0001", EPOCH)))
    assert 9_500 < size < 11_500


def test_a_node_has_addresses_and_system_info():
    labels = node("n1", EPOCH, zone="z", shape=NodeShape(arch="arm64"), labels={"team": "a"})["metadata"]["labels"]
    assert labels["topology.kubernetes.io/zone"] == "z"
    assert labels["kubernetes.io/arch"] == "arm64"
    assert labels["kubernetes.io/hostname"] == "n1"
    assert labels["team"] == "a"


def test_the_same_name_makes_the_same_node_and_another_another():
    assert node("n1", EPOCH) == node("n1", EPOCH)
    one, other = node("n1", EPOCH), node("n2", EPOCH)
    assert one["status"]["nodeInfo"]["machineID"] != other["status"]["nodeInfo"]["machineID"]
    assert one["status"]["addresses"] != other["status"]["addresses"]


def test_a_node_registers_before_it_is_ready():
    assert ready(node("n1", EPOCH))["status"] == "False"
    assert ready(node("n1", EPOCH, is_ready=True))["status"] == "True"


def test_less_can_be_allocated_than_there_is():
    status = node("n1", EPOCH, shape=NodeShape(cpu=8, extended={"nvidia.com/gpu": "4"}))["status"]
    assert (status["capacity"]["cpu"], status["allocatable"]["cpu"]) == ("8", "7760m")
    assert status["allocatable"]["nvidia.com/gpu"] == "4"


def test_a_spare_node_is_labelled_and_tainted():
    spare = spare_node("n1", EPOCH)
    assert spare["metadata"]["labels"]["node-role.kubernetes.io/spare"] == "true"
    assert [taint["key"] for taint in spare["spec"]["taints"]] == ["node.cybozu.io/spare"]


def test_a_report_keeps_the_moment_of_the_last_change():
    first = node("n1", EPOCH)["status"]["conditions"]
    second = renewed_conditions(first, "2026-01-01T00:05:00Z", is_ready=True)
    times = {one["type"]: (one["lastTransitionTime"], one["lastHeartbeatTime"]) for one in second}
    assert times["Ready"] == ("2026-01-01T00:05:00Z", "2026-01-01T00:05:00Z")
    assert times["DiskPressure"] == (format_rfc3339(EPOCH), "2026-01-01T00:05:00Z")
