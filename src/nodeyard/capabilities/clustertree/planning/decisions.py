"""Explains a Cluster, a node or a pod: the rule that applied, the candidate leaf nodes, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.liveness import State
from nodeyard.capabilities.clustertree.planning import candidates, refusals
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.pods import PATIENCE, pod_facts
from nodeyard.capabilities.clustertree.planning.removal import removal_reason
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import ConditionType
from nodeyard.kube.conditions import TRUE, find
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Candidate, Decision, ObjectRef

_CHANGES: Mapping[Reason, tuple[Reason, ...]] = {
    Reason.PAUSED: (Reason.END_PAUSE,),
    Reason.DISABLED: (Reason.ENABLE_TREE,),
    Reason.NO_KUBECONFIG: (Reason.FIX_KUBECONFIG,),
    Reason.KUBECONFIG_REFUSED: (Reason.FIX_KUBECONFIG,),
    Reason.SECRET_MISSING: (Reason.LABEL_SECRET,),
    Reason.INVALID_MODEL: (Reason.EDIT_LEAF_MODELS,),
    Reason.MODELS_OVERLAP: (Reason.EDIT_LEAF_MODELS,),
    Reason.LEAF_SHARED: (Reason.EDIT_LEAF_MODELS,),
    Reason.LEAF_NODE_MISSING: (Reason.EDIT_LEAF_MODELS,),
    Reason.NAME_TAKEN: (Reason.RENAME_NODE,),
    Reason.NODE_REMOVED: (Reason.EDIT_LEAF_MODELS,),
    Reason.NOT_CONTACTED: (Reason.RESTORE_CONTACT,),
    Reason.NOT_SYNCED: (Reason.RESTORE_CONTACT,),
    Reason.LEAF_CHANGED: (Reason.RESTORE_KUBECONFIG,),
    Reason.UNREACHABLE: (Reason.RESTORE_CONTACT,),
    Reason.PROBE_FAILING: (Reason.RESTORE_CONTACT,),
    Reason.CREDENTIALS_REJECTED: (Reason.RENEW_CREDENTIALS,),
    Reason.POD_UNACKNOWLEDGED: (Reason.SYNC_PODS,),
    Reason.IS_LEAF: (Reason.EDIT_LEAF_MODELS,),
    Reason.MIRRORS_PARTY: (Reason.EDIT_LEAF_MODELS,),
    Reason.MIRRORS_WHOLE: (Reason.EDIT_LEAF_MODELS,),
    Reason.MIRRORS_NODE: (Reason.EDIT_LEAF_MODELS,),
}
_MIRRORS: Mapping[Mode, Reason] = {
    Mode.WHOLE: Reason.MIRRORS_WHOLE,
    Mode.NODE: Reason.MIRRORS_NODE,
    Mode.PARTY: Reason.MIRRORS_PARTY,
}
_CONTACT = (ConditionType.REACHABLE, ConditionType.RESOURCES_SYNCED, ConditionType.LEASES_RENEWED)
_KNOWN = frozenset(each.value for each in Reason) - {Reason.NO_NODES}
_LOST = (Reason.UNREACHABLE, Reason.CREDENTIALS_REJECTED, Reason.LEAF_CHANGED)
_NODE_RULES: Mapping[str, Reason] = {
    each.value: each for each in (*_LOST, Reason.LEAF_NODE_SILENT, Reason.LEAF_NODE_GONE, Reason.LEAF_NODES_NOT_READY)
}
"""Reasons of a mirror's Ready condition that are problems, as rules."""


def decide(ref: ObjectRef, tree: Tree, builder: PlanBuilder) -> Decision | None:
    """Return None if the object does not belong to this Cluster."""
    if ref.kind == names.KIND and ref.name == tree.snapshot.cluster.name:
        return _cluster(ref, tree)
    if ref.kind == "Node":
        return _node(ref, tree)
    return _pod(ref, tree.snapshot, builder) if ref.kind == "Pod" else None


def _decision(ref: ObjectRef, rule: Reason, facts: Object, looked_at: Iterable[Candidate] = ()) -> Decision:
    found = tuple(looked_at)
    changes = list(_CHANGES.get(rule, ()))
    if any(each.reason == Reason.CORDONED for each in found):
        changes.append(Reason.UNCORDON_LEAF_NODE)
    would_change = tuple(each.value for each in changes)
    return Decision(object=ref, rule=rule.value, facts=facts, candidates=found, would_change=would_change)


# clusters


def _cluster(ref: ObjectRef, tree: Tree) -> Decision:
    rule, facts = _cluster_rule(tree.snapshot)
    leaf, status = tree.snapshot.leaf, tree.snapshot.cluster.status
    leaf_nodes = len(leaf.nodes) if leaf.is_synced else status.leaf_nodes
    shown: Object = {"nodes": sorted(tree.mirrors), "leafNodes": leaf_nodes, **facts}
    refused = next((each for each in tree.placements if tree.refusal(each) is not None), None)
    if rule is Reason.IS_LEAF and refused is not None:
        rule, shown = tree.refusal(refused) or rule, {**shown, **refusals.facts_of(tree, refused)}
    is_ending = removal_reason(tree.snapshot.cluster) is not None
    return _decision(ref, rule, shown, () if is_ending else candidates.of_cluster(tree))


