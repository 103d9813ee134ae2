"""Blocks what a Cluster asks for and cannot get, with the facts for the message."""

from __future__ import annotations

from nodeyard.capabilities.clustertree.planning.leaf_ownership import leaf_of
from nodeyard.capabilities.clustertree.planning.models import Placement
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, node_ref
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_CLUSTER
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import ObjectRef

_NAMED = 10


def unavailable_reason(snapshot: TreeSnapshot) -> tuple[Reason, Object] | None:
    """Return why the leaf is not observed; None if it is."""
    kubeconfig, leaf = snapshot.kubeconfig, snapshot.leaf
    facts: Object = {"cluster": snapshot.cluster.name}
    secret = snapshot.cluster.spec.kubeconfig_secret_ref
    if secret is not None:
        facts["secret"] = secret.name
    if kubeconfig.is_missing:
        return Reason.SECRET_MISSING, {**facts, "error": kubeconfig.error}
    if kubeconfig.error:
        return Reason.KUBECONFIG_REFUSED, {**facts, "error": kubeconfig.error}
    if not kubeconfig.is_given:
        return Reason.NO_KUBECONFIG, facts
    if leaf.is_other:
        return Reason.LEAF_CHANGED, {**facts, "recorded": leaf_of(snapshot.cluster), "found": leaf.uid}
    if leaf.is_too_large:
        return Reason.TOO_LARGE, {**facts, "error": leaf.error}
    if leaf.is_synced:
        return None
    if leaf.is_connected:
        return Reason.NOT_SYNCED, {**facts, "error": leaf.error}
    return Reason.NOT_CONTACTED, {**facts, "error": leaf.error}


def block_refused(builder: PlanBuilder, tree: Tree) -> None:
    """Report all models without a node, and all overlaps."""
    cluster = tree.snapshot.cluster
    for placement in tree.placements:
        reason = tree.refusal(placement)
        if reason is not None:
            ref = _refused_ref(tree, placement) if reason is Reason.NAME_TAKEN else cluster_ref(cluster)
            builder.block_with_facts(ref, reason, facts_of(tree, placement))
    for overlap in tree.membership.overlaps:
        facts = {
            **facts_of(tree, overlap.placement),
            "by": overlap.by,
            "leafNodes": list(overlap.nodes[:_NAMED]),
            "count": len(overlap.nodes),
        }
        builder.block_with_facts(cluster_ref(cluster), Reason.MODELS_OVERLAP, facts)


def facts_of(tree: Tree, placement: Placement) -> Object:
    model = placement.model
    facts: Object = {"cluster": tree.snapshot.cluster.name, "model": model.title, "node": placement.name}
    if model.leaf_node:
        facts["leafNode"] = model.leaf_node
    if placement.fault:
        facts["error"] = placement.fault
    if placement.rival:
        facts["by"] = placement.rival
    elif earlier := tree.membership.outranked.get(placement.name):
        facts["by"] = earlier
    conflicting_node = tree.conflicting_node(placement.name)
    if conflicting_node is not None:
        facts["owner"] = conflicting_node.metadata.annotations.get(MIRRORED_CLUSTER, "")
    return facts


def _refused_ref(tree: Tree, placement: Placement) -> ObjectRef:
    conflicting_node = tree.conflicting_node(placement.name)
    return node_ref(placement.name, "" if conflicting_node is None else conflicting_node.metadata.uid)
