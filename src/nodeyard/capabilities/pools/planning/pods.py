"""Which pods a drain is about: the same ones that Cluster API's own drain is, so that there is nothing left for it.

Without being asked like `kubectl drain` is: pods without a controller and pods with emptyDir volumes go too, since the
machine under them does.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from enum import Enum

from nodeyard.capabilities.pools import names
from nodeyard.kube.names import MIRROR_POD
from nodeyard.kube.objects import Node, Pod

OVERDUE = timedelta(seconds=1)
"""So long after its end a pod on an unreachable node is given up: no kubelet is there to say that it is gone."""

_FINISHED = frozenset({"Succeeded", "Failed"})


class Handling(Enum):
    LEAVE = "leave"
    """It goes with the node, and nobody waits for it."""
    AWAIT = "await"
    """It is on its way out, or wants to be waited for."""
    EVICT = "evict"


def handling(pod: Pod, node: Node, daemon_sets: Collection[tuple[str, str]], now: datetime) -> Handling:
    """What a drain does about the pod."""
    metadata = pod.metadata
    label = metadata.labels.get(names.DRAIN_SKIP_LABEL, "").replace("-", "", 1).lower()
    if MIRROR_POD in metadata.annotations or label == names.DRAIN_SKIP or _is_of_daemon_set(pod, daemon_sets):
        return Handling.LEAVE
    if metadata.deletion_timestamp is not None:
        given_up = given_up_at(pod, node)
        return Handling.LEAVE if given_up is not None and now > given_up else Handling.AWAIT
    if label == names.DRAIN_WAIT:
        return Handling.LEAVE if is_finished(pod) else Handling.AWAIT
    return Handling.EVICT


def given_up_at(pod: Pod, node: Node) -> datetime | None:
    """After when a terminating pod is not waited for any more; None where its node can be relied on to report it."""
    ends = pod.metadata.deletion_timestamp
    return ends + OVERDUE if ends is not None and is_unreachable(node) else None


def is_unreachable(node: Node) -> bool:
    """Whether its kubelet has not been heard of: nothing on it will be seen to end."""
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions)


def is_finished(pod: Pod) -> bool:
    return pod.status.phase in _FINISHED


def _is_of_daemon_set(pod: Pod, daemon_sets: Collection[tuple[str, str]]) -> bool:
    """A live one's: it would be back at once. A pod whose DaemonSet is gone is like any other."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != "DaemonSet" or is_finished(pod):
        return False
    return (pod.metadata.namespace, owner.name) in daemon_sets