def _cluster_rule(snapshot: TreeSnapshot) -> tuple[Reason, Object]:
    """Return the first problem of the Cluster, or IS_LEAF."""
    cluster, leaf = snapshot.cluster, snapshot.leaf
    facts: Object = {"cluster": cluster.name}
    if cluster.is_paused:
        return Reason.PAUSED, facts
    if (why := removal_reason(cluster)) is not None:
        return why, facts
    if leaf.health is None and (recorded := _recorded_by_operator(snapshot)) is not None:
        return recorded
    if (unknown := refusals.unavailable_reason(snapshot)) is not None:
        return unknown
    health = leaf.health
    if health is None or health.state is State.ALIVE:
        return Reason.IS_LEAF, {**facts, "version": leaf.version}
    facts |= _contact_facts(snapshot)
    if health.is_rejected:
        return Reason.CREDENTIALS_REJECTED, facts
    return (Reason.UNREACHABLE if health.state is State.UNREACHABLE else Reason.PROBE_FAILING), facts


def _secret(snapshot: TreeSnapshot) -> Object:
    """The Secret that advice names."""
    ref = snapshot.cluster.spec.kubeconfig_secret_ref
    return {} if ref is None else {"secret": f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name}


def _recorded_by_operator(snapshot: TreeSnapshot) -> tuple[Reason, Object] | None:
    """Return the problem in the Cluster's conditions, for a process that does not probe the leaf; None without
    conditions.

        The CLI may reach a leaf that the operator cannot reach, and vice versa.
    """
    facts: Object = {"cluster": snapshot.cluster.name}
    stood = snapshot.cluster.status.conditions
    said = [each for kind in _CONTACT if (each := find(stood, kind)) is not None]
    if not said:
        return None
    wrong = next((each for each in said if each.status != TRUE and each.reason in _KNOWN), None)
    if wrong is None:
        return Reason.IS_LEAF, {**facts, "version": snapshot.leaf.version}
    since = wrong.last_transition_time
    return Reason(wrong.reason), {
        **facts,
        "operator": wrong.message,
        "operatorReason": wrong.reason,
        **_secret(snapshot),
        **({} if since is None else {"at": format_rfc3339(since)}),
    }


def _contact_facts(snapshot: TreeSnapshot) -> Object:
    """Facts of the last probe."""
    health = snapshot.leaf.health
    if health is None:
        return {}
    facts: Object = {"error": health.message, "since": format_rfc3339(health.since)}
    return facts if health.last_contact is None else {**facts, "lastContact": format_rfc3339(health.last_contact)}


# nodes


def _node(ref: ObjectRef, tree: Tree) -> Decision | None:
    mirror, placement = tree.mirrors.get(ref.name), tree.placement(ref.name)
    if mirror is None and placement is None:
        return None
    cluster = tree.snapshot.cluster
    facts: Object = {"cluster": cluster.name, "node": ref.name}
    if (why := removal_reason(cluster)) is not None:
        return None if mirror is None else _decision(ref, why, facts)
    if placement is None:
        return _decision(ref, Reason.NODE_REMOVED, {**facts, "isPending": True})
    facts |= refusals.facts_of(tree, placement)
    refusal = tree.refusal(placement)
    rule = refusal or _node_rule(mirror, placement)
    if mirror is not None:
        facts |= _shown(mirror)
    if rule in _LOST:
        facts |= _contact_facts(tree.snapshot)
    looked_at = () if refusal is Reason.NAME_TAKEN else candidates.of_node(tree, placement)
    return _decision(ref, rule, facts, looked_at)


def _node_rule(mirror: TreeNode | None, placement: Placement) -> Reason:
    ready = None if mirror is None else mirror.condition(READY)
    rule = None if ready is None else _NODE_RULES.get(ready.reason)
    return rule or _MIRRORS[placement.model.mode]


def _shown(mirror: TreeNode) -> Object:
    facts: Object = {"allocatable": dict(mirror.status.allocatable)}
    ready = mirror.condition(READY)
    if ready is not None:
        facts |= {"status": ready.status, "why": ready.reason, "said": ready.message}
    return facts


# pods


def _pod(ref: ObjectRef, snapshot: TreeSnapshot, builder: PlanBuilder) -> Decision | None:
    """Explain a pending pod; an acknowledged pod is not the concern of clustertree."""
    for pod in snapshot.pending_pods:
        if (pod.namespace, pod.name) == (ref.namespace, ref.name):
            is_early = pod.since + PATIENCE > builder.now
            return _decision(ref, Reason.POD_UNACKNOWLEDGED, {**pod_facts(pod, snapshot), "isEarly": is_early})
    return None
