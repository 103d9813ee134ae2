"""Nodes: registration and columns; expected rows were compared with the real server's."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.kinds.node import NodeStrategy

from .builders import node
from .pipeline import NOW, made

NODE = NodeStrategy()


def row(obj: dict) -> dict:
    return dict(zip((column.name for column in NODE.columns), NODE.cells(obj, NOW), strict=True))


@pytest.mark.parametrize(
    ("ready", "unschedulable", "shown"),
    [
        ("True", False, "Ready"),
        ("False", False, "NotReady"),
        ("Unknown", True, "NotReady,SchedulingDisabled"),
        (None, False, "Unknown"),
    ],
)
def test_status_shows_readiness_and_cordon(ready: str | None, unschedulable: bool, shown: str) -> None:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    obj = node(spec={"unschedulable": unschedulable}, conditions=conditions)
    assert row(obj)["Status"] == shown


def test_roles_come_from_labels_in_order() -> None:
    labels = {
        "node-role.kubernetes.io/worker": "",
        "node-role.kubernetes.io/control-plane": "",
        "kubernetes.io/role": "x",
    }
    assert row(node(labels=labels))["Roles"] == "control-plane,worker,x"
    assert row(node())["Roles"] == "<none>"


def test_unknown_values_of_wide_columns_have_placeholders() -> None:
    shown = row(node())
    assert shown["Age"] == "60m"
    assert [shown[name] for name in ("Internal-IP", "External-IP")] == ["<none>", "<none>"]
    assert [shown[name] for name in ("OS-Image", "Kernel-Version", "Container-Runtime")] == ["<unknown>"] * 3


def test_wide_columns_show_addresses_and_versions() -> None:
    shown = row(
        node(
            addresses=[{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
            nodeInfo={
                "kubeletVersion": "v1.36.4",
                "kernelVersion": "6.1",
                "architecture": "arm64",
                "osImage": "Debian",
            },
        )
    )
    assert shown["Version"] == "v1.36.4"
    assert shown["Internal-IP"] == "10.0.0.1"
    assert shown["Kernel-Version"] == "6.1 (arm64)"


def test_wide_columns_are_marked_by_priority() -> None:
    assert [column.name for column in NODE.columns if column.priority == 0] == [
        "Name",
        "Status",
        "Roles",
        "Age",
        "Version",
    ]


def test_a_node_is_registered_with_its_status() -> None:
    node = made("", "nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    assert node["status"]["capacity"] == node["status"]["allocatable"] == {"cpu": "4"}
