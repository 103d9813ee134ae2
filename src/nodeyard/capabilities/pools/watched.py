"""Watched kinds of Cluster API, indexers, and the mapping of events to workqueue keys.

Each LatticeCluster has one key; its objects are in namespace capi-<cluster>. Pods and DaemonSets are watched only while
a pool is being drained, on the workload cluster: the local cluster after a pivot, otherwise the cluster of the
kubeconfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.machine_state import infrastructure_of
from nodeyard.capabilities.pools.snapshot import Machine, MachineSet
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, LatticeService, Pivot, resolved_pools
from nodeyard.client.resources import Resource, untyped
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Namespace, Node, Pod
from nodeyard.runtime.capability import Key, View

CLUSTERS: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "clusters", "Cluster")
DEPLOYMENTS: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "machinedeployments", "MachineDeployment")
MACHINE_SETS: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "machinesets", "MachineSet").decoded_as(MachineSet)
MACHINES: Final = untyped(names.CAPI_GROUP, names.CAPI_VERSION, "machines", "Machine").decoded_as(Machine)
CONTROL_PLANES: Final = untyped(
    names.CONTROL_PLANE_GROUP, names.CAPI_VERSION, "kubeadmcontrolplanes", "KubeadmControlPlane"
)
BOOTSTRAP_TEMPLATES: Final = untyped(
    names.BOOTSTRAP_GROUP, names.CAPI_VERSION, "kubeadmconfigtemplates", "KubeadmConfigTemplate"
)


def _infrastructure(kind: str, version: str = names.CAPI_VERSION) -> Resource[Object]:
    return untyped(names.INFRASTRUCTURE_GROUP, version, f"{kind.lower()}s", kind)


INFRASTRUCTURE_CLUSTERS: Final = (
    _infrastructure("DevCluster"),
    _infrastructure("DockerCluster"),
    _infrastructure("AWSCluster"),
    _infrastructure("ProxmoxCluster", "v1alpha2"),
)
MACHINE_TEMPLATES: Final = (
    _infrastructure("DevMachineTemplate"),
    _infrastructure("DockerMachineTemplate"),
    _infrastructure("AWSMachineTemplate"),
    _infrastructure("ProxmoxMachineTemplate", "v1alpha2"),
)
FALLBACK_VERSIONS: Final = {"ProxmoxCluster": ("v1alpha1",), "ProxmoxMachineTemplate": ("v1alpha1",)}
"""Older served versions with a different schema, by kind."""
TEMPLATES: Final = (BOOTSTRAP_TEMPLATES, *MACHINE_TEMPLATES)


# indexers

ANY: Final = "*"
"""Index key that every indexed object has, to list them without a scan of the whole cache."""


def by_namespace(obj: Any) -> Iterable[str]:
    """Index an object by namespace: each cluster has its own."""
    return (obj["metadata"]["namespace"] if isinstance(obj, dict) else obj.metadata.namespace,)


def draining(deployment: Object) -> Iterable[str]:
    """Index a MachineDeployment that is being drained by its cluster, and under ANY."""
    if names.DRAIN_STARTED not in (deployment["metadata"].get("annotations") or {}):
        return ()
    return (deployment.get("spec") or {}).get("clusterName", ""), ANY


def class_group(node_class: str, deployment: Object) -> str:
    """Return the aggregate group of a class: class and template kind, because an edit affects one provider's entry."""
    kind, _name = infrastructure_of(deployment)
    return f"{node_class} {kind}"


def class_groups(deployment: Object) -> Iterable[str]:
    """Return the aggregate groups: all pools, pools of its class, and pools created from the same spec of the class."""
    if names.POOL not in meta.labels(deployment):
        return ()
    recorded = meta.annotations(deployment)
    if names.NODE_CLASS not in recorded:
        return (ANY,)
    group = class_group(recorded[names.NODE_CLASS], deployment)
    return ANY, group, f"{group} {recorded.get(names.CLASS_INPUTS, '')}"


def by_node(machine: Machine) -> Iterable[str]:
    return (machine.node,) if machine.node else ()


def pods_by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def classes_of(cluster: LatticeCluster) -> Iterable[str]:
    """Return the classes that the pools of a cluster use."""
    return {pool.node_class for pool in resolved_pools(cluster.spec.nodes).values() if pool.node_class}


def cluster_of(namespace: str) -> str:
    """Return the LatticeCluster of a capi-<cluster> namespace; empty for any other namespace."""
    prefix = names.namespace("")
    return namespace.removeprefix(prefix) if namespace.startswith(prefix) else ""


# event mappers


def cluster_keys(old: LatticeCluster | None, new: LatticeCluster | None) -> Iterable[Key]:
    known = old or new
    if known is None:
        return
    if old is None or new is None or not old.metadata.is_alike(new.metadata) or old.spec != new.spec:
        yield names.cluster_key(known.name)
        yield names.SERVICES_KEY
        yield names.CLASSES_KEY
    elif old.status.worker_pools != new.status.worker_pools or old.status.phase != new.status.phase:
        yield names.SERVICES_KEY


