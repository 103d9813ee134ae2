"""Blocks what a Cluster asks for and cannot get, and pods that nothing acknowledges.

Nodeyard mirrors nodes and does not move pods; a pod sync such as Kosmos' pod controllers must do that. Without one a
pod of the root that is bound to a mirrored node would wait silently, so it is reported after a minute.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth, State
from nodeyard.capabilities.clustertree.messages import (
    CredentialsRejected,
    InvalidModel,
    KubeconfigRefused,
    LeafChanged,
    LeafNodeMissing,
    LeafShared,
    ModelsOverlap,
    NameTaken,
    NoKubeconfig,
    NotContacted,
    NotSynced,
    PodUnacknowledged,
    ProbeFailing,
    SecretMissing,
    TooLarge,
    TreeMessage,
    Unreachable,
)
from nodeyard.capabilities.clustertree.planning.models import Placement
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, leaf_of, node_ref
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import BoundPod, TreeSnapshot
from nodeyard.kube.names import MIRRORED_CLUSTER
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import ObjectRef

_NAMED = 10


def unavailable(snapshot: TreeSnapshot) -> TreeMessage | None:
    """Return why the leaf is not observed; None if it is."""
    kubeconfig, leaf, cluster = snapshot.kubeconfig, snapshot.leaf, snapshot.cluster
    secret = cluster.spec.kubeconfig_secret_ref
    if kubeconfig.is_missing:
        name = "" if secret is None else secret.name
        return SecretMissing(cluster=cluster.name, secret=name, error=kubeconfig.error)
    if kubeconfig.error:
        return KubeconfigRefused(cluster=cluster.name, error=kubeconfig.error)
    if not kubeconfig.is_given:
        return NoKubeconfig(cluster=cluster.name)
    if leaf.is_other:
        return leaf_changed(snapshot)
    if leaf.is_too_large:
        return TooLarge(cluster=cluster.name, error=leaf.error)
    if leaf.is_synced:
        return None
    return (NotSynced if leaf.is_connected else NotContacted)(cluster=cluster.name, error=leaf.error)


def leaf_changed(snapshot: TreeSnapshot) -> LeafChanged:
    cluster = snapshot.cluster
    return LeafChanged(cluster=cluster.name, recorded=leaf_of(cluster), found=snapshot.leaf.uid)


def contact_lost(snapshot: TreeSnapshot, health: LeafHealth, last_contact: str = "") -> TreeMessage | None:
    """Return why a leaf that was reached before is not; None while it responds."""
    cluster = snapshot.cluster.name
    if health.is_rejected:
        since = format_rfc3339(health.rejected_since or health.since)
        return CredentialsRejected(cluster=cluster, error=health.message, since=since)
    if health.state is State.UNREACHABLE:
        if not last_contact and health.last_contact is not None:
            last_contact = format_rfc3339(health.last_contact)
        return Unreachable(cluster=cluster, error=health.message, last_contact=last_contact)
    return None if health.state is State.ALIVE else ProbeFailing(cluster=cluster, error=health.message)


def block_refused(builder: PlanBuilder, tree: Tree) -> None:
    """Report all models without a node, and all overlaps."""
    cluster = tree.snapshot.cluster
    for placement in tree.placements:
        message = refusal(tree, placement)
        if message is not None:
            ref = _refused_ref(tree, placement) if isinstance(message, NameTaken) else cluster_ref(cluster)
            builder.block(ref, message)
    for overlap in tree.membership.overlaps:
        message = ModelsOverlap(
            cluster=cluster.name,
            model=overlap.placement.model.title,
            node=overlap.placement.name,
            by=overlap.by,
            leaf_nodes=tuple(overlap.nodes[:_NAMED]),
            count=len(overlap.nodes),
        )
        builder.block(cluster_ref(cluster), message)


def refusal(tree: Tree, placement: Placement) -> TreeMessage | None:
    """Return why a model gets no node, or why its node is not updated."""
    cluster, model, node = tree.snapshot.cluster.name, placement.model.title, placement.name
    match tree.refusal(placement):
        case Reason.INVALID_MODEL:
            return InvalidModel(cluster=cluster, model=model, node=node, error=placement.fault)
        case Reason.MODELS_OVERLAP:
            return ModelsOverlap(cluster=cluster, model=model, node=node, by=placement.rival)
        case Reason.NAME_TAKEN:
            conflicting = tree.conflicting_node(node)
            owner = "" if conflicting is None else conflicting.metadata.annotations.get(MIRRORED_CLUSTER, "")
            return NameTaken(cluster=cluster, model=model, node=node, owner=owner)
        case Reason.LEAF_SHARED:
            return LeafShared(cluster=cluster, model=model, node=node, by=tree.membership.outranked[node])
        case Reason.LEAF_NODE_MISSING:
            return LeafNodeMissing(cluster=cluster, model=model, node=node, leaf_node=placement.model.leaf_node)
    return None


def _refused_ref(tree: Tree, placement: Placement) -> ObjectRef:
    conflicting_node = tree.conflicting_node(placement.name)
    return node_ref(placement.name, "" if conflicting_node is None else conflicting_node.metadata.uid)


PATIENCE: Final = timedelta(seconds=60)


def unacknowledged(snapshot: TreeSnapshot, now: datetime) -> tuple[BoundPod, ...]:
    """Return the pods that have waited too long, sorted by namespace and name."""
    return tuple(pod for pod in snapshot.pending_pods if pod.since + PATIENCE <= now)


def block_unacknowledged(builder: PlanBuilder, snapshot: TreeSnapshot) -> None:
    for pod in unacknowledged(snapshot, builder.now):
        builder.block(pod_ref(pod), pod_message(pod, snapshot))
    for pod in snapshot.pending_pods:
        if pod.since + PATIENCE > builder.now:
            builder.wake(pod.since + PATIENCE)


def pod_ref(pod: BoundPod) -> ObjectRef:
    return ObjectRef(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)


def pod_message(pod: BoundPod, snapshot: TreeSnapshot, *, is_early: bool = False) -> PodUnacknowledged:
    return PodUnacknowledged(
        cluster=snapshot.cluster.name,
        node=pod.node,
        pod=f"{pod.namespace}/{pod.name}",
        since=format_rfc3339(pod.since),
        is_early=is_early,
    )
