"""Takes the snapshot of one Cluster from the caches of the root and of its leaf.

Not counted as part of a leaf: the root itself, if a kubeconfig points back to it, and nodes by which the leaf mirrors
other clusters. If they counted, two clusters that mirror each other would grow without end. Leaf nodes that an earlier
Cluster mirrors belong to that Cluster.

A kubeconfig comes from its Secret or from the Cluster. Parsing is restricted, as it is when the leaf is connected: a
kubeconfig can neither run a program, nor read a local file, nor use a proxy. Error messages never quote its content.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from nodeyard.capabilities.clustertree import names, watched
from nodeyard.capabilities.clustertree.planning.models import Mode, models_of, wanted_names
from nodeyard.capabilities.clustertree.planning.ownership import earlier_clusters, is_mirror_of, is_other, mirrors_of
from nodeyard.capabilities.clustertree.snapshot import BoundPod, Kubeconfig, Leaf, TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster
from nodeyard.capabilities.clustertree.watched import CLUSTER
from nodeyard.client.errors import ConfigError
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.kube.names import LEASE_NAMESPACE, MIRRORED_NODE
from nodeyard.kube.objects import Lease, Secret
from nodeyard.runtime.capability import ClusterView, View, WatchNotSynced
from nodeyard.runtime.rbac import grant_remedy
from nodeyard.runtime.remote.client import TOO_LARGE
from nodeyard.watch.reflector import FORBIDDEN

_WATCHED: Final = ("Node", "Pod")
_POINTS_TO_ROOT: Final = "it points to the root itself, which cannot be its own leaf"


def collect(view: View, key: str, _now: datetime) -> TreeSnapshot | None:
    cluster: Cluster | None = view.get(CLUSTER, key)
    if cluster is None:
        return None
    mirrors: dict[str, TreeNode] = {node.name: node for node in view.indexed("Node", names.BY_CLUSTER, key)}
    kubeconfig, leaf = _kubeconfig_and_leaf(view, cluster, has_mirrors=bool(mirrors_of(mirrors, key)))
    return TreeSnapshot(
        cluster=cluster,
        kubeconfig=kubeconfig,
        leaf=leaf,
        mirrors=mirrors,
        conflicting_nodes=_conflicting_nodes(view, cluster, mirrors),
        pending_pods=tuple(_bound_pods(view, mirrors)),
        earlier_clusters=earlier_clusters(cluster, view.indexed(CLUSTER, names.BY_LEAF, leaf.uid), leaf.uid)
        if leaf.uid
        else (),
    )


def _conflicting_nodes(view: View, cluster: Cluster, mirrors: Mapping[str, TreeNode]) -> dict[str, TreeNode]:
    found = ((name, view.get("Node", name)) for name in wanted_names(cluster, mirrors))
    return {name: node for name, node in found if node is not None and not is_mirror_of(node, cluster.name)}


def _bound_pods(view: View, mirrors: Iterable[str]) -> list[BoundPod]:
    if not view.is_synced("Pod"):
        return []
    pods = (pod.bound for node in mirrors for pod in view.indexed("Pod", names.BY_NODE, node))
    return sorted((pod for pod in pods if pod is not None), key=lambda pod: (pod.namespace, pod.name))


# the leaf


def _kubeconfig_and_leaf(view: View, cluster: Cluster, *, has_mirrors: bool) -> tuple[Kubeconfig, Leaf]:
    """Return the kubeconfig and the leaf that it leads to.

    If the server is not the cluster that the nodes mirror, its objects are ignored: a kubeconfig that was exchanged by
    mistake would remove all nodes.
    """
    kubeconfig, there = kubeconfig_of(view, cluster), view.cluster(cluster.name)
    health = view.finding(names.leaf_health(cluster.name))
    if there.uid and there.uid == view.uid:
        return replace(kubeconfig, error=_POINTS_TO_ROOT, content=b""), Leaf(health=health)
    leaf = replace(_leaf(there, cluster), health=health)
    if has_mirrors and is_other(cluster, leaf.uid, is_known=leaf.is_connected or leaf.is_synced):
        leaf = Leaf(uid=leaf.uid, is_other=True, is_connected=leaf.is_connected, error=leaf.error, health=health)
    return kubeconfig, leaf


def _leaf(there: ClusterView, cluster: Cluster) -> Leaf:
    nodes: dict[str, TreeNode] = {node.name: node for node in there.all("Node") if is_of_leaf(node)}
    errors = [error for kind in _WATCHED if (error := there.watch_error(kind))]
    return Leaf(
        is_synced=all(there.is_synced(kind) for kind in _WATCHED),
        uid=there.uid,
        is_connected=there.is_connected,
        connected_at=there.connected_at,
        error=there.error or next(iter(errors), ""),
        is_too_large=TOO_LARGE in there.error,
        denied=next((error for error in errors if FORBIDDEN in error), ""),
        version=there.version,
        nodes=nodes,
        used={name: there.aggregate(names.USED, name) for name in nodes},
        leases=_leases(there, cluster),
        is_leased=not there.watch_error("Lease"),
    )


def is_of_leaf(node: TreeNode) -> bool:
    """Return True for a machine of the leaf, False for a mirror of yet another cluster."""
    return node.metadata.labels.get(MIRRORED_NODE) != names.TRUE


def _leases(there: View, cluster: Cluster) -> dict[str, Lease]:
    """Return no leases if listing them is forbidden; leaf nodes are then judged by their conditions alone."""
    if FORBIDDEN in there.watch_error("Lease"):
        return {}
    wanted = [model.leaf_node for model in models_of(cluster) if model.mode is Mode.NODE]
    found = ((name, there.get("Lease", name, LEASE_NAMESPACE)) for name in wanted)
    return {name: lease for name, lease in found if lease is not None}


# the kubeconfig


_REMEMBERED: Final = 512


def kubeconfig_of(view: View, cluster: Cluster) -> Kubeconfig:
    """Return the kubeconfig of the Cluster. Raises WatchNotSynced until the Secrets of its namespace are listed."""
    place = watched.secret_of(cluster)
    if place is None:
        return _parse(cluster.spec.kubeconfig, "spec.kubeconfig") if cluster.spec.kubeconfig else Kubeconfig()
    namespace, name = place
    where = f"Secret {namespace}/{name}"
    kind = watched.secrets_in(namespace)
    if not _can_list(view, kind):
        why = f"no permission to list Secrets in namespace {namespace}: {_remedy(namespace)}"
        return Kubeconfig(is_given=True, error=f"{where} was not read: {why}", is_missing=True)
    secret: Secret | None = view.get(kind, name, namespace)
    if secret is None:
        error = f"{where} does not exist, or lacks the label {names.LEAF_KUBECONFIG}={names.TRUE}"
        return Kubeconfig(is_given=True, error=error, is_missing=True)
    ref = cluster.spec.kubeconfig_secret_ref
    key = (ref.key if ref is not None else "") or names.KUBECONFIG_KEY
    if key not in secret.data:
        return Kubeconfig(is_given=True, error=f"{where} has no key {key}", is_missing=True)
    return _parse(secret.data[key], f"{where}, {key}")


def _can_list(view: View, kind: str) -> bool:
    """Return False if listing Secrets is forbidden. Raises WatchNotSynced until they are listed."""
    try:
        if view.is_synced(kind):
            return True
        if FORBIDDEN in view.watch_error(kind):
            return False
    except KeyError:
        # The watch is declared by the Cluster and has not started yet.
        pass
    raise WatchNotSynced(kind)


def _remedy(namespace: str) -> str:
    return grant_remedy(names.CAPABILITY, names.KUBECONFIGS, namespace)


@lru_cache(_REMEMBERED)
def _parse(text: str, source: str) -> Kubeconfig:
    """Parse and check the kubeconfig. Cached: parsing takes a millisecond, and a plan may be made every 100 ms."""
    try:
        content = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return Kubeconfig(is_given=True, error=f"{source}: is not base64")
    if not content.strip():
        return Kubeconfig(is_given=True, error=f"{source}: is empty")
    try:
        parse_kubeconfig(content, source=source)
    except ConfigError as error:
        return Kubeconfig(is_given=True, error=str(error))
    return Kubeconfig(is_given=True, content=content)
