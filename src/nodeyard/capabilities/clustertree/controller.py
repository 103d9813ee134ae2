"""Registers clustertree: its watches in the root and in every leaf, and the mapping from events to keys.

Each Cluster is a reconcile key, and replicas shard the keys. A leaf's event enqueues its Cluster only if it changes
what the mirrored nodes show. Heartbeats, lease renewals and pod status reports do not.

    root   Clusters · Nodes · Secrets with a leaf's kubeconfig, by namespace · pending Pods
    leaf   Nodes · Pods, aggregated by node · Leases of its nodes, if a model mirrors single nodes
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.capabilities.clustertree import names, watched
from nodeyard.capabilities.clustertree.collect import collect, is_of_leaf, kubeconfig_of
from nodeyard.capabilities.clustertree.definition import CLUSTER as DEFINITION
from nodeyard.capabilities.clustertree.leases.inputs import LeaseInput, lease_input, node_lease_inputs
from nodeyard.capabilities.clustertree.leases.keeper import renew
from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth
from nodeyard.capabilities.clustertree.plan import plan
from nodeyard.capabilities.clustertree.planning.heartbeat import is_renewed_after_expiry
from nodeyard.capabilities.clustertree.planning.models import Mode, models_of
from nodeyard.capabilities.clustertree.planning.ownership import is_adopted, is_mirror_of, leaf_of, mirrors_of
from nodeyard.capabilities.clustertree.planning.removal import removal_reason
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.report import report
from nodeyard.capabilities.clustertree.report.metrics import TreeMetrics
from nodeyard.capabilities.clustertree.snapshot import NOTHING, Kubeconfig, TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.surface import SURFACE
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER, LeafPod, RootPod
from nodeyard.kube.names import LEASE_NAMESPACE, MIRRORED_NODE
from nodeyard.kube.objects import Lease, Secret
from nodeyard.plan.message import listed
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import (
    Aggregate,
    Alias,
    Background,
    Capability,
    ClusterView,
    Dynamic,
    Explain,
    Key,
    Kind,
    PeerOperator,
    Remote,
    RemoteClusterRef,
    Roots,
    Rule,
    View,
    Watch,
    WatchNotSynced,
)

# key mapping for events of the root


def _cluster_keys(view: View, old: Cluster | None, new: Cluster | None) -> Iterable[Key]:
    """Enqueue the Cluster, and all Clusters of the leaf that it mirrors or mirrored: it may now leave them other leaf
    nodes."""
    known = new or old
    if known is None:
        return ()
    if old is None:
        return (known.name,)
    if new is not None and old.metadata.is_alike(new.metadata) and old.spec == new.spec:
        return ()
    leaves = {leaf for each in (old, new) if each is not None and (leaf := leaf_of(each))}
    return dict.fromkeys((known.name, *_clusters_of_leaves(view, leaves)))


def _clusters_of_leaves(view: View, leaves: Collection[str]) -> list[Key]:
    """List the Clusters with one of these leaves. Only Clusters of this replica have a known leaf uid."""
    return [each.name for each in view.all(CLUSTER) if view.cluster(each.name).uid in leaves] if leaves else []


def _node_keys(view: View, old: TreeNode | None, new: TreeNode | None) -> Iterable[Key]:
    """Enqueue the Cluster that the node mirrors; if the owner changed, also Clusters that need a node of this name."""
    if old is not None and new is not None and not _differs(old, new):
        return ()
    keys = dict.fromkeys(cluster for node in (old, new) if node is not None for cluster in watched.by_cluster(node))
    if _owner(old) != _owner(new):
        known = new or old
        wanting = () if known is None else view.indexed(CLUSTER, names.BY_WANTED, known.name)
        keys |= dict.fromkeys(each.name for each in wanting)
    return tuple(keys)


def _differs(old: TreeNode, new: TreeNode) -> bool:
    """Ignore resourceVersion; heartbeats are not even decoded."""
    return not old.metadata.is_alike(new.metadata) or old.spec != new.spec or old.status != new.status


def _owner(node: TreeNode | None) -> tuple[str, str, str] | None:
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
    """Enqueue the Cluster of the node that the pod is, or was, pending on."""
    before, after = (None if pod is None else pod.bound for pod in (old, new))
    if before == after:
        return ()
    return dict.fromkeys(key for pod in (before, after) if pod is not None for key in _keys_of_node(view, pod.node))


def _keys_of_node(view: View, name: str) -> Iterable[Key]:
    node: TreeNode | None = view.get("Node", name)
    return () if node is None else watched.by_cluster(node)


# key mapping for events of a leaf


def _leaf_node_keys(cluster: str, old: TreeNode | None, new: TreeNode | None) -> Iterable[Key]:
    """Ignore annotations, which are not mirrored, and nodes by which the leaf mirrors other clusters."""
    if not any(node is not None and is_of_leaf(node) for node in (old, new)):
        return ()
    return () if _shown(old) == _shown(new) else (cluster,)


def _shown(node: TreeNode | None) -> tuple[Any, ...] | None:
    return None if node is None else (node.metadata.uid, node.metadata.labels, node.spec, node.status)


def _leaf_pod_keys(cluster: str, old: LeafPod | None, new: LeafPod | None) -> Iterable[Key]:
    return () if _usage_key(old) == _usage_key(new) else (cluster,)


def _leaf_lease_keys(cluster: str, old: Lease | None, new: Lease | None) -> Iterable[Key]:
    """Ignore renewals, except the first one of an expired lease."""
    return (cluster,) if old is not None and new is not None and is_renewed_after_expiry(old, new) else ()


def _usage_key(pod: LeafPod | None) -> tuple[Any, ...] | None:
    """Return what the pod's usage depends on; None while it uses nothing."""
    if pod is None or not watched.usage_node(pod):
        return None
    return pod.is_from_root, pod.spec, pod.status


