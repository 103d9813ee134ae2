"""The kinds of clustertree as they are watched: in which form, and how they are found again."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leaf_pods import LeafPod
from nodeyard.capabilities.clustertree.planning.claims import leaf_of
from nodeyard.capabilities.clustertree.planning.models import wanted_names
from nodeyard.capabilities.clustertree.snapshot import BoundPod, TreeNode
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube import conditions
from nodeyard.kube.names import MIRRORED_CLUSTER, NAMESPACE
from nodeyard.kube.objects import Condition, Lease, NullableStruct, ObjectMeta, PlainStruct, Secret, Slice

_PENDING: Final = "Pending"
_SCHEDULED: Final = "PodScheduled"


class RootPodSpec(PlainStruct, frozen=True):
    node_name: str = ""


class RootPodStatus(NullableStruct, frozen=True):
    phase: str = ""
    start_time: datetime | None = None
    conditions: Slice[Condition] = ()


class RootPod(PlainStruct, frozen=True):
    """A pod of the root, as far as it tells whether somebody has taken it up."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RootPodSpec = RootPodSpec()
    status: RootPodStatus = RootPodStatus()

    @property
    def is_waiting(self) -> bool:
        """Bound, and nobody has acknowledged it: whoever runs it sets its start time first of all."""
        return bool(self.spec.node_name) and self.status.phase in ("", _PENDING) and self.status.start_time is None

    @property
    def bound(self) -> BoundPod | None:
        """While it is waiting."""
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
"""As a view names it: other groups have a Cluster too."""
NODES: Final = resources.NODES.decoded_as(TreeNode)
ROOT_PODS: Final = resources.PODS.decoded_as(RootPod)
LEAF_PODS: Final = resources.PODS.decoded_as(LeafPod)
LEAF_LEASES: Final = resources.LEASES.decoded_as(Lease)
SECRETS: Final = resources.SECRETS.decoded_as(Secret)


def mirrored_cluster(node: TreeNode) -> str:
    """The Cluster that a node of the root says it mirrors; empty for any other node."""
    return node.metadata.annotations.get(MIRRORED_CLUSTER, "")


def by_cluster(node: TreeNode) -> Iterable[str]:
    cluster = mirrored_cluster(node)
    return (cluster,) if cluster else ()


def by_node(pod: RootPod) -> Iterable[str]:
    """Only those that are waiting: of all others nothing is asked."""
    return (pod.spec.node_name,) if pod.is_waiting else ()


def by_wanted(cluster: Cluster) -> Iterable[str]:
    """The names that its nodes get when it has none yet."""
    return dict.fromkeys(wanted_names(cluster, {}))


def by_leaf(cluster: Cluster) -> Iterable[str]:
    leaf = leaf_of(cluster)
    return (leaf,) if leaf else ()


def secret_of(cluster: Cluster) -> tuple[str, str] | None:
    """Namespace and name of the Secret that holds the kubeconfig, where it is in one."""
    ref = cluster.spec.kubeconfig_secret_ref
    return None if ref is None else (ref.namespace or NAMESPACE, ref.name)


def by_secret(cluster: Cluster) -> Iterable[str]:
    place = secret_of(cluster)
    return () if place is None else ("/".join(place),)
