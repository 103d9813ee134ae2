"""The watched kinds of clustertree: decoded type, index functions, and the requests of a leaf's pods per node.

Requests are exact sums that are updated in constant time. Amounts are integers in units of 10^-9, as in
`kube.resource_list`, so that removing a pod exactly undoes adding it. Both values of `countPods` are summed, so that
changing the option needs no recount.

A leaf has thousands of pods. For most of them the status only repeats the resources of the spec. Such repetition is
dropped at decoding, and so are conditions that do not affect requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import force_setattr

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.models import wanted_names
from nodeyard.capabilities.clustertree.planning.ownership import leaf_of
from nodeyard.capabilities.clustertree.snapshot import BoundPod, TreeNode, Usage
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube import conditions, pod_requests
from nodeyard.kube.names import MIRRORED_CLUSTER, NAMESPACE
from nodeyard.kube.objects import Condition, Lease, NullableStruct, ObjectMeta, PlainStruct, Secret, Slice, StringMap
from nodeyard.kube.pod_requests import RESIZE_PENDING, GivenStatus, RequestingSpec, relevant_statuses
from nodeyard.kube.quantity import QuantityError
from nodeyard.watch.shared_informer import in_namespace

_PENDING: Final = "Pending"
_SCHEDULED: Final = "PodScheduled"


class RootPodSpec(PlainStruct, frozen=True):
    node_name: str = ""


class RootPodStatus(NullableStruct, frozen=True):
    phase: str = ""
    start_time: datetime | None = None
    conditions: Slice[Condition] = ()


class RootPod(PlainStruct, frozen=True):
    """A pod of the root, trimmed to what shows whether it has been acknowledged."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RootPodSpec = RootPodSpec()
    status: RootPodStatus = RootPodStatus()

    @property
    def is_waiting(self) -> bool:
        """Bound and not acknowledged: whatever runs a pod first sets its status.startTime."""
        return bool(self.spec.node_name) and self.status.phase in ("", _PENDING) and self.status.start_time is None

    @property
    def bound(self) -> BoundPod | None:
        """The pending pod; None once it is acknowledged."""
        since = self._since if self.is_waiting else None
        if since is None:
            return None
        metadata = self.metadata
        return BoundPod(metadata.namespace, metadata.name, metadata.uid, self.spec.node_name, since)

    @property
    def _since(self) -> datetime | None:
        scheduled = conditions.find(self.status.conditions, _SCHEDULED)
        moment = None if scheduled is None else scheduled.last_transition_time
        return moment or self.metadata.creation_timestamp


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


CLUSTERS: Final = Resource(names.GROUP, names.VERSION, names.PLURAL, names.KIND, False, Cluster)
CLUSTER: Final = f"{names.KIND}.{names.GROUP}"
"""Name of the kind in a view; other groups have a Cluster too."""
NODES: Final = resources.NODES.decoded_as(TreeNode)
ROOT_PODS: Final = resources.PODS.decoded_as(RootPod)
LEAF_PODS: Final = resources.PODS.decoded_as(LeafPod)
LEAF_LEASES: Final = resources.LEASES.decoded_as(Lease)
SECRETS: Final = resources.SECRETS.decoded_as(Secret)


def mirrored_cluster(node: TreeNode) -> str:
    """Return the Cluster in the node's annotation; empty for any other node."""
    return node.metadata.annotations.get(MIRRORED_CLUSTER, "")


def by_cluster(node: TreeNode) -> Iterable[str]:
    cluster = mirrored_cluster(node)
    return (cluster,) if cluster else ()


def by_node(pod: RootPod) -> Iterable[str]:
    """Index only pending pods; no other pod is looked up."""
    return (pod.spec.node_name,) if pod.is_waiting else ()


def by_wanted(cluster: Cluster) -> Iterable[str]:
    """The names of its nodes before it has any."""
    return dict.fromkeys(wanted_names(cluster, {}))


def by_leaf(cluster: Cluster) -> Iterable[str]:
    leaf = leaf_of(cluster)
    return (leaf,) if leaf else ()


def secret_of(cluster: Cluster) -> tuple[str, str] | None:
    """Return namespace and name of the kubeconfig's Secret; None if there is none."""
    ref = cluster.spec.kubeconfig_secret_ref
    return None if ref is None else (ref.namespace or NAMESPACE, ref.name)


def secret_namespaces(clusters: Iterable[Cluster]) -> list[str]:
    """Namespaces of kubeconfig Secrets; only these are watched, and permissions are needed only there."""
    return sorted({place[0] for each in clusters if (place := secret_of(each)) is not None})


def secrets_in(namespace: str) -> str:
    """Return the name of the Secrets of one namespace in a view."""
    return in_namespace(SECRETS.kind, namespace)


def by_secret(cluster: Cluster) -> Iterable[str]:
    place = secret_of(cluster)
    return () if place is None else ("/".join(place),)


# pods of a leaf, and their requests

MOST_NAMES: Final = 1000
"""Names that the sums of one leaf node may have: each event copies them, and an untrusted leaf could invent many."""
TOO_MANY_NAMES: Final = Usage(fault=f"its pods have more than {MOST_NAMES} different or invalid requests")
"""The sums of such a node, until all its pods are gone."""


def usage_node(pod: LeafPod) -> tuple[str, ...]:
    """Return the node that the pod occupies, from binding until it has finished or is deleted."""
    node = pod.spec.node_name
    return () if not node or pod.is_finished else (node,)


def add_usage(usage: Usage, pod: LeafPod) -> Usage:
    return _update(usage, pod, 1)


def remove_usage(usage: Usage, pod: LeafPod) -> Usage:
    return _update(usage, pod, -1)


def _update(usage: Usage, pod: LeafPod, sign: int) -> Usage:
    if usage.fault:
        return usage
    updated = _sum(usage, pod, sign)
    names = len(updated.scheduled) + len(updated.from_root) + len(updated.unreadable)
    return updated if names <= MOST_NAMES else TOO_MANY_NAMES


def _sum(usage: Usage, pod: LeafPod, sign: int) -> Usage:
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
