"""The watched kinds of clustertree: decoded type, and index functions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.planning.leaf_ownership import leaf_of
from nodeyard.capabilities.clustertree.planning.models import wanted_names
from nodeyard.capabilities.clustertree.snapshot import BoundPod, TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.usage import LeafPod
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube import conditions
from nodeyard.kube.names import MIRRORED_CLUSTER, NAMESPACE
from nodeyard.kube.objects import Condition, Lease, NullableStruct, ObjectMeta, PlainStruct, Secret, Slice
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
