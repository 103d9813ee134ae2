"""Builds the snapshots from the informer caches.

The snapshot of a LatticeCluster has the objects of its namespace and the nodes of its Machines. The snapshots of
all classes and of all services have the pools of every cluster that concern them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from nodeyard.capabilities.pools import names, watched
from nodeyard.capabilities.pools.planning.generation import class_inputs
from nodeyard.capabilities.pools.planning.machine_state import (
    find_deployment,
    infrastructure_of,
    is_control_plane_initialized,
    removed,
    replicas,
)
from nodeyard.capabilities.pools.planning.pool_index import PoolOffer
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import (
    ClassEdit,
    ClassesSnapshot,
    ClassUse,
    Machine,
    Management,
    PoolsSnapshot,
    Served,
    ServicesSnapshot,
    TemplateMeta,
    Workload,
)
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeNodeClass,
    LatticeService,
    Pivot,
    WorkerPool,
    resolved_pools,
)
from nodeyard.client.resources import Resource
from nodeyard.kube import meta
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Node, Pod
from nodeyard.runtime.capability import View

INFRASTRUCTURE_KINDS = tuple(
    resource.kind for resource in (*watched.INFRASTRUCTURE_CLUSTERS, *watched.MACHINE_TEMPLATES)
)

# one cluster


def collect(view: View, name: str, _now: datetime) -> PoolsSnapshot | None:
    lc: LatticeCluster | None = view.get(names.CLUSTER_KIND, name)
    if lc is None:
        return None
    management = _management(view, lc)
    wanted = resolved_pools(lc.spec.nodes)
    malformed = {name: each.error for (_, name), each in view.malformed(names.CLASS_KIND).items()}
    return PoolsSnapshot(
        cluster=lc,
        classes=node_classes(view, lc),
        malformed_classes={each: malformed[each] for each in sorted(watched.classes_of(lc)) if each in malformed},
        class_edits=class_edits(view, lc, management, wanted),
        served=_served(view),
        management=management,
        workload=_workload(view, lc, management, set(wanted)),
    )


def node_classes(view: View, lc: LatticeCluster) -> Mapping[str, LatticeNodeClass]:
    """Return the existing classes that the pools of a cluster use, sorted by name."""
    found = {name: view.get(names.CLASS_KIND, name) for name in sorted(watched.classes_of(lc))}
    return {name: each for name, each in found.items() if each is not None}


def class_edits(
    view: View, lc: LatticeCluster, management: Management, wanted: Mapping[str, WorkerPool]
) -> Mapping[str, ClassEdit]:
    """Return pending class edits by pool; each counts the affected nodes of all clusters."""
    found: dict[str, ClassEdit] = {}
    for id, pool in wanted.items():
        node_class: LatticeNodeClass | None = view.get(names.CLASS_KIND, pool.node_class) if pool.node_class else None
        deployment = find_deployment(lc.name, management, id).deployment
        if node_class is None or deployment is None:
            continue
        recorded = meta.annotations(deployment)
        inputs = class_inputs(lc, node_class)
        if recorded.get(names.NODE_CLASS) == pool.node_class and recorded.get(names.CLASS_INPUTS) != inputs:
            group = watched.class_group(pool.node_class, deployment)
            nodes = view.aggregate(names.CLASS_NODES, group) - view.aggregate(names.CLASS_NODES, f"{group} {inputs}")
        elif names.NODE_CLASS not in recorded and _template_class(management, deployment) == pool.node_class:
            nodes = _count_unrecorded(view, pool.node_class)
        else:
            continue
        found[id] = ClassEdit(nodes, view.aggregate(names.CLASS_NODES, watched.ANY))
    return found


def _template_class(management: Management, deployment: Object) -> str:
    template = management.template(*infrastructure_of(deployment))
    return template.metadata.annotations.get(names.NODE_CLASS, "") if template else ""


def _count_unrecorded(view: View, node_class: str) -> int:
    """Count the nodes of all pools that use a class.

    MachineDeployments of earlier releases do not record their class, so no aggregate counts them. The next apply of
    each records it.
    """
    count = 0
    for lc in view.indexed(names.CLUSTER_KIND, names.BY_CLASS, node_class):
        for id, pool in resolved_pools(lc.spec.nodes).items():
            name = names.deployment(lc.name, id)
            deployment = view.get("MachineDeployment", name, names.namespace(lc.name))
            count += replicas(deployment) if deployment and pool.node_class == node_class else 0
    return count


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
    deployments: Sequence[Object] = view.indexed("MachineDeployment", names.BY_NAMESPACE, namespace)
    clusters = sorted(each["metadata"]["name"] for each in view.indexed("Cluster", names.BY_NAMESPACE, namespace))
    return Management(
        namespace=view.get("Namespace", namespace),
        cluster=view.get("Cluster", lc.name, namespace),
        other_clusters=[name for name in clusters if name != lc.name],
        infrastructure=_infrastructure(view, lc.name, namespace),
        control_plane=view.get("KubeadmControlPlane", names.control_plane(lc.name), namespace),
        deployments={each["metadata"]["name"]: each for each in deployments},
        machine_sets=view.indexed("MachineSet", names.BY_NAMESPACE, namespace),
        machines=view.indexed("Machine", names.BY_NAMESPACE, namespace),
        templates=[
            TemplateMeta(_api_version(view, resource), resource.kind, each.metadata)
            for resource in watched.TEMPLATES
            for each in view.indexed(resource.kind, names.BY_NAMESPACE, namespace)
        ],
    )


def _api_version(view: View, resource: Resource[Any]) -> str:
    """Return the served apiVersion: a fallback version if the server does not serve the preferred one."""
    served = view.versions(resource.group, resource.kind)
    wanted = (resource.version, *watched.FALLBACK_VERSIONS.get(resource.kind, ()))
    return f"{resource.group}/{next((each for each in wanted if each in served), resource.version)}"


def _infrastructure(view: View, name: str, namespace: str) -> Object | None:
    for resource in watched.INFRASTRUCTURE_CLUSTERS:
        found: Object | None = view.get(resource.kind, name, namespace)
        if found is not None:
            return found
    return None


def is_control_plane_up(view: View, name: str) -> bool:
    """Return True once the control plane is initialized: Cluster API has created the kubeconfig Secret by then."""
    namespace = names.namespace(name)
    cluster = view.get("Cluster", name, namespace)
    return is_control_plane_initialized(cluster, view.get("KubeadmControlPlane", names.control_plane(name), namespace))


def _workload(view: View, lc: LatticeCluster, management: Management, wanted: set[str]) -> Workload:
    remote = view.cluster(lc.name)
    own = view.uid
    is_own = bool(own) and remote.uid == own
    is_local = lc.spec.pivot != Pivot.NEVER or is_own
    source = view if is_local else remote
    is_initialized = is_control_plane_up(view, lc.name)
    draining = [
        machine
        for _pool, deployment in removed(lc.name, management, dict.fromkeys(wanted))
        for machine in management.machines_of(deployment["metadata"]["name"])
    ]
    return Workload(
        uid=remote.uid,
        is_own=is_own,
        is_pending=is_initialized and not remote.error and not (remote.is_connected and own),
        error="" if remote.is_connected else remote.error,
        cluster="" if is_local else lc.name,
        nodes=_nodes(source, management.machines) if is_local or remote.is_connected else {},
        pods=_pods(source, draining),
        daemon_sets=frozenset(
            (each.metadata.namespace, each.metadata.name) for each in (source.all("DaemonSet") if draining else ())
        ),
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


# all classes


def collect_classes(view: View, _now: datetime) -> ClassesSnapshot:
    uses: dict[str, list[ClassUse]] = {}
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    for cluster in clusters:
        provider = cluster.spec.provider.config.name
        for id, pool in resolved_pools(cluster.spec.nodes).items():
            if pool.node_class:
                uses.setdefault(pool.node_class, []).append(_class_use(view, cluster, id, pool.node_class, provider))
    malformed = {name: each.error for (_, name), each in view.malformed(names.CLASS_KIND).items()}
    return ClassesSnapshot(view.all(names.CLASS_KIND), uses, malformed)


def _class_use(view: View, cluster: LatticeCluster, id: str, class_name: str, provider: str) -> ClassUse:
    node_class: LatticeNodeClass | None = view.get(names.CLASS_KIND, class_name)
    deployment = view.get("MachineDeployment", names.deployment(cluster.name, id), names.namespace(cluster.name))
    if node_class is None or deployment is None:
        return ClassUse(cluster.name, id, provider)
    recorded = meta.annotations(deployment)
    is_of_class = recorded.get(names.NODE_CLASS) == class_name
    made_from = recorded.get(names.CLASS_INPUTS, "") if is_of_class else ""
    return ClassUse(cluster.name, id, provider, replicas(deployment), made_from, class_inputs(cluster, node_class))


# all services


def collect_services(view: View, _now: datetime) -> ServicesSnapshot:
    clusters: Sequence[LatticeCluster] = view.all(names.CLUSTER_KIND)
    services: Sequence[LatticeService] = view.all(names.SERVICE_KIND)
    malformed = {key: each.error for key, each in view.malformed(names.SERVICE_KIND).items()}
    return ServicesSnapshot(
        services=[each for each in services if (each.metadata.namespace, each.metadata.name) not in malformed],
        # Without services the pools of all clusters need not be read.
        offers=[offer for cluster in clusters for offer in _offers(view, cluster)] if services else [],
        malformed=malformed,
    )


def _offers(view: View, cluster: LatticeCluster) -> Iterator[PoolOffer]:
    """Yield the pools of a cluster sorted by id, including pools that are being removed."""
    pools = resolved_pools(cluster.spec.nodes)
    deployments: Sequence[Object] = view.indexed("MachineDeployment", names.BY_NAMESPACE, names.namespace(cluster.name))
    management = Management(deployments={each["metadata"]["name"]: each for each in deployments})
    is_ready = _may_have_workers(view, cluster)
    offers = [_offer(cluster, id, pool, management, is_ready) for id, pool in pools.items()]
    leaving = [
        PoolOffer(cluster.name, pool, labels={}, is_removed=True)
        for pool, _deployment in removed(cluster.name, management, pools)
    ]
    yield from sorted([*offers, *leaving], key=lambda offer: offer.pool)


def _offer(cluster: LatticeCluster, id: str, pool: WorkerPool, management: Management, is_ready: bool) -> PoolOffer:
    deployment = find_deployment(cluster.name, management, id).deployment
    wanted = replicas(deployment) if deployment is not None and cluster.is_pool_autoscaled(pool) else pool.replicas
    unavailable_reason = None
    if not is_ready:
        unavailable_reason = Reason.CLUSTER_NOT_READY
    elif deployment is None or wanted == 0:
        unavailable_reason = Reason.POOL_EMPTY
    return PoolOffer(
        cluster=cluster.name,
        pool=id,
        labels={**pool.labels, names.POOL: id},
        taints=pool.taints,
        node_class=pool.node_class,
        replicas=wanted,
        unavailable_reason=unavailable_reason,
    )


def _may_have_workers(view: View, cluster: LatticeCluster) -> bool:
    """Return True if the cluster may have workers: the same rule as for scaling pools."""
    if cluster.is_deleting or not is_control_plane_up(view, cluster.name):
        return False
    uid = view.cluster(cluster.name).uid
    return cluster.spec.pivot == Pivot.NEVER or (bool(uid) and uid == view.uid)
