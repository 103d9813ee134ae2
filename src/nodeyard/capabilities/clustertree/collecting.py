"""How the snapshot of one Cluster is taken from the caches of the root and of its leaf.

Two things are not a leaf's own: the root itself, where a kubeconfig leads back to it, and nodes by which the leaf in
turn mirrors others. Were they counted, two clusters that mirror each other would make each other grow for ever. And
what another Cluster mirrors of the same leaf is that one's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.kubeconfigs import kubeconfig_of
from nodeyard.capabilities.clustertree.planning.claims import elders
from nodeyard.capabilities.clustertree.planning.models import Mode, models_of, wanted_names
from nodeyard.capabilities.clustertree.planning.ownership import is_ours
from nodeyard.capabilities.clustertree.snapshot import BoundPod, Kubeconfig, Leaf, TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER
from nodeyard.kube.names import LEASE_NAMESPACE, MIRRORED_NODE
from nodeyard.kube.objects import Lease
from nodeyard.runtime.capability import ClusterView, View
from nodeyard.watch.informer import FORBIDDEN

_WATCHED: Final = ("Node", "Pod")
_LEADS_HOME: Final = "it leads to this very cluster, which cannot be a leaf of its own"


def collect(view: View, key: str, _now: datetime) -> TreeSnapshot | None:
    cluster: Cluster | None = view.get(CLUSTER, key)
    if cluster is None:
        return None
    mirrors: dict[str, TreeNode] = {node.name: node for node in view.indexed("Node", names.BY_CLUSTER, key)}
    kubeconfig, leaf = _line(view, cluster)
    return TreeSnapshot(
        cluster=cluster,
        kubeconfig=kubeconfig,
        leaf=leaf,
        mirrors=mirrors,
        strangers=_strangers(view, cluster, mirrors),
        waiting=tuple(_waiting(view, mirrors)),
        elders=elders(cluster, view.indexed(CLUSTER, names.BY_LEAF, leaf.uid), leaf.uid) if leaf.uid else (),
    )


def _strangers(view: View, cluster: Cluster, mirrors: Mapping[str, TreeNode]) -> dict[str, TreeNode]:
    found = ((name, view.get("Node", name)) for name in wanted_names(cluster, mirrors))
    return {name: node for name, node in found if node is not None and not is_ours(node, cluster.name)}


def _waiting(view: View, mirrors: Iterable[str]) -> list[BoundPod]:
    if not view.is_synced("Pod"):
        return []
    pods = (pod.bound for node in mirrors for pod in view.indexed("Pod", names.BY_NODE, node))
    return sorted((pod for pod in pods if pod is not None), key=lambda pod: (pod.namespace, pod.name))


# the leaf


def _line(view: View, cluster: Cluster) -> tuple[Kubeconfig, Leaf]:
    """The way to the leaf, and what is seen at its end."""
    kubeconfig, there = kubeconfig_of(view, cluster), view.cluster(cluster.name)
    finding = view.finding(names.finding(cluster.name))
    if there.uid and there.uid == view.uid:
        return replace(kubeconfig, error=_LEADS_HOME, content=b""), Leaf(finding=finding)
    return kubeconfig, replace(_leaf(there, cluster), finding=finding)


def _leaf(there: ClusterView, cluster: Cluster) -> Leaf:
    nodes: dict[str, TreeNode] = {node.name: node for node in there.all("Node") if is_of_leaf(node)}
    troubles = [trouble for kind in _WATCHED if (trouble := there.trouble(kind))]
    return Leaf(
        is_synced=all(there.is_synced(kind) for kind in _WATCHED),
        uid=there.uid,
        is_connected=there.is_connected,
        connected_at=there.connected_at,
        error=there.error or next(iter(troubles), ""),
        denied=next((trouble for trouble in troubles if FORBIDDEN in trouble), ""),
        version=there.version,
        nodes=nodes,
        used={name: there.aggregate(names.USED, name) for name in nodes},
        leases=_leases(there, cluster),
        is_leased=not there.trouble("Lease"),
    )


def is_of_leaf(node: TreeNode) -> bool:
    """Whether it is a machine of the leaf, and no mirror of yet another cluster."""
    return node.metadata.labels.get(MIRRORED_NODE) != names.TRUE


def _leases(there: View, cluster: Cluster) -> dict[str, Lease]:
    """None where we may not look at them any more: then leaf nodes speak by their conditions alone."""
    if FORBIDDEN in there.trouble("Lease"):
        return {}
    wanted = [model.leaf_node for model in models_of(cluster) if model.mode is Mode.NODE]
    found = ((name, there.get("Lease", name, LEASE_NAMESPACE)) for name in wanted)
    return {name: lease for name, lease in found if lease is not None}
