"""What pools watches, and which events make it plan again. No decisions here.

Everything of a cluster lives in one namespace, whose name tells the cluster: one key for each. Services are matched
together, under a key of their own. Nodes, pods and DaemonSets matter while a pool is being drained, on the cluster
whose nodes they are: our own after a pivot, else the one that the kubeconfig leads to.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools import classes, names, services, watched
from nodeyard.capabilities.pools.classes import ClassesSnapshot
from nodeyard.capabilities.pools.collecting import BY_NAMESPACE, DRAINING, KUBECONFIGS, collect
from nodeyard.capabilities.pools.definition import LATTICE_CLUSTER, LATTICE_NODE_CLASS, LATTICE_SERVICE
from nodeyard.capabilities.pools.events import events
from nodeyard.capabilities.pools.messages import text
from nodeyard.capabilities.pools.metrics import PoolsMetrics
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.services import ServicesSnapshot
from nodeyard.capabilities.pools.snapshot import Machine, PoolsSnapshot
from nodeyard.capabilities.pools.status import status
from nodeyard.capabilities.pools.types import (
    LatticeCluster,
    LatticeNodeClass,
    LatticeService,
    Pivot,
    resolved_pools,
)
from nodeyard.capabilities.pools.webhook import WEBHOOKS
from nodeyard.client import resources
from nodeyard.client.resources import Resource
from nodeyard.kube.objects import Namespace, Node, Pod
from nodeyard.plan.model import ObjectRef, Plan, Planned
from nodeyard.runtime.capability import (
    Capability,
    Elsewhere,
    Event,
    Key,
    Kind,
    Rule,
    StatusWrite,
    View,
    Watch,
)

CLUSTERS: Final = Resource(names.GROUP, names.VERSION, names.CLUSTER_PLURAL, names.CLUSTER_KIND, False, LatticeCluster)
CLASSES: Final = Resource(names.GROUP, names.VERSION, names.CLASS_PLURAL, names.CLASS_KIND, False, LatticeNodeClass)
SERVICES: Final = Resource(names.GROUP, names.VERSION, names.SERVICE_PLURAL, names.SERVICE_KIND, True, LatticeService)
_PREFIX: Final = names.cluster_key("")
_SERVICES: Final = (names.SERVICES_KEY,)
_SHARED: Final = {names.SERVICES_KEY: names.SERVICE_KIND, names.CLASSES_KEY: names.CLASS_KIND}
"""Keys under which all objects of a kind are looked at together."""


# which keys


def _cluster_keys(old: LatticeCluster | None, new: LatticeCluster | None) -> Iterable[Key]:
    known = old or new
    if known is None:
        return
    if old is None or new is None or not old.metadata.is_alike(new.metadata) or old.spec != new.spec:
        yield names.cluster_key(known.name)
        yield names.SERVICES_KEY
        yield names.CLASSES_KEY
    elif old.status.worker_pools != new.status.worker_pools or old.status.phase != new.status.phase:
        yield names.SERVICES_KEY


def _service_keys(old: LatticeService | None, new: LatticeService | None) -> Iterable[Key]:
    is_alike = old is not None and new is not None and old.spec == new.spec and old.metadata.uid == new.metadata.uid
    return () if is_alike else _SERVICES


def _class_keys(view: View, old: LatticeNodeClass | None, new: LatticeNodeClass | None) -> Iterable[Key]:
    known = old or new
    if known is None or (old is not None and new is not None and old.spec == new.spec):
        return ()
    users = view.indexed(names.CLUSTER_KIND, names.BY_CLASS, known.metadata.name)
    return [names.CLASSES_KEY, *(names.cluster_key(each.name) for each in users)]


def _namespaced_keys(old: Any | None, new: Any | None) -> Iterable[Key]:
    (namespace,) = watched.by_namespace(old if new is None else new)
    cluster = watched.cluster_of(namespace)
    return (names.cluster_key(cluster),) if cluster else ()


def _namespace_keys(old: Namespace | None, new: Namespace | None) -> Iterable[Key]:
    known = old or new
    is_same = old is not None and new is not None and old.metadata.is_alike(new.metadata)
    if known is None or is_same:
        return ()
    cluster = watched.cluster_of(known.metadata.name)
    return (names.cluster_key(cluster),) if cluster else ()


def _node_matters(old: Node | None, new: Node | None) -> bool:
    """A heartbeat changes nothing that is decided by."""
    if old is None or new is None:
        return True
    return not old.metadata.is_alike(new.metadata) or old.spec != new.spec


def _pod_matters(old: Pod | None, new: Pod | None) -> bool:
    """A pod matters by being on a node or not, finished or not, and going or not."""
    return _standing(old) != _standing(new)


def _standing(pod: Pod | None) -> tuple[Any, ...] | None:
    if pod is None:
        return None
    return pod.metadata.uid, pod.spec.node_name, pod.status.phase, pod.metadata.deletion_timestamp, pod.metadata.labels


def _keys_of_node(view: View, name: str) -> Iterable[Key]:
    """The clusters whose Machines have become this node."""
    machines: Sequence[Machine] = view.indexed("Machine", names.BY_NODE, name)
    clusters = {watched.cluster_of(machine.metadata.namespace) for machine in machines}
    return [names.cluster_key(each) for each in sorted(clusters) if each]


def _own_node_keys(view: View, old: Node | None, new: Node | None) -> Iterable[Key]:
    known = old or new
    return _keys_of_node(view, known.metadata.name) if known and _node_matters(old, new) else ()


def _own_pod_keys(view: View, old: Pod | None, new: Pod | None) -> Iterable[Key]:
    nodes = {pod.spec.node_name for pod in (old, new) if pod is not None and pod.spec.node_name}
    return [key for node in nodes for key in _keys_of_node(view, node)] if _pod_matters(old, new) else ()


def _node_keys_there(cluster: str, old: Node | None, new: Node | None) -> Iterable[Key]:
    return (names.cluster_key(cluster),) if _node_matters(old, new) else ()


def _pod_keys_there(cluster: str, old: Pod | None, new: Pod | None) -> Iterable[Key]:
    return (names.cluster_key(cluster),) if _pod_matters(old, new) else ()


# what is needed


def _classes_of(cluster: LatticeCluster) -> Iterable[str]:
    return {pool.node_class for pool in resolved_pools(cluster.spec.nodes).values() if pool.node_class}


def _pods_by_node(pod: Pod) -> Iterable[str]:
    return (pod.spec.node_name,) if pod.spec.node_name else ()


def _drains(view: View) -> Iterable[LatticeCluster]:
    """The clusters of which a pool is being removed."""
    for deployment in view.indexed("MachineDeployment", DRAINING, watched.ANY):
        cluster = view.get(names.CLUSTER_KIND, (deployment.get("spec") or {}).get("clusterName", ""))
        if cluster is not None:
            yield cluster


def _drains_here(view: View) -> bool:
    return any(cluster.spec.pivot != Pivot.NEVER or _is_own(view, cluster) for cluster in _drains(view))


def _is_own(view: View, cluster: LatticeCluster) -> bool:
    """Whether its kubeconfig leads back here, though it was not to be pivoted."""
    return bool(view.uid) and view.cluster(cluster.name).uid == view.uid


def _drains_there(view: Any) -> bool:
    """Of a further cluster: whether its nodes are drained through it."""
    home: View = view.cluster("")
    cluster: LatticeCluster | None = home.get(names.CLUSTER_KIND, view.name)
    is_drained = bool(home.indexed("MachineDeployment", DRAINING, view.name))
    return cluster is not None and is_drained and cluster.spec.pivot == Pivot.NEVER and view.uid != home.uid


def clusters(view: View) -> Iterable[Elsewhere]:
    """Every cluster that has a kubeconfig: who it is tells whether it has been pivoted."""
    for secret in view.indexed("Secret", KUBECONFIGS, watched.ANY):
        cluster = watched.cluster_of(secret.metadata.namespace)
        is_its = secret.metadata.name == names.kubeconfig(cluster) and view.get(names.CLUSTER_KIND, cluster) is not None
        kubeconfig = watched.decode_kubeconfig(secret) if is_its else None
        if kubeconfig is not None:
            yield Elsewhere(cluster, kubeconfig)


# by key


def _collect(view: View, key: Key, now: datetime) -> PoolsSnapshot | ServicesSnapshot | ClassesSnapshot | None:
    if key == names.SERVICES_KEY:
        return services.collect_services(view, now)
    if key == names.CLASSES_KEY:
        return classes.collect_classes(view, now)
    return collect(view, key.removeprefix(_PREFIX), now)


def _plan(snapshot: Any, now: datetime, explain: Sequence[ObjectRef]) -> Planned:
    if isinstance(snapshot, ServicesSnapshot):
        return services.plan_services(snapshot, now, explain)
    if isinstance(snapshot, ClassesSnapshot):
        return classes.plan_classes(snapshot, now)
    return plan(snapshot, now, explain)


def _status(snapshot: Any, planned: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if isinstance(snapshot, ServicesSnapshot):
        return services.status_services(snapshot, planned, outcome, now)
    if isinstance(snapshot, ClassesSnapshot):
        return classes.status_classes(snapshot, planned, outcome, now)
    return status(snapshot, planned, outcome, now)


def _events(snapshot: Any, planned: Plan, outcome: Outcome) -> Sequence[Event]:
    return events(snapshot, planned, outcome) if isinstance(snapshot, PoolsSnapshot) else ()


def _roots(view: View, key: Key) -> Sequence[Any]:
    if key in _SHARED:
        return ()
    found = view.get(names.CLUSTER_KIND, key.removeprefix(_PREFIX))
    return () if found is None else (found,)


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
            users = view.indexed(names.CLUSTER_KIND, names.BY_CLASS, ref.name)
            return [names.cluster_key(each.name) for each in users]
        case "Node":
            return _keys_of_node(view, ref.name)
        case "MachineDeployment":
            cluster = watched.cluster_of(ref.namespace)
            return (names.cluster_key(cluster),) if cluster else ()
    return ()


def _pool(name: str) -> Sequence[ObjectRef]:
    """`prod/gpu`: the pool gpu of the LatticeCluster prod."""
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
    """A kind of Cluster API, which may not be installed, or in an older version."""
    return Watch(
        resource,
        _namespaced_keys,
        indexes={BY_NAMESPACE: watched.by_namespace},
        optional=True,
        older=watched.OLDER.get(resource.kind, ()),
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
        Watch(CLUSTERS, _cluster_keys, indexes={names.BY_CLASS: _classes_of}),
        Watch(CLASSES, keys_in=_class_keys),
        Watch(SERVICES, _service_keys),
        Watch(resources.NAMESPACES.decoded_as(Namespace), _namespace_keys),
        _watch(watched.CLUSTERS),
        _watch(watched.CONTROL_PLANES),
        *(_watch(each) for each in watched.INFRASTRUCTURE_CLUSTERS),
        *(_watch(each, metadata_only=True) for each in watched.TEMPLATES),
        Watch(
            watched.DEPLOYMENTS,
            _namespaced_keys,
            indexes={BY_NAMESPACE: watched.by_namespace, DRAINING: watched.draining},
            optional=True,
        ),
        _watch(watched.MACHINE_SETS),
        Watch(
            watched.MACHINES,
            _namespaced_keys,
            indexes={BY_NAMESPACE: watched.by_namespace, names.BY_NODE: watched.by_node},
            optional=True,
        ),
        Watch(
            watched.SECRETS,
            _namespaced_keys,
            indexes={KUBECONFIGS: watched.kubeconfigs},
            label_selector=names.CLUSTER_NAME_LABEL,
        ),
        Watch(resources.NODES.decoded_as(Node), keys_in=_own_node_keys),
        Watch(
            resources.PODS.decoded_as(Pod),
            keys_in=_own_pod_keys,
            indexes={names.BY_NODE: _pods_by_node},
            needed=_drains_here,
        ),
        Watch(resources.DAEMON_SETS, metadata_only=True, needed=_drains_here),
    ),
    clusters=clusters,
    cluster_watches=(
        Watch(resources.NODES.decoded_as(Node), keys_of=_node_keys_there, needed=_drains_there),
        Watch(
            resources.PODS.decoded_as(Pod),
            keys_of=_pod_keys_there,
            indexes={names.BY_NODE: _pods_by_node},
            needed=_drains_there,
        ),
        Watch(resources.DAEMON_SETS, metadata_only=True, needed=_drains_there),
    ),
    cluster_keys=lambda _view, cluster: (names.cluster_key(cluster),),
    collect=_collect,
    plan=_plan,
    status=_status,
    events=_events,
    messages=text,
    rbac=(
        Rule("", ("nodes",), (*_READ, "patch")),
        Rule("", ("pods",), _READ),
        Rule("", ("pods/eviction",), ("create",)),
        Rule("apps", ("daemonsets",), ("list", "watch")),
        Rule("", ("namespaces",), (*_READ, "create", "patch", "delete")),
        Rule("", ("secrets",), ("list", "watch")),
        Rule(names.GROUP, (names.CLUSTER_PLURAL,), (*_READ, "patch")),
        Rule(names.GROUP, (names.CLASS_PLURAL, names.SERVICE_PLURAL), _READ),
        Rule(names.GROUP, tuple(f"{each}/status" for each in _PLURALS), ("patch",)),
        Rule(names.CAPI_GROUP, ("clusters", "machinedeployments"), (*_READ, "create", "patch", "delete")),
        Rule(names.CAPI_GROUP, ("machinesets", "machines"), ("list", "watch")),
        Rule(names.CONTROL_PLANE_GROUP, ("kubeadmcontrolplanes",), (*_READ, "create", "patch")),
        Rule(names.BOOTSTRAP_GROUP, ("kubeadmconfigtemplates",), (*_READ, "create", "patch", "delete")),
        # Of the infrastructure, Cluster API takes what belongs to a Cluster along with it; templates are left to us.
        Rule(names.INFRASTRUCTURE_GROUP, _INFRASTRUCTURE_CLUSTERS, (*_READ, "create", "patch")),
        Rule(names.INFRASTRUCTURE_GROUP, _MACHINE_TEMPLATES, (*_READ, "create", "patch", "delete")),
    ),
    roots=_roots,
    managed=_managed,
    keys_of=_keys_of,
    all_keys=_all_keys,
    metrics=PoolsMetrics,
    webhooks=WEBHOOKS,
    aliases={"pool": _pool},
    stages=("providers", "machines"),
    example="02-pools",
)
