"""Drain rules: the pods of a node that a drain evicts, waits for or leaves.

The rules are those of Cluster API's drain, so that nothing is left for it. Unlike `kubectl drain`, pods without a
controller and pods with emptyDir volumes are evicted too.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRROR_POD
from nodeyard.kube.objects import Node, Pod

DRAIN_LABEL: Final = "cluster.x-k8s.io/drain"
"""Cluster API's pod label that selects its drain behaviour."""
SKIP: Final = "skip"
WAIT_COMPLETED: Final = "waitcompleted"

OVERDUE: Final = timedelta(seconds=1)
"""A pod on an unreachable node is given up this long after its end: no kubelet confirms that it is gone."""

_FINISHED: Final = frozenset({"Succeeded", "Failed"})


class Handling(Enum):
    LEAVE = "leave"
    """The pod goes with the node, and the drain does not wait for it."""
    AWAIT = "await"
    """The pod is terminating, or asks the drain to wait for it."""
    EVICT = "evict"


def handling(pod: Pod, node: Node, daemon_sets: Collection[tuple[str, str]] | None, now: datetime) -> Handling:
    """Return what a drain does with the pod. `daemon_sets` are namespaces and names; None if they are unknown."""
    metadata = pod.metadata
    label = metadata.labels.get(DRAIN_LABEL, "").replace("-", "", 1).lower()
    if MIRROR_POD in metadata.annotations or label == SKIP or _is_of_daemon_set(pod, daemon_sets):
        return Handling.LEAVE
    if metadata.deletion_timestamp is not None:
        given_up = given_up_at(pod, node)
        return Handling.LEAVE if given_up is not None and now > given_up else Handling.AWAIT
    if label == WAIT_COMPLETED:
        return Handling.LEAVE if is_finished(pod) else Handling.AWAIT
    return Handling.EVICT


def given_up_at(pod: Pod, node: Node) -> datetime | None:
    """Return when to stop waiting for a terminating pod; None if its node is reachable and will report it."""
    ends = pod.metadata.deletion_timestamp
    return ends + OVERDUE if ends is not None and is_unreachable(node) else None


def is_unreachable(node: Node) -> bool:
    """Return True if the kubelet has stopped reporting, so that no pod on the node is seen to end."""
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions)


def eviction_options(node: Node) -> Object | None:
    """Return the delete options of an eviction. On an unreachable node no pod ends gracefully, so the grace period is
    short and the pod is given up sooner."""
    return {"gracePeriodSeconds": 1} if is_unreachable(node) else None


def is_workload(pod: Pod) -> bool:
    """Return True if the pod keeps its node from being empty: not of a DaemonSet, not static, not finished."""
    return not (_is_of_daemon_set(pod, None) or MIRROR_POD in pod.metadata.annotations or is_finished(pod))


def is_finished(pod: Pod) -> bool:
    return pod.status.phase in _FINISHED


def _is_of_daemon_set(pod: Pod, daemon_sets: Collection[tuple[str, str]] | None) -> bool:
    """Return True for a pod of an existing DaemonSet, which would be recreated at once."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != "DaemonSet" or is_finished(pod):
        return False
    return daemon_sets is None or (pod.metadata.namespace, owner.name) in daemon_sets
