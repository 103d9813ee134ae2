"""Registers pools: watches, the mapping of events to workqueue keys, dispatch by key, RBAC. It makes no decisions.

Each LatticeCluster has one key. All LatticeServices share a key, and so do all LatticeNodeClasses. Pods and DaemonSets
are watched only while a pool is being drained, on the workload cluster: the local cluster after a pivot, otherwise the
cluster of the kubeconfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.capabilities.pools import names, watched
from nodeyard.capabilities.pools.collect import (
    collect,
    collect_classes,
    collect_services,
    is_control_plane_up,
    node_classes,
)
from nodeyard.capabilities.pools.definition import LATTICE_CLUSTER, LATTICE_NODE_CLASS, LATTICE_SERVICE
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.planning.classes import plan_classes
from nodeyard.capabilities.pools.planning.machine_state import replicas
from nodeyard.capabilities.pools.planning.services import plan_services
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.report import report
from nodeyard.capabilities.pools.report.metrics import PoolsMetrics
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, Machine, PoolsSnapshot, ServicesSnapshot
from nodeyard.capabilities.pools.surface import SURFACE
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeNodeClass,
    LatticeService,
    Pivot,
)
from nodeyard.capabilities.pools.webhook import WEBHOOKS
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube.objects import Namespace, Node, Pod
from nodeyard.plan.model import ObjectRef, Planned
from nodeyard.runtime.capability import (
    Admission,
    Aggregate,
    Alias,
    Capability,
    Explain,
    Key,
    Kind,
    Remote,
    RemoteClusterRef,
    Roots,
    Rule,
    SecretKey,
    View,
    Watch,
)
from nodeyard.runtime.rbac import grant_remedy

CLUSTERS: Final = Resource(names.GROUP, names.VERSION, names.CLUSTER_PLURAL, names.CLUSTER_KIND, False, LatticeCluster)
CLASSES: Final = Resource(names.GROUP, names.VERSION, names.CLASS_PLURAL, names.CLASS_KIND, False, LatticeNodeClass)
SERVICES: Final = Resource(names.GROUP, names.VERSION, names.SERVICE_PLURAL, names.SERVICE_KIND, True, LatticeService)
_PREFIX: Final = names.cluster_key("")
_SERVICES: Final = (names.SERVICES_KEY,)
_SHARED: Final = {names.SERVICES_KEY: names.SERVICE_KIND, names.CLASSES_KEY: names.CLASS_KIND}
"""Keys that stand for all objects of a kind."""


# events to keys


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
    (namespace,) = watched.by_namespace(old if new is None else new)
    cluster = watched.cluster_of(namespace)
    return (names.cluster_key(cluster),) if cluster else ()


def namespace_keys(old: Namespace | None, new: Namespace | None) -> Iterable[Key]:
    known = old or new
    is_same = old is not None and new is not None and old.metadata.is_alike(new.metadata)
    if known is None or is_same:
        return ()
    cluster = watched.cluster_of(known.metadata.name)
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
    clusters = {watched.cluster_of(machine.metadata.namespace) for machine in machines}
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
    for deployment in view.indexed("MachineDeployment", names.DRAINING, watched.ANY):
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


# remote clusters


def clusters(view: View) -> Iterable[RemoteClusterRef]:
    """Yield every initialized cluster: its uid shows if it has been pivoted."""
    for lc in view.all(names.CLUSTER_KIND):
        if is_control_plane_up(view, lc.name):
            namespace = names.namespace(lc.name)
            remedy = grant_remedy(names.CAPABILITY, names.KUBECONFIGS, namespace)
            secret = SecretKey(namespace, names.kubeconfig(lc.name), names.KUBECONFIG_KEY, remedy)
            yield RemoteClusterRef(lc.name, secret=secret)


# dispatch by key


def _collect(view: View, key: Key, now: datetime) -> PoolsSnapshot | ServicesSnapshot | ClassesSnapshot | None:
    if key == names.SERVICES_KEY:
        return collect_services(view, now)
    if key == names.CLASSES_KEY:
        return collect_classes(view, now)
    return collect(view, key.removeprefix(_PREFIX), now)


def _plan(snapshot: Any, now: datetime, explain: Sequence[ObjectRef]) -> Planned:
    if isinstance(snapshot, ServicesSnapshot):
        return plan_services(snapshot, now, explain)
    if isinstance(snapshot, ClassesSnapshot):
        return plan_classes(snapshot, now, explain)
    return plan(snapshot, now, explain)


def _roots(view: View, key: Key) -> Sequence[Any]:
    if key in _SHARED:
        return ()
    found = view.get(names.CLUSTER_KIND, key.removeprefix(_PREFIX))
    return () if found is None else (found,)


def _class_roots(view: View, key: Key) -> Sequence[Any]:
    """Return the classes of a cluster: an edit of a class is approved on the class, for all clusters that use it."""
    return [each for cluster in _roots(view, key) for each in node_classes(view, cluster).values()]


def _held_roots(view: View, key: Key) -> Sequence[Any]:
    return view.all(names.CLASS_KIND) if key == names.CLASSES_KEY else ()


def _managed(snapshot: Any) -> int:
    return len(snapshot.management.machines) if isinstance(snapshot, PoolsSnapshot) else 0


def _all_keys(view: View) -> Iterable[Key]:
    shared = [key for key, kind in _SHARED.items() if view.all(kind) or view.malformed(kind)]
    return [*(names.cluster_key(each.name) for each in view.all(names.CLUSTER_KIND)), *shared]


def _keys_of(view: View, ref: ObjectRef) -> Iterable[Key]:
    match ref.kind:
        case names.CLUSTER_KIND:
            return (names.cluster_key(ref.name),)
        case names.SERVICE_KIND:
            return _SERVICES
        case names.CLASS_KIND:
            return (names.CLASSES_KEY,)
        case "Node":
            return keys_of_node(view, ref.name)
        case "MachineDeployment":
            cluster = watched.cluster_of(ref.namespace)
            return (names.cluster_key(cluster),) if cluster else ()
    return ()


def _pool(name: str) -> Sequence[ObjectRef]:
    """Resolve the alias CLUSTER/POOL to MachineDeployments."""
    cluster, _, pool = name.partition("/")
    if not cluster or not pool:
        return ()
    found = [names.deployment(cluster, pool)]
    if pool == names.DEFAULT_POOL:
        found.append(names.legacy_deployment(cluster))
    namespace = names.namespace(cluster)
    return [
        ObjectRef(api_version=names.CAPI_API_VERSION, kind="MachineDeployment", namespace=namespace, name=each)
        for each in found
    ]


def _watch(resource: Resource[Any], **more: Any) -> Watch:
    """Build the watch of a Cluster API kind, which may be missing or served in an older version."""
    return Watch(
        resource,
        namespaced_keys,
        indexes={names.BY_NAMESPACE: watched.by_namespace},
        optional=True,
        fallback_versions=watched.FALLBACK_VERSIONS.get(resource.kind, ()),
        **more,
    )


_PLURALS: Final = (names.CLUSTER_PLURAL, names.CLASS_PLURAL, names.SERVICE_PLURAL)
_READ: Final = ("get", "list", "watch")
_INFRASTRUCTURE_CLUSTERS: Final = tuple(each.plural for each in watched.INFRASTRUCTURE_CLUSTERS)
_MACHINE_TEMPLATES: Final = tuple(each.plural for each in watched.MACHINE_TEMPLATES)

POOLS: Final = Capability(
    name=names.CAPABILITY,
    kinds=(
        Kind(CLUSTERS, LATTICE_CLUSTER.render),
        Kind(CLASSES, LATTICE_NODE_CLASS.render),
        Kind(SERVICES, LATTICE_SERVICE.render),
    ),
    watches=(
        Watch(CLUSTERS, cluster_keys, indexes={names.BY_CLASS: watched.classes_of}),
        Watch(CLASSES, map_with_view=class_keys),
        Watch(SERVICES, service_keys),
        Watch(resources.NAMESPACES.decoded_as(Namespace), namespace_keys),
        _watch(watched.CLUSTERS),
        _watch(watched.CONTROL_PLANES),
        *(_watch(each) for each in watched.INFRASTRUCTURE_CLUSTERS),
        *(_watch(each, metadata_only=True) for each in watched.TEMPLATES),
        Watch(
            watched.DEPLOYMENTS,
            namespaced_keys,
            indexes={names.BY_NAMESPACE: watched.by_namespace, names.DRAINING: watched.draining},
            optional=True,
        ),
        _watch(watched.MACHINE_SETS),
        Watch(
            watched.MACHINES,
            namespaced_keys,
            indexes={names.BY_NAMESPACE: watched.by_namespace, names.BY_NODE: watched.by_node},
            optional=True,
        ),
        Watch(resources.NODES.decoded_as(Node), map_with_view=local_node_keys),
        Watch(
            resources.PODS.decoded_as(Pod),
            map_with_view=local_pod_keys,
            indexes={names.BY_NODE: watched.pods_by_node},
            needed=has_local_drain,
        ),
        Watch(resources.DAEMON_SETS, metadata_only=True, needed=has_local_drain),
    ),
    all_keys=_all_keys,
    collect=_collect,
    plan=_plan,
    report=report,
    rbac=(
        Rule("", ("nodes",), (*_READ, "patch")),
        Rule("", ("pods",), _READ),
        Rule("", ("pods/eviction",), ("create",)),
        Rule("apps", ("daemonsets",), ("list", "watch")),
        Rule("", ("namespaces",), (*_READ, "create", "patch", "delete")),
        # kubeconfig Secrets, read by name
        Rule("", ("secrets",), ("get",), grant=names.KUBECONFIGS),
        # finalizers, and approvals that have ended
        Rule(names.GROUP, (names.CLUSTER_PLURAL, names.CLASS_PLURAL), (*_READ, "patch")),
        Rule(names.GROUP, (names.SERVICE_PLURAL,), _READ),
        Rule(names.GROUP, tuple(f"{each}/status" for each in _PLURALS), ("patch",)),
        Rule(names.CAPI_GROUP, ("clusters", "machinedeployments"), (*_READ, "create", "patch", "delete")),
        Rule(names.CAPI_GROUP, ("machinesets", "machines"), ("list", "watch")),
        Rule(names.CONTROL_PLANE_GROUP, ("kubeadmcontrolplanes",), (*_READ, "create", "patch")),
        Rule(names.BOOTSTRAP_GROUP, ("kubeadmconfigtemplates",), (*_READ, "create", "patch", "delete")),
        # Cluster API deletes the infrastructure cluster with its Cluster; Nodeyard deletes templates.
        Rule(names.INFRASTRUCTURE_GROUP, _INFRASTRUCTURE_CLUSTERS, (*_READ, "create", "patch")),
        Rule(names.INFRASTRUCTURE_GROUP, _MACHINE_TEMPLATES, (*_READ, "create", "patch", "delete")),
    ),
    aggregates=(
        Aggregate(
            names.CLASS_NODES,
            "MachineDeployment",
            lambda: 0,
            watched.class_groups,
            lambda count, deployment: count + replicas(deployment),
            lambda count, deployment: count - replicas(deployment),
        ),
    ),
    managed_nodes=_managed,
    metrics=PoolsMetrics,
    roots=Roots(_roots, approval=_class_roots, held=_held_roots),
    explain=Explain(
        _keys_of,
        healthy=frozenset({Reason.RECONCILED, Reason.AS_SPECIFIED, Reason.PLACED}),
        aliases={"pool": Alias(_pool, "CLUSTER/POOL")},
    ),
    admission=Admission(WEBHOOKS),
    remote=Remote(
        clusters,
        watches=(
            Watch(
                resources.NODES.decoded_as(Node),
                map_remote=remote_node_keys,
                needed=has_remote_drain,
            ),
            Watch(
                resources.PODS.decoded_as(Pod),
                map_remote=remote_pod_keys,
                indexes={names.BY_NODE: watched.pods_by_node},
                needed=has_remote_drain,
            ),
            Watch(resources.DAEMON_SETS, metadata_only=True, needed=has_remote_drain),
        ),
        keys=lambda _view, cluster: (names.cluster_key(cluster),),
    ),
    surface=SURFACE,
)