# leaf clusters


def clusters(view: View) -> Iterable[RemoteClusterRef]:
    """Return every Cluster with a usable kubeconfig that is mirrored or still has nodes."""
    for cluster in view.all(CLUSTER):
        is_needed = removal_reason(cluster) is None or any(view.indexed("Node", names.BY_CLUSTER, cluster.name))
        kubeconfig = _known_kubeconfig(view, cluster) if is_needed else None
        if kubeconfig is not None and kubeconfig.content:
            yield RemoteClusterRef(cluster.name, kubeconfig.content)


def _known_kubeconfig(view: View, cluster: Cluster) -> Kubeconfig | None:
    """Return None until the Secrets of its namespace have been listed."""
    try:
        return kubeconfig_of(view, cluster)
    except WatchNotSynced:
        return None


def _declared(view: View) -> Iterable[Watch]:
    """Watch Secrets with kubeconfigs, only in the namespaces that Clusters name."""
    selector = f"{names.LEAF_KUBECONFIG}={names.TRUE}"
    for namespace in watched.secret_namespaces(view.all(CLUSTER)):
        yield Watch(watched.SECRETS, map_with_view=_secret_keys, label_selector=selector, namespace=namespace)


def _has_clusters(view: View) -> bool:
    return bool(view.all(CLUSTER))


def _mirrors_single_nodes(view: ClusterView) -> bool:
    """Return True if a model of the leaf mirrors a single node."""
    cluster: Cluster | None = view.cluster("").get(CLUSTER, view.name)
    return cluster is not None and any(model.mode is Mode.NODE for model in models_of(cluster))


def _lease_input(snapshot: TreeSnapshot, now: datetime) -> LeaseInput | None:
    return lease_input(snapshot, node_lease_inputs(snapshot, now))


# lookups by key


def _roots(view: View, key: Key) -> Sequence[Cluster]:
    cluster: Cluster | None = view.get(CLUSTER, key)
    return () if cluster is None else (cluster,)


def _managed(snapshot: TreeSnapshot) -> int:
    return len(mirrors_of(snapshot.mirrors, snapshot.cluster.name))


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
    """Resolve `leaf/east`, an alias that needs no group although other groups have a kind Cluster too."""
    return [ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=name)] if name else []


_READ: Final = ("get", "list", "watch")
CALM_SECONDS: Final = 0.1
"""Debounce of a leaf's pod events: at most ten plans a second. Each node's resources are written at most once a second,
and a node without a recent write is written at once."""


PEER: Final = "Kosmos' clustertree manager"
_HAND_OVER: Final = (
    "It renews the leases of {nodes}. Scale Deployment clustertree-cluster-manager in namespace kosmos-system to 0; "
    "Nodeyard takes over once nobody renews the leases"
)
_NOT_LOOKED: Final = f"{PEER}, as far as is known,"
_LOOKING: Final = "It created {nodes}; Nodeyard is checking whether it still renews their leases"
_NAMED: Final = 3


