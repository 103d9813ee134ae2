"""How what a plan sees is taken from the cache: one namespace's objects, and the nodes they have become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nodeyard.capabilities.pools import names, watched
from nodeyard.capabilities.pools.planning.adoption import removed
from nodeyard.capabilities.pools.snapshot import (
    Machine,
    Management,
    PoolsSnapshot,
    Served,
    TemplateMeta,
    Workload,
)
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, Pivot, resolved_pools
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Pod
from nodeyard.runtime.capability import View

INFRASTRUCTURE_KINDS = tuple(
    resource.kind for resource in (*watched.INFRASTRUCTURE_CLUSTERS, *watched.MACHINE_TEMPLATES)
)
BY_NAMESPACE = "namespace"
DRAINING = "draining"
KUBECONFIGS = "kubeconfigs"


def collect(view: View, name: str, _now: datetime) -> PoolsSnapshot | None:
    lc: LatticeCluster | None = view.get(names.CLUSTER_KIND, name)
    if lc is None:
        return None
    management = _management(view, lc)
    wanted = resolved_pools(lc.spec.nodes)
    classes = {pool.node_class for pool in wanted.values() if pool.node_class}
    malformed = {key[1]: error for key, error in view.malformed(names.CLASS_KIND).items()}
    return PoolsSnapshot(
        cluster=lc,
        classes=_classes(view, classes),
        bad_classes={each: malformed[each] for each in sorted(classes) if each in malformed},
        served=_served(view),
        management=management,
        workload=_workload(view, lc, management, set(wanted)),
    )


def _classes(view: View, wanted: set[str]) -> Mapping[str, LatticeNodeClass]:
    found = {name: view.get(names.CLASS_KIND, name) for name in sorted(wanted)}
    return {name: each for name, each in found.items() if each is not None}


def _served(view: View) -> Served:
    versions = {kind: view.versions(names.INFRASTRUCTURE_GROUP, kind) for kind in INFRASTRUCTURE_KINDS}
    core = {
        "Cluster": view.versions(names.CAPI_GROUP, "Cluster"),
        "MachineDeployment": view.versions(names.CAPI_GROUP, "MachineDeployment"),
        "KubeadmControlPlane": view.versions(names.CONTROL_PLANE_GROUP, "KubeadmControlPlane"),
        "KubeadmConfigTemplate": view.versions(names.BOOTSTRAP_GROUP, "KubeadmConfigTemplate"),
    }
    return Served({**versions, **core})


def _management(view: View, lc: LatticeCluster) -> Management:
    namespace = names.namespace(lc.name)
    deployments: Sequence[Object] = view.indexed("MachineDeployment", BY_NAMESPACE, namespace)
    return Management(
        namespace=view.get("Namespace", namespace),
        cluster=view.get("Cluster", lc.name, namespace),
        other_clusters=[name for name in _clusters(view, namespace) if name != lc.name],
        infrastructure=_infrastructure(view, lc.name, namespace),
        control_plane=view.get("KubeadmControlPlane", names.control_plane(lc.name), namespace),
        deployments={each["metadata"]["name"]: each for each in deployments},
        machine_sets=view.indexed("MachineSet", BY_NAMESPACE, namespace),
        machines=view.indexed("Machine", BY_NAMESPACE, namespace),
        templates=[
            TemplateMeta(_api_version(view, resource), resource.kind, each.metadata)
            for resource in watched.TEMPLATES
            for each in view.indexed(resource.kind, BY_NAMESPACE, namespace)
        ],
    )


def _clusters(view: View, namespace: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in view.indexed("Cluster", BY_NAMESPACE, namespace))


def _api_version(view: View, resource: Resource[Any]) -> str:
    """As it is served: an older one where the server does not have the resource's own."""
    served = view.versions(resource.group, resource.kind)
    wanted = (resource.version, *watched.OLDER.get(resource.kind, ()))
    return f"{resource.group}/{next((each for each in wanted if each in served), resource.version)}"


def _infrastructure(view: View, name: str, namespace: str) -> Object | None:
    for resource in watched.INFRASTRUCTURE_CLUSTERS:
        found: Object | None = view.get(resource.kind, name, namespace)
        if found is not None:
            return found
    return None


def _workload(view: View, lc: LatticeCluster, management: Management, wanted: set[str]) -> Workload:
    secret = view.get("Secret", names.kubeconfig(lc.name), names.namespace(lc.name))
    there = view.cluster(lc.name)
    own = view.uid
    is_own = bool(own) and there.uid == own
    is_here = lc.spec.pivot != Pivot.NEVER or is_own
    place = view if is_here else there
    has_way = secret is not None and watched.decode_kubeconfig(secret) is not None
    draining = [
        machine
        for _pool, deployment in removed(lc.name, management, dict.fromkeys(wanted))
        for machine in management.machines_of(deployment["metadata"]["name"])
    ]
    return Workload(
        uid=there.uid,
        is_own=is_own,
        has_kubeconfig=secret is not None,
        is_pending=has_way and not there.error and not (there.is_connected and own),
        error="" if there.is_connected else there.error,
        cluster="" if is_here else lc.name,
        nodes=_nodes(place, management.machines) if is_here or there.is_connected else {},
        pods=_pods(place, draining),
        daemon_sets=_daemon_sets(place) if draining else frozenset(),
    )


def _nodes(view: View, machines: Sequence[Machine]) -> Mapping[str, Node]:
    if not view.is_synced("Node"):
        return {}
    found = {machine.node: view.get("Node", machine.node) for machine in machines if machine.node}
    return {name: node for name, node in found.items() if node is not None}


def _pods(view: View, draining: Sequence[Machine]) -> Mapping[str, Sequence[Pod]] | None:
    if not draining:
        return {}
    if not all(view.is_synced(kind) for kind in ("Pod", "DaemonSet", "Node")):
        return None
    nodes = sorted({machine.node for machine in draining if machine.node})
    return {node: view.indexed("Pod", names.BY_NODE, node) for node in nodes}


def _daemon_sets(view: View) -> frozenset[tuple[str, str]]:
    return frozenset((each.metadata.namespace, each.metadata.name) for each in view.all("DaemonSet"))
