"""Nodes and pods of a leaf, with the fields that resources are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.capabilities.clustertree.watched import LeafPod
from nodeyard.kube.pod_requests import RequestingPod


def leaf_node(
    name: str = "n1",
    allocatable: Mapping[str, str] | None = None,
    *,
    ready: str | None = "True",
    cordoned: bool = False,
    taints: tuple[str, ...] = (),
) -> TreeNode:
    """Build a leaf node. `taints` are effects; `ready` is None if it has not reported yet."""
    conditions = [{"type": "MemoryPressure", "status": "False"}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready})
    raw = {
        "metadata": {"name": name},
        "spec": {"unschedulable": cordoned, "taints": [{"key": "some/key", "effect": effect} for effect in taints]},
        "status": {"conditions": conditions, "allocatable": dict(allocatable or {})},
    }
    return msgspec.convert(raw, TreeNode)


def leaf_pod(
    name: str = "p",
    node: str = "n1",
    requests: Mapping[str, str] | None = None,
    *,
    phase: str = "Running",
    from_root: bool = False,
) -> LeafPod:
    raw = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "labels": {"kosmos-io/pod": "true"} if from_root else {"app": "web"},
        },
        "spec": {"nodeName": node, "containers": [container("main", requests)]},
        "status": {"phase": phase},
    }
    return msgspec.convert(raw, LeafPod)


def container(name: str, requests: Mapping[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": dict(requests or {})}, **more}


def given(name: str, actual: Mapping[str, str] | None, allocated: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Build the status of a container; `actual` is None if the kubelet does not report allocated resources."""
    status: dict[str, Any] = {"name": name}
    if actual is not None:
        status["resources"] = {"requests": dict(actual)}
    if allocated is not None:
        status["allocatedResources"] = dict(allocated)
    return status


def requesting(spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> RequestingPod:
    return msgspec.convert({"spec": dict(spec), "status": dict(status or {})}, RequestingPod)
