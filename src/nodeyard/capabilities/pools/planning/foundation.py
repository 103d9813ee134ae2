"""What all pools of a cluster stand on: its namespace, the Cluster, its infrastructure and its control plane."""

from __future__ import annotations

from nodeyard.capabilities.pools import generation, names
from nodeyard.capabilities.pools.planning import templates
from nodeyard.capabilities.pools.planning.applying import apply, changes
from nodeyard.capabilities.pools.planning.observed import control_plane_infrastructure
from nodeyard.capabilities.pools.planning.pivot import is_initialized
from nodeyard.capabilities.pools.planning.rolling import replacement
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.kube import meta
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import FieldChange, ObjectRef, Verb, Write


def cluster_ref(snapshot: PoolsSnapshot) -> ObjectRef:
    metadata = snapshot.cluster.metadata
    return ObjectRef(api_version=names.API_VERSION, kind=names.CLUSTER_KIND, name=metadata.name, uid=metadata.uid)


def add_finalizer(draft: Draft, snapshot: PoolsSnapshot) -> str:
    """First of all: what is made must not be forgotten when the LatticeCluster is deleted."""
    metadata = snapshot.cluster.metadata
    if names.FINALIZER in metadata.finalizers:
        return ""
    patch = {"metadata": {"finalizers": [*metadata.finalizers, names.FINALIZER]}}
    before = {"metadata": {"finalizers": list(metadata.finalizers)}}
    return draft.act(
        Verb.PATCH,
        cluster_ref(snapshot),
        Reason.FINALIZER_ADDED,
        {"cluster": metadata.name},
        Write(body=patch, resource_version=metadata.resource_version),
        diff=diff(before, patch),
        part="finalizer",
    )


def is_gone(snapshot: PoolsSnapshot) -> bool:
    """Whether its Cluster had come up and is not here any more.

    `clusterctl move` takes it to another management cluster, which this LatticeCluster does not follow. Made anew here,
    it would be a second control plane by the same name.
    """
    is_noted = names.CLUSTER_UID in snapshot.cluster.metadata.annotations
    return is_noted and snapshot.management.cluster is None and bool(snapshot.served.of("Cluster"))


def note(draft: Draft, snapshot: PoolsSnapshot, ground: tuple[str, ...]) -> None:
    """Write down which Cluster has come up."""
    metadata, cluster = snapshot.cluster.metadata, snapshot.management.cluster
    if cluster is None or not is_initialized(snapshot):
        return
    uid = meta.uid(cluster)
    if metadata.annotations.get(names.CLUSTER_UID) == uid:
        return
    draft.act(
        Verb.PATCH,
        cluster_ref(snapshot),
        Reason.CLUSTER_NOTED,
        {"cluster": metadata.name},
        Write(body={"metadata": {"annotations": {names.CLUSTER_UID: uid}}}),
        diff=(FieldChange(path=f"metadata.annotations[{names.CLUSTER_UID}]", to=uid),),
        part="note",
        after=ground,
    )


def lay(draft: Draft, snapshot: PoolsSnapshot, version: str) -> tuple[str, ...]:
    """The actions that everything else has to come after. Raises Unserved and Unfit before anything is drafted."""
    lc, management, served = snapshot.cluster, snapshot.management, snapshot.served
    infrastructure, cluster = generation.infrastructure_cluster(lc, served), generation.cluster(lc, served)
    template = generation.control_plane_template(lc, served)
    ground = _ground(draft, snapshot)
    facts = {"cluster": lc.name}
    apply(draft, management.infrastructure, infrastructure, Reason.INFRASTRUCTURE_APPLIED, facts, after=ground)
    _control_plane(draft, snapshot, template, version, ground)
    apply(draft, management.cluster, cluster, Reason.CLUSTER_APPLIED, facts, after=ground)
    return ground


def _ground(draft: Draft, snapshot: PoolsSnapshot) -> tuple[str, ...]:
    lc = snapshot.cluster
    first = tuple(filter(None, [add_finalizer(draft, snapshot)]))
    if snapshot.management.namespace is not None:
        return first
    made = apply(draft, None, generation.namespace(lc), Reason.NAMESPACE_CREATED, {"cluster": lc.name}, after=first)
    return (*first, made)


def _control_plane(
    draft: Draft, snapshot: PoolsSnapshot, template: generation.Template, version: str, ground: tuple[str, ...]
) -> None:
    lc, live = snapshot.cluster, snapshot.management.control_plane
    current = ("", "") if live is None else control_plane_infrastructure(live)
    chosen = templates.choose(draft, lc, snapshot.management, template, current, ground)
    body = generation.control_plane(lc, chosen.name, chosen.kind, version)
    nodes = tuple(
        machine.node or machine.metadata.name
        for machine in snapshot.management.machines
        if names.CONTROL_PLANE_LABEL in machine.metadata.labels
    )
    facts = {"cluster": lc.name, "version": version}
    changed = changes(live, body)
    disruption, disrupts, why = replacement(() if live is None else changed, nodes)
    apply(
        draft,
        live,
        body,
        Reason.CONTROL_PLANE_APPLIED,
        {**facts, "nodes": len(disrupts), "why": list(why)} if why else facts,
        disruption=disruption,
        disrupts=disrupts,
        after=(*ground, chosen.action),
        changed=changed,
    )
