"""Registers pools: watches, dispatch by workqueue key, RBAC. It makes no decisions.

Each LatticeCluster has one key. All LatticeServices share a key, and so do all LatticeNodeClasses.
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
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, PoolsSnapshot, ServicesSnapshot
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeNodeClass,
    LatticeService,
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
            return watched.keys_of_node(view, ref.name)
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
        watched.namespaced_keys,
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
        Watch(CLUSTERS, watched.cluster_keys, indexes={names.BY_CLASS: watched.classes_of}),
        Watch(CLASSES, map_with_view=watched.class_keys),
        Watch(SERVICES, watched.service_keys),
        Watch(resources.NAMESPACES.decoded_as(Namespace), watched.namespace_keys),
        _watch(watched.CLUSTERS),
        _watch(watched.CONTROL_PLANES),
        *(_watch(each) for each in watched.INFRASTRUCTURE_CLUSTERS),
        *(_watch(each, metadata_only=True) for each in watched.TEMPLATES),
        Watch(
            watched.DEPLOYMENTS,
            watched.namespaced_keys,
            indexes={names.BY_NAMESPACE: watched.by_namespace, names.DRAINING: watched.draining},
            optional=True,
        ),
        _watch(watched.MACHINE_SETS),
        Watch(
            watched.MACHINES,
            watched.namespaced_keys,
            indexes={names.BY_NAMESPACE: watched.by_namespace, names.BY_NODE: watched.by_node},
            optional=True,
        ),
        Watch(resources.NODES.decoded_as(Node), map_with_view=watched.local_node_keys),
        Watch(
            resources.PODS.decoded_as(Pod),
            map_with_view=watched.local_pod_keys,
            indexes={names.BY_NODE: watched.pods_by_node},
            needed=watched.has_local_drain,
        ),
        Watch(resources.DAEMON_SETS, metadata_only=True, needed=watched.has_local_drain),
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
        Rule(names.GROUP, (names.CLUSTER_PLURAL,), (*_READ, "patch")),
        Rule(names.GROUP, (names.CLASS_PLURAL, names.SERVICE_PLURAL), _READ),
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
                map_remote=watched.remote_node_keys,
                needed=watched.has_remote_drain,
            ),
            Watch(
                resources.PODS.decoded_as(Pod),
                map_remote=watched.remote_pod_keys,
                indexes={names.BY_NODE: watched.pods_by_node},
                needed=watched.has_remote_drain,
            ),
            Watch(resources.DAEMON_SETS, metadata_only=True, needed=watched.has_remote_drain),
        ),
        keys=lambda _view, cluster: (names.cluster_key(cluster),),
    ),
)
