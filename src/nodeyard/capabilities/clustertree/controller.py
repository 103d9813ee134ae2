"""What clustertree watches, in the root and in every leaf, and which events make it plan again. No decisions here.

Each Cluster is a key of its own, and replicas share them out. Of a leaf's events only those count that change what its
nodes show: heartbeats, renewed leases and pods that only report themselves cause no plan.

    root   Clusters · Nodes · Secrets with a leaf's kubeconfig · Pods that are pending
    leaf   Nodes · Pods, summed up by node · Leases of its nodes, where some are mirrored one to one
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.capabilities.clustertree import names, usage, watched
from nodeyard.capabilities.clustertree.briefs import Brief, brief_of
from nodeyard.capabilities.clustertree.collecting import collect, is_of_leaf
from nodeyard.capabilities.clustertree.definition import CLUSTER as DEFINITION
from nodeyard.capabilities.clustertree.events import events
from nodeyard.capabilities.clustertree.kubeconfigs import kubeconfig_of
from nodeyard.capabilities.clustertree.leaf_pods import LeafPod
from nodeyard.capabilities.clustertree.leases.loop import renew
from nodeyard.capabilities.clustertree.messages import text
from nodeyard.capabilities.clustertree.metrics import TreeMetrics
from nodeyard.capabilities.clustertree.originals import living_original
from nodeyard.capabilities.clustertree.plan import plan
from nodeyard.capabilities.clustertree.planning.briefing import lease_nodes
from nodeyard.capabilities.clustertree.planning.claims import leaf_of
from nodeyard.capabilities.clustertree.planning.models import Mode, models_of
from nodeyard.capabilities.clustertree.planning.ownership import ours
from nodeyard.capabilities.clustertree.planning.removal import ending
from nodeyard.capabilities.clustertree.planning.silence import is_taken_up
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.status import status
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER, RootPod
from nodeyard.kube.names import LEASE_NAMESPACE, MIRRORED_NODE
from nodeyard.kube.objects import Lease, Secret
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import (
    Aggregate,
    Capability,
    ClusterView,
    Elsewhere,
    Key,
    Kind,
    Rule,
    View,
    Watch,
)

# which keys, of what happens in the root


def _cluster_keys(view: View, old: Cluster | None, new: Cluster | None) -> Iterable[Key]:
    """Itself; and where it mirrors a leaf, or did, those that lead to the same one: it may leave them more, or less."""
    known = new or old
    if known is None:
        return ()
    if old is None:
        return (known.name,)
    if new is not None and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return ()
    leaves = {leaf for each in (old, new) if each is not None and (leaf := leaf_of(each))}
    return dict.fromkeys((known.name, *_leading_to(view, leaves)))


def _leading_to(view: View, leaves: Collection[str]) -> list[Key]:
    """Of the Clusters that are ours to look after: of another replica's we do not know."""
    return [each.name for each in view.all(CLUSTER) if view.cluster(each.name).uid in leaves] if leaves else []


def _node_keys(view: View, old: TreeNode | None, new: TreeNode | None) -> Iterable[Key]:
    """The Cluster that the node mirrors; where it came, went or changed hands, also those that want its name."""
    if old is not None and new is not None and not _differs(old, new):
        return ()
    keys = dict.fromkeys(cluster for node in (old, new) if node is not None for cluster in watched.by_cluster(node))
    if _whose(old) != _whose(new):
        known = new or old
        wanting = () if known is None else view.indexed(CLUSTER, names.BY_WANTED, known.name)
        keys |= dict.fromkeys(each.name for each in wanting)
    return tuple(keys)


def _differs(old: TreeNode, new: TreeNode) -> bool:
    """In more than its version: heartbeats are not even read."""
    return not old.metadata.is_alike(new.metadata) or old.spec != new.spec or old.status != new.status


def _whose(node: TreeNode | None) -> tuple[str, str, str] | None:
    if node is None:
        return None
    metadata = node.metadata
    return metadata.uid, watched.mirrored_cluster(node), metadata.labels.get(MIRRORED_NODE, "")


def _secret_keys(view: View, old: Secret | None, new: Secret | None) -> Iterable[Key]:
    known = new or old
    if known is None or (old is not None and new is not None and old.data == new.data):
        return ()
    place = f"{known.metadata.namespace}/{known.metadata.name}"
    return [each.name for each in view.indexed(CLUSTER, names.BY_SECRET, place)]


def _pod_keys(view: View, old: RootPod | None, new: RootPod | None) -> Iterable[Key]:
    """The Cluster of the node that it waits on, or waited on."""
    before, after = (None if pod is None else pod.bound for pod in (old, new))
    if before == after:
        return ()
    return dict.fromkeys(key for pod in (before, after) if pod is not None for key in _keys_of_node(view, pod.node))


def _keys_of_node(view: View, name: str) -> Iterable[Key]:
    node: TreeNode | None = view.get("Node", name)
    return () if node is None else watched.by_cluster(node)


# and of what happens in a leaf


def _leaf_node_keys(cluster: str, old: TreeNode | None, new: TreeNode | None) -> Iterable[Key]:
    """Its annotations are not mirrored, and nobody is asked about mirrors of its own."""
    if not any(node is not None and is_of_leaf(node) for node in (old, new)):
        return ()
    return () if _shown(old) == _shown(new) else (cluster,)


def _shown(node: TreeNode | None) -> tuple[Any, ...] | None:
    return None if node is None else (node.metadata.uid, node.metadata.labels, node.spec, node.status)


def _leaf_pod_keys(cluster: str, old: LeafPod | None, new: LeafPod | None) -> Iterable[Key]:
    return () if _takes(old) == _takes(new) else (cluster,)


