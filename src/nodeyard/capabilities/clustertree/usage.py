"""What pods take away from a node: exact sums that one pod is added to and removed from in constant time.

Amounts are whole billionths, as in `kube.amounts`, so that adding and removing undo each other exactly. Both ways to
count are kept side by side: who changes the option needs no recount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodeyard.capabilities.clustertree.leaf_pods import LeafPod
from nodeyard.kube import pod_requests
from nodeyard.kube.quantity import QuantityError


@dataclass(frozen=True)
class Usage:
    """Of the pods on one leaf node: of those that were not created from the root, unless it says otherwise."""

    scheduled: Mapping[str, int] = field(default_factory=dict)
    """Requests of all that are bound and not finished, by resource; no zeros."""
    scheduled_pods: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    """Of those in phase Running alone: what Kosmos counts."""
    running_pods: int = 0
    from_root: Mapping[str, int] = field(default_factory=dict)
    """Of those created from the root: its scheduler counts them, but they fill this very node."""
    from_root_pods: int = 0
    unreadable: frozenset[str] = frozenset()
    """Pods, as `namespace/name`, one of whose requests is no quantity: each takes its place and nothing else."""


NOTHING = Usage()


def group(pod: LeafPod) -> tuple[str, ...]:
    """The node that the pod takes room on: from when it is bound until it is finished or gone, however it ends."""
    node = pod.spec.node_name
    return () if not node or pod.is_finished else (node,)


def add(usage: Usage, pod: LeafPod) -> Usage:
    return _changed(usage, pod, 1)


def remove(usage: Usage, pod: LeafPod) -> Usage:
    return _changed(usage, pod, -1)


def _changed(usage: Usage, pod: LeafPod, sign: int) -> Usage:
    unreadable = usage.unreadable
    try:
        requests = pod_requests.of_pod(pod)
    except QuantityError:
        requests = {}
        unreadable = unreadable | {pod.full_name} if sign > 0 else unreadable - {pod.full_name}
    if pod.is_from_root:
        return Usage(
            usage.scheduled,
            usage.scheduled_pods,
            usage.running,
            usage.running_pods,
            _summed(usage.from_root, requests, sign),
            usage.from_root_pods + sign,
            unreadable,
        )
    is_running = pod.is_running
    return Usage(
        _summed(usage.scheduled, requests, sign),
        usage.scheduled_pods + sign,
        _summed(usage.running, requests, sign) if is_running else usage.running,
        usage.running_pods + sign if is_running else usage.running_pods,
        usage.from_root,
        usage.from_root_pods,
        unreadable,
    )


def _summed(total: Mapping[str, int], requests: Mapping[str, int], sign: int) -> Mapping[str, int]:
    """Without zeros, so that nothing is left of a pod that is gone."""
    summed = dict(total)
    for name, amount in requests.items():
        now = summed.get(name, 0) + sign * amount
        if now:
            summed[name] = now
        else:
            summed.pop(name, None)
    return summed