def detect_peer_operator(view: View, now: datetime) -> PeerOperator | None:
    clusters: tuple[Cluster, ...] = tuple(view.all(CLUSTER))
    for cluster in clusters:
        health: LeafHealth | None = view.finding(names.leaf_health(cluster.name))
        if health is not None and health.moved:
            return PeerOperator(PEER, _HAND_OVER.format(nodes=listed(health.moved, _NAMED)))
        if health is None and (left := _unadopted_nodes(view, cluster.name)):
            return PeerOperator(_NOT_LOOKED, _LOOKING.format(nodes=listed(left, _NAMED)))
    return None


def _unadopted_nodes(view: View, cluster: str) -> tuple[str, ...]:
    """List Kosmos' nodes of a leaf that this replica owns. Other replicas' health is not published here."""
    if view.cluster(cluster).name != cluster:
        return ()
    nodes: Iterable[TreeNode] = view.indexed("Node", names.BY_CLUSTER, cluster)
    return tuple(node.name for node in nodes if is_mirror_of(node, cluster) and not is_adopted(node))


CLUSTERTREE: Final = Capability(
    name=names.CAPABILITY,
    kinds=(Kind(watched.CLUSTERS, DEFINITION.render, holds_credentials=True),),
    watches=(
        Watch(
            watched.CLUSTERS,
            map_with_view=_cluster_keys,
            indexes={
                names.BY_SECRET: watched.by_secret,
                names.BY_WANTED: watched.by_wanted,
                names.BY_LEAF: watched.by_leaf,
            },
        ),
        Watch(watched.NODES, map_with_view=_node_keys, indexes={names.BY_CLUSTER: watched.by_cluster}),
        Watch(
            watched.ROOT_PODS,
            map_with_view=_pod_keys,
            indexes={names.BY_NODE: watched.by_node},
            needed=_has_clusters,
            field_selector="status.phase=Pending",
        ),
    ),
    all_keys=lambda view: [each.name for each in view.all(CLUSTER)],
    collect=collect,
    plan=plan,
    report=report,
    rbac=(
        Rule("", ("nodes",), (*_READ, "create", "patch", "delete")),
        Rule("", ("nodes/status",), ("patch",)),
        Rule("", ("pods",), ("list", "watch")),
        Rule("", ("secrets",), ("list", "watch"), grant=names.KUBECONFIGS),
        Rule("", ("namespaces",), ("get",), ("kube-system",)),
        Rule(names.GROUP, (names.PLURAL,), (*_READ, "patch")),
        Rule(names.GROUP, (f"{names.PLURAL}/status",), ("patch",)),
        Rule("coordination.k8s.io", ("leases",), ("get", "create", "patch", "delete"), namespace=LEASE_NAMESPACE),
    ),
    managed_nodes=_managed,
    metrics=TreeMetrics,
    replaces=detect_peer_operator,
    is_sharded=True,
    roots=Roots(_roots, plan_handles_pause=True),
    explain=Explain(
        _keys_of,
        healthy=frozenset({Reason.REACHABLE, Reason.SYNCED, Reason.LEASES_RENEWED, Reason.LEAF_READY, Reason.IS_LEAF}),
        aliases={"leaf": Alias(_leaf)},
    ),
    remote=Remote(
        clusters,
        watches=(
            Watch(watched.NODES, map_remote=_leaf_node_keys),
            Watch(watched.LEAF_PODS, map_remote=_leaf_pod_keys, min_interval=CALM_SECONDS),
            Watch(
                watched.LEAF_LEASES,
                map_remote=_leaf_lease_keys,
                needed=_mirrors_single_nodes,
                field_selector=f"metadata.namespace={LEASE_NAMESPACE}",
            ),
        ),
        aggregates=(
            Aggregate(names.USED, "Pod", lambda: NOTHING, watched.usage_node, watched.add_usage, watched.remove_usage),
        ),
        keys=lambda _view, cluster: (cluster,),
    ),
    dynamic=Dynamic(_declared, aggregates_rights=False),
    background=Background((renew,), _lease_input),
    surface=SURFACE,
)
