"""A leaf's pods as they are cached, and their requests per node, as exact sums that are updated in constant time.

Amounts are integers in units of 10^-9, as in `kube.resource_list`, so that removing a pod exactly undoes adding it.
Both values of `countPods` are summed, so that changing the option needs no recount.

A leaf has thousands of pods. For most of them the status only repeats the resources of the spec. Such repetition is
dropped at decoding, and so are conditions that do not affect requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import force_setattr

from nodeyard.capabilities.clustertree import names
from nodeyard.kube import pod_requests
from nodeyard.kube.objects import NullableStruct, PlainStruct, StringMap
from nodeyard.kube.pod_requests import RESIZE_PENDING, GivenStatus, RequestingSpec, relevant_statuses
from nodeyard.kube.quantity import QuantityError


@dataclass(frozen=True)
class Usage:
    """Requests of the pods on one leaf node, without pods created from the root unless noted."""

    scheduled: Mapping[str, int] = field(default_factory=dict)
    """Requests of all bound and unfinished pods, by resource; without zeros."""
    scheduled_pods: int = 0
    running: Mapping[str, int] = field(default_factory=dict)
    """Requests of pods in phase Running only, as Kosmos counts."""
    running_pods: int = 0
    from_root: Mapping[str, int] = field(default_factory=dict)
    """Requests of pods created from the root. The root's scheduler counts them, but they occupy this node."""
    from_root_pods: int = 0
    unreadable: frozenset[str] = frozenset()
    """Pods, as `namespace/name`, with an invalid request; each counts as one pod without requests."""


NOTHING = Usage()


def group(pod: LeafPod) -> tuple[str, ...]:
    """Return the node that the pod occupies, from binding until it has finished or is deleted."""
    node = pod.spec.node_name
    return () if not node or pod.is_finished else (node,)


def add(usage: Usage, pod: LeafPod) -> Usage:
    return _update(usage, pod, 1)


def remove(usage: Usage, pod: LeafPod) -> Usage:
    return _update(usage, pod, -1)


def _update(usage: Usage, pod: LeafPod, sign: int) -> Usage:
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
            _add(usage.from_root, requests, sign),
            usage.from_root_pods + sign,
            unreadable,
        )
    is_running = pod.is_running
    return Usage(
        _add(usage.scheduled, requests, sign),
        usage.scheduled_pods + sign,
        _add(usage.running, requests, sign) if is_running else usage.running,
        usage.running_pods + sign if is_running else usage.running_pods,
        usage.from_root,
        usage.from_root_pods,
        unreadable,
    )


def _add(total: Mapping[str, int], requests: Mapping[str, int], sign: int) -> Mapping[str, int]:
    """Drop zeros, so that a removed pod leaves no trace."""
    summed = dict(total)
    for name, amount in requests.items():
        now = summed.get(name, 0) + sign * amount
        if now:
            summed[name] = now
        else:
            summed.pop(name, None)
    return summed


RUNNING: Final = "Running"
_FINISHED: Final = frozenset(("Succeeded", "Failed"))


class LeafPodMeta(NullableStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: StringMap = {}


class LeafPodSpec(RequestingSpec, frozen=True):
    node_name: str = ""


class LeafPodStatus(GivenStatus, frozen=True):
    phase: str = ""


class LeafPod(PlainStruct, frozen=True):
    metadata: LeafPodMeta = LeafPodMeta()
    spec: LeafPodSpec = LeafPodSpec()
    status: LeafPodStatus = LeafPodStatus()

    def __post_init__(self) -> None:
        spec, status = self.spec, self.status
        if status.container_statuses:
            force_setattr(status, "container_statuses", relevant_statuses(spec.containers, status.container_statuses))
        if status.init_container_statuses:
            relevant = relevant_statuses(spec.init_containers, status.init_container_statuses)
            force_setattr(status, "init_container_statuses", relevant)
        if status.conditions:
            force_setattr(
                status, "conditions", tuple(each for each in status.conditions if each.type == RESIZE_PENDING)
            )

    @property
    def is_running(self) -> bool:
        return self.status.phase == RUNNING

    @property
    def is_finished(self) -> bool:
        return self.status.phase in _FINISHED

    @property
    def is_from_root(self) -> bool:
        """The pod was created from the root, whose scheduler counts it on the mirrored node."""
        return self.metadata.labels.get(names.ROOT_POD) == names.TRUE

    @property
    def full_name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"