def service_keys(old: LatticeService | None, new: LatticeService | None) -> Iterable[Key]:
    is_alike = old is not None and new is not None and old.spec == new.spec and old.metadata.uid == new.metadata.uid
    return () if is_alike else (names.SERVICES_KEY,)


def class_keys(view: View, old: LatticeNodeClass | None, new: LatticeNodeClass | None) -> Iterable[Key]:
    known = old or new
    # The metadata is compared too: annotations carry approvals.
    is_same = old is not None and new is not None and old.spec == new.spec and old.metadata.is_alike(new.metadata)
    if known is None or is_same:
        return ()
    users = view.indexed(names.CLUSTER_KIND, names.BY_CLASS, known.metadata.name)
    return [names.CLASSES_KEY, *(names.cluster_key(each.name) for each in users)]


def namespaced_keys(old: Any | None, new: Any | None) -> Iterable[Key]:
    (namespace,) = by_namespace(old if new is None else new)
    cluster = cluster_of(namespace)
    return (names.cluster_key(cluster),) if cluster else ()


def namespace_keys(old: Namespace | None, new: Namespace | None) -> Iterable[Key]:
    known = old or new
    is_same = old is not None and new is not None and old.metadata.is_alike(new.metadata)
    if known is None or is_same:
        return ()
    cluster = cluster_of(known.metadata.name)
    return (names.cluster_key(cluster),) if cluster else ()


def _has_node_changed(old: Node | None, new: Node | None) -> bool:
    """Return False for a heartbeat: it changes only the status."""
    if old is None or new is None:
        return True
    return not old.metadata.is_alike(new.metadata) or old.spec != new.spec


def _has_pod_changed(old: Pod | None, new: Pod | None) -> bool:
    """Return True if a field changed that a drain reads: node, phase, deletionTimestamp or labels."""
    return _pod_state(old) != _pod_state(new)


def _pod_state(pod: Pod | None) -> tuple[Any, ...] | None:
    if pod is None:
        return None
    return pod.metadata.uid, pod.spec.node_name, pod.status.phase, pod.metadata.deletion_timestamp, pod.metadata.labels


def keys_of_node(view: View, name: str) -> Iterable[Key]:
    """Return the keys of the clusters whose Machines reference this node."""
    machines: Sequence[Machine] = view.indexed("Machine", names.BY_NODE, name)
    clusters = {cluster_of(machine.metadata.namespace) for machine in machines}
    return [names.cluster_key(each) for each in sorted(clusters) if each]


def local_node_keys(view: View, old: Node | None, new: Node | None) -> Iterable[Key]:
    known = old or new
    return keys_of_node(view, known.metadata.name) if known and _has_node_changed(old, new) else ()


def local_pod_keys(view: View, old: Pod | None, new: Pod | None) -> Iterable[Key]:
    nodes = {pod.spec.node_name for pod in (old, new) if pod is not None and pod.spec.node_name}
    return [key for node in nodes for key in keys_of_node(view, node)] if _has_pod_changed(old, new) else ()


def remote_node_keys(cluster: str, old: Node | None, new: Node | None) -> Iterable[Key]:
    return (names.cluster_key(cluster),) if _has_node_changed(old, new) else ()


def remote_pod_keys(cluster: str, old: Pod | None, new: Pod | None) -> Iterable[Key]:
    return (names.cluster_key(cluster),) if _has_pod_changed(old, new) else ()


# conditional watches


def _draining_clusters(view: View) -> Iterable[LatticeCluster]:
    """Yield the clusters with a pool that is being drained."""
    for deployment in view.indexed("MachineDeployment", names.DRAINING, ANY):
        cluster = view.get(names.CLUSTER_KIND, (deployment.get("spec") or {}).get("clusterName", ""))
        if cluster is not None:
            yield cluster


def has_local_drain(view: View) -> bool:
    return any(cluster.spec.pivot != Pivot.NEVER or _is_own(view, cluster) for cluster in _draining_clusters(view))


def _is_own(view: View, cluster: LatticeCluster) -> bool:
    """Return True if its kubeconfig points to the local cluster, although spec.pivot is Never."""
    return bool(view.uid) and view.cluster(cluster.name).uid == view.uid


def has_remote_drain(view: Any) -> bool:
    """Return True if a drain needs the nodes and pods of this remote cluster."""
    home: View = view.cluster("")
    cluster: LatticeCluster | None = home.get(names.CLUSTER_KIND, view.name)
    is_drained = bool(home.indexed("MachineDeployment", names.DRAINING, view.name))
    return cluster is not None and is_drained and cluster.spec.pivot == Pivot.NEVER and view.uid != home.uid
