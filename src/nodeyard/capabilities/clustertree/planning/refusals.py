"""What a Cluster asks for and does not get, each with the facts that its text needs."""

from __future__ import annotations

from nodeyard.capabilities.clustertree.planning.models import Placement
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, node_ref
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.kube.json import Object
from nodeyard.kube.names import MIRRORED_CLUSTER
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef

_NAMED = 10


def out_of_touch(snapshot: TreeSnapshot) -> tuple[Reason, Object] | None:
    """Why nothing is known of the leaf; None where something is."""
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
    if leaf.is_synced:
        return None
    if leaf.is_connected:
        return Reason.NOT_SYNCED, {**facts, "error": leaf.error}
    return Reason.NOT_CONTACTED, {**facts, "error": leaf.error}


def refuse(draft: Draft, tree: Tree) -> None:
    """Tell of all that the models do not get."""
    cluster = tree.snapshot.cluster
    for placement in tree.placements:
        reason = tree.refusal(placement)
        if reason is not None:
            ref = _refused_ref(tree, placement) if reason is Reason.NAME_TAKEN else cluster_ref(cluster)
            draft.block(ref, reason, facts_of(tree, placement))
    for overlap in tree.membership.overlaps:
        facts = {
            **facts_of(tree, overlap.placement),
            "by": overlap.by,
            "leafNodes": list(overlap.nodes[:_NAMED]),
            "count": len(overlap.nodes),
        }
        draft.block(cluster_ref(cluster), Reason.MODELS_OVERLAP, facts)


def facts_of(tree: Tree, placement: Placement) -> Object:
    model = placement.model
    facts: Object = {"cluster": tree.snapshot.cluster.name, "model": model.title, "node": placement.name}
    if model.leaf_node:
        facts["leafNode"] = model.leaf_node
    if placement.fault:
        facts["error"] = placement.fault
    if placement.rival:
        facts["by"] = placement.rival
    elif elder := tree.membership.outranked.get(placement.name):
        facts["by"] = elder
    stranger = tree.stranger(placement.name)
    if stranger is not None:
        facts["owner"] = stranger.metadata.annotations.get(MIRRORED_CLUSTER, "")
    return facts


def _refused_ref(tree: Tree, placement: Placement) -> ObjectRef:
    stranger = tree.stranger(placement.name)
    return node_ref(placement.name, "" if stranger is None else stranger.metadata.uid)