def _leaf_lease_keys(cluster: str, old: Lease | None, new: Lease | None) -> Iterable[Key]:
    """Renewals are no news, but for the first of a lease that had run out."""
    return (cluster,) if old is not None and new is not None and is_taken_up(old, new) else ()


def _takes(pod: LeafPod | None) -> tuple[Any, ...] | None:
    """What it takes from which node; None while it takes nothing."""
    if pod is None or not usage.group(pod):
        return None
    return pod.is_from_root, pod.spec, pod.status


# the leaves


def clusters(view: View) -> Iterable[Elsewhere]:
    """Every Cluster that is to be mirrored and that there is a way to."""
    for cluster in view.all(CLUSTER):
        kubeconfig = kubeconfig_of(view, cluster) if ending(cluster) is None else None
        if kubeconfig is not None and kubeconfig.content:
            yield Elsewhere(cluster.name, kubeconfig.content)


def _has_clusters(view: View) -> bool:
    return bool(view.all(CLUSTER))


def _mirrors_single_nodes(view: ClusterView) -> bool:
    """Of a leaf: whether it is looked at node by node."""
    cluster: Cluster | None = view.cluster("").get(CLUSTER, view.name)
    return cluster is not None and any(model.mode is Mode.NODE for model in models_of(cluster))


def _brief(snapshot: TreeSnapshot, now: datetime) -> Brief | None:
    return brief_of(snapshot, lease_nodes(snapshot, now))


# by key


def _roots(view: View, key: Key) -> Sequence[Cluster]:
    cluster: Cluster | None = view.get(CLUSTER, key)
    return () if cluster is None else (cluster,)


def _managed(snapshot: TreeSnapshot) -> int:
    return len(ours(snapshot.mirrors, snapshot.cluster.name))


def _keys_of(view: View, ref: ObjectRef) -> Iterable[Key]:
    match ref.kind:
        case names.KIND if ref.api_version == names.API_VERSION:
            return (ref.name,)
        case "Node":
            wanting = (each.name for each in view.indexed(CLUSTER, names.BY_WANTED, ref.name))
            return dict.fromkeys((*_keys_of_node(view, ref.name), *wanting))
        case "Pod":
            pod: RootPod | None = view.get("Pod", ref.name, ref.namespace)
            return () if pod is None else _keys_of_node(view, pod.spec.node_name)
    return ()


def _leaf(name: str) -> Sequence[ObjectRef]:
    """`leaf/east`: others have a Cluster too, and this one needs no group."""
    return [ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=name)] if name else []


_READ: Final = ("get", "list", "watch")
CALM_SECONDS: Final = 0.1
"""The pods of a busy leaf are planned for ten times a second at most. What is free on one node is written once a
second, but a node that was quiet is shown at once, whatever happens on the others."""

CLUSTERTREE: Final = Capability(
    name=names.CAPABILITY,
    kinds=(Kind(watched.CLUSTERS, DEFINITION.render, holds_credentials=True),),
    watches=(
        Watch(
            watched.CLUSTERS,
            keys_in=_cluster_keys,
            indexes={
                names.BY_SECRET: watched.by_secret,
                names.BY_WANTED: watched.by_wanted,
                names.BY_LEAF: watched.by_leaf,
            },
        ),
        Watch(watched.NODES, keys_in=_node_keys, indexes={names.BY_CLUSTER: watched.by_cluster}),
        Watch(watched.SECRETS, keys_in=_secret_keys, label_selector=f"{names.LEAF_KUBECONFIG}={names.TRUE}"),
        Watch(
            watched.ROOT_PODS,
            keys_in=_pod_keys,
            indexes={names.BY_NODE: watched.by_node},
            needed=_has_clusters,
            field_selector="status.phase=Pending",
        ),
    ),
    clusters=clusters,
    cluster_watches=(
        Watch(watched.NODES, keys_of=_leaf_node_keys),
        Watch(watched.LEAF_PODS, keys_of=_leaf_pod_keys, calm=CALM_SECONDS),
        Watch(
            watched.LEAF_LEASES,
            keys_of=_leaf_lease_keys,
            needed=_mirrors_single_nodes,
            field_selector=f"metadata.namespace={LEASE_NAMESPACE}",
        ),
    ),
    cluster_aggregates=(Aggregate(names.USED, "Pod", lambda: usage.NOTHING, usage.group, usage.add, usage.remove),),
    cluster_keys=lambda _view, cluster: (cluster,),
    collect=collect,
    plan=plan,
    status=status,
    events=events,
    messages=text,
    rbac=(
        Rule("", ("nodes",), (*_READ, "create", "patch", "delete")),
        Rule("", ("nodes/status",), ("patch",)),
        Rule("", ("pods",), ("list", "watch")),
        Rule("", ("secrets",), ("list", "watch")),
        Rule("", ("namespaces",), ("get",), ("kube-system",)),
        Rule(names.GROUP, (names.PLURAL,), (*_READ, "patch")),
        Rule(names.GROUP, (f"{names.PLURAL}/status",), ("patch",)),
        Rule("coordination.k8s.io", ("leases",), ("get", "create", "patch", "delete"), namespace=LEASE_NAMESPACE),
    ),
    roots=_roots,
    managed=_managed,
    keys_of=_keys_of,
    all_keys=lambda view: [each.name for each in view.all(CLUSTER)],
    metrics=TreeMetrics,
    original=living_original,
    loops=(renew,),
    brief=_brief,
    is_shared=True,
    aliases={"leaf": _leaf},
    example="04-clustertree",
)
