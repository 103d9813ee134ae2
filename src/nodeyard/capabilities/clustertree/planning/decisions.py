"""Why a Cluster, a node or a pod is as it is: the rule that applied, the leaf nodes looked at, what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.liveness import State
from nodeyard.capabilities.clustertree.planning import candidates, refusals
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.pods import PATIENCE, pod_facts
from nodeyard.capabilities.clustertree.planning.removal import ending
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.kube.json import Object
from nodeyard.kube.moments import written
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Candidate, Decision, ObjectRef

_CHANGES: Mapping[Reason, tuple[Reason, ...]] = {
    Reason.PAUSED: (Reason.END_PAUSE,),
    Reason.DISABLED: (Reason.ENABLE_TREE,),
    Reason.NO_KUBECONFIG: (Reason.MEND_CLUSTER,),
    Reason.KUBECONFIG_REFUSED: (Reason.MEND_CLUSTER,),
    Reason.SECRET_MISSING: (Reason.LABEL_SECRET,),
    Reason.INVALID_MODEL: (Reason.EDIT_LEAF_MODELS,),
    Reason.MODELS_OVERLAP: (Reason.EDIT_LEAF_MODELS,),
    Reason.LEAF_SHARED: (Reason.EDIT_LEAF_MODELS,),
    Reason.LEAF_NODE_MISSING: (Reason.EDIT_LEAF_MODELS,),
    Reason.NAME_TAKEN: (Reason.RENAME_NODE,),
    Reason.NODE_REMOVED: (Reason.EDIT_LEAF_MODELS,),
    Reason.NOT_CONTACTED: (Reason.RESTORE_CONTACT,),
    Reason.NOT_SYNCED: (Reason.RESTORE_CONTACT,),
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
_LINE = (Reason.UNREACHABLE, Reason.CREDENTIALS_REJECTED)
_STANDINGS: Mapping[str, Reason] = {
    each.value: each for each in (*_LINE, Reason.LEAF_NODE_SILENT, Reason.LEAF_NODE_GONE, Reason.LEAF_NODES_NOT_READY)
}
"""What our own Ready condition says where not all is well."""


def decide(ref: ObjectRef, tree: Tree, draft: Draft) -> Decision | None:
    """None where the object has nothing to do with this Cluster."""
    if ref.kind == names.KIND and ref.name == tree.snapshot.cluster.name:
        return _cluster(ref, tree)
    if ref.kind == "Node":
        return _node(ref, tree)
    return _pod(ref, tree.snapshot, draft) if ref.kind == "Pod" else None


def _decision(ref: ObjectRef, rule: Reason, facts: Object, looked_at: Iterable[Candidate] = ()) -> Decision:
    found = tuple(looked_at)
    changes = list(_CHANGES.get(rule, ()))
    if any(each.reason == Reason.CORDONED for each in found):
        changes.append(Reason.UNCORDON_LEAF_NODE)
    would_change = tuple(each.value for each in changes)
    return Decision(object=ref, rule=rule.value, facts=facts, candidates=found, would_change=would_change)


# clusters


def _cluster(ref: ObjectRef, tree: Tree) -> Decision:
    rule, facts = _standing(tree.snapshot)
    shown: Object = {"nodes": sorted(tree.mirrors), "leafNodes": len(tree.snapshot.leaf.nodes), **facts}
    refused = next((each for each in tree.placements if tree.refusal(each) is not None), None)
    if rule is Reason.IS_LEAF and refused is not None:
        rule, shown = tree.refusal(refused) or rule, {**shown, **refusals.facts_of(tree, refused)}
    is_ending = ending(tree.snapshot.cluster) is not None
    return _decision(ref, rule, shown, () if is_ending else candidates.of_cluster(tree))


def _standing(snapshot: TreeSnapshot) -> tuple[Reason, Object]:
    """What is first in the Cluster's way, or that nothing is."""
    cluster, leaf = snapshot.cluster, snapshot.leaf
    facts: Object = {"cluster": cluster.name}
    if cluster.is_paused:
        return Reason.PAUSED, facts
    if (why := ending(cluster)) is not None:
        return why, facts
    if (unknown := refusals.out_of_touch(snapshot)) is not None:
        return unknown
    finding = leaf.finding
    if finding is None or finding.state is State.ALIVE:
        return Reason.IS_LEAF, {**facts, "version": leaf.version}
    facts |= _line(snapshot)
    if finding.is_rejected:
        return Reason.CREDENTIALS_REJECTED, facts
    return (Reason.UNREACHABLE if finding.state is State.UNREACHABLE else Reason.PROBE_FAILING), facts


def _line(snapshot: TreeSnapshot) -> Object:
    """What was last met on the way to the leaf."""
    finding = snapshot.leaf.finding
    if finding is None:
        return {}
    facts: Object = {"error": finding.message, "since": written(finding.since)}
    return facts if finding.last_contact is None else {**facts, "lastContact": written(finding.last_contact)}


# nodes


def _node(ref: ObjectRef, tree: Tree) -> Decision | None:
    mirror, placement = tree.mirrors.get(ref.name), tree.placement(ref.name)
    if mirror is None and placement is None:
        return None
    cluster = tree.snapshot.cluster
    facts: Object = {"cluster": cluster.name, "node": ref.name}
    if (why := ending(cluster)) is not None:
        return None if mirror is None else _decision(ref, why, facts)
    if placement is None:
        return _decision(ref, Reason.NODE_REMOVED, facts)
    facts |= refusals.facts_of(tree, placement)
    refusal = tree.refusal(placement)
    rule = refusal or _node_rule(mirror, placement)
    if mirror is not None:
        facts |= _shown(mirror)
    if rule in _LINE:
        facts |= _line(tree.snapshot)
    looked_at = () if refusal is Reason.NAME_TAKEN else candidates.of_node(tree, placement)
    return _decision(ref, rule, facts, looked_at)


def _node_rule(mirror: TreeNode | None, placement: Placement) -> Reason:
    ready = None if mirror is None else mirror.condition(READY)
    standing = None if ready is None else _STANDINGS.get(ready.reason)
    return standing or _MIRRORS[placement.model.mode]


def _shown(mirror: TreeNode) -> Object:
    facts: Object = {"allocatable": dict(mirror.status.allocatable)}
    ready = mirror.condition(READY)
    if ready is not None:
        facts |= {"status": ready.status, "why": ready.reason, "said": ready.message}
    return facts


# pods


def _pod(ref: ObjectRef, snapshot: TreeSnapshot, draft: Draft) -> Decision | None:
    """Of one that waits; one that was taken up is the business of who took it up."""
    for pod in snapshot.waiting:
        if (pod.namespace, pod.name) == (ref.namespace, ref.name):
            is_early = pod.since + PATIENCE > draft.now
            return _decision(ref, Reason.POD_UNACKNOWLEDGED, {**pod_facts(pod, snapshot), "isEarly": is_early})
    return None
