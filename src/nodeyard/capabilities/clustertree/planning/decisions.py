"""Explains a Cluster, a node or a pod: the rule that applied, the candidate leaf nodes, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.messages import (
    ENDINGS,
    Cordoned,
    Counted,
    CredentialsRejected,
    EditLeafModels,
    EnableTree,
    EndPause,
    FixKubeconfig,
    InOtherCluster,
    InOtherModel,
    IsLeaf,
    LabelSecret,
    LeafNodeGone,
    LeafNodeSilent,
    LeafNodesNotReady,
    Mirrors,
    MirrorsNode,
    MirrorsParty,
    MirrorsWhole,
    NameTaken,
    NodeRemoved,
    NotReady,
    NotSelected,
    Paused,
    RecordedByOperator,
    RenameNode,
    RenewCredentials,
    RestoreContact,
    RestoreKubeconfig,
    RunPodSync,
    Tainted,
    TreeMessage,
    UncordonLeafNode,
    Unreachable,
    Unreadable,
)
from nodeyard.capabilities.clustertree.planning import availability, refusals
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.models import Mode, Placement
from nodeyard.capabilities.clustertree.planning.ownership import leaf_of
from nodeyard.capabilities.clustertree.planning.refusals import PATIENCE, pod_message
from nodeyard.capabilities.clustertree.planning.removal import removal_reason
from nodeyard.capabilities.clustertree.planning.resources import free
from nodeyard.capabilities.clustertree.planning.tree import Tree
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot, Usage
from nodeyard.capabilities.clustertree.types import ConditionType
from nodeyard.kube.conditions import TRUE, find
from nodeyard.kube.objects import Condition
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Candidate, Decision, ObjectRef

_REMEDIES: Mapping[str, type[TreeMessage]] = {
    Reason.PAUSED: EndPause,
    Reason.DISABLED: EnableTree,
    Reason.NO_KUBECONFIG: FixKubeconfig,
    Reason.KUBECONFIG_REFUSED: FixKubeconfig,
    Reason.SECRET_MISSING: LabelSecret,
    Reason.INVALID_MODEL: EditLeafModels,
    Reason.MODELS_OVERLAP: EditLeafModels,
    Reason.LEAF_SHARED: EditLeafModels,
    Reason.LEAF_NODE_MISSING: EditLeafModels,
    Reason.NAME_TAKEN: RenameNode,
    Reason.NODE_REMOVED: EditLeafModels,
    Reason.NOT_CONTACTED: RestoreContact,
    Reason.NOT_SYNCED: RestoreContact,
    Reason.LEAF_CHANGED: RestoreKubeconfig,
    Reason.UNREACHABLE: RestoreContact,
    Reason.PROBE_FAILING: RestoreContact,
    Reason.CREDENTIALS_REJECTED: RenewCredentials,
    Reason.POD_UNACKNOWLEDGED: RunPodSync,
    Reason.IS_LEAF: EditLeafModels,
    Reason.MIRRORS_PARTY: EditLeafModels,
    Reason.MIRRORS_WHOLE: EditLeafModels,
    Reason.MIRRORS_NODE: EditLeafModels,
}
_MIRRORS: Mapping[Mode, type[Mirrors]] = {
    Mode.WHOLE: MirrorsWhole,
    Mode.NODE: MirrorsNode,
    Mode.PARTY: MirrorsParty,
}
_CONTACT = (ConditionType.REACHABLE, ConditionType.RESOURCES_SYNCED, ConditionType.LEASES_RENEWED)
_KNOWN = frozenset(each.value for each in Reason) - {Reason.NO_NODES}


def decide(ref: ObjectRef, tree: Tree, builder: PlanBuilder) -> Decision | None:
    """Return None if the object does not belong to this Cluster."""
    if ref.kind == names.KIND and ref.name == tree.snapshot.cluster.name:
        return _cluster(ref, tree)
    if ref.kind == "Node":
        return _node(ref, tree)
    return _pod(ref, tree.snapshot, builder) if ref.kind == "Pod" else None


def _decision(
    ref: ObjectRef, rule: TreeMessage, snapshot: TreeSnapshot, looked_at: Iterable[Candidate] = (), reason: str = ""
) -> Decision:
    """Build a decision. `reason` is that of the rule, if the message has none of its own."""
    found = tuple(looked_at)
    reason = reason or rule.reason
    remedy = _REMEDIES.get(reason)
    would_change = [] if remedy is None else [_remedy(remedy, snapshot, rule.node)]
    if any(each.reason == Reason.CORDONED for each in found):
        would_change.append(UncordonLeafNode())
    return Decision(object=ref, rule=reason, facts=rule, candidates=found, would_change=tuple(would_change))


def _remedy(kind: type[TreeMessage], snapshot: TreeSnapshot, node: str) -> TreeMessage:
    cluster = snapshot.cluster
    if kind is RestoreKubeconfig:
        return RestoreKubeconfig(cluster=cluster.name, recorded=leaf_of(cluster))
    if kind is LabelSecret:
        ref = cluster.spec.kubeconfig_secret_ref
        named = "" if ref is None else f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        return LabelSecret(cluster=cluster.name, secret=named)
    return kind(cluster=cluster.name, node=node)


# clusters


def _cluster(ref: ObjectRef, tree: Tree) -> Decision:
    snapshot = tree.snapshot
    rule, reason = _problem(snapshot)
    if rule is None:
        rule = next((refused for each in tree.placements if (refused := refusals.refusal(tree, each))), None)
    if rule is None:
        leaf, status = snapshot.leaf, snapshot.cluster.status
        leaf_nodes = len(leaf.nodes) if leaf.is_synced else status.leaf_nodes
        nodes = tuple(sorted(tree.mirrors))
        rule = IsLeaf(cluster=ref.name, version=leaf.version, nodes=nodes, leaf_nodes=leaf_nodes)
    is_ending = removal_reason(snapshot.cluster) is not None
    return _decision(ref, rule, snapshot, () if is_ending else candidates_of_cluster(tree), reason)


def _problem(snapshot: TreeSnapshot) -> tuple[TreeMessage | None, str]:
    """Return the first problem of the Cluster, and its reason if the message has none of its own."""
    cluster, health = snapshot.cluster, snapshot.leaf.health
    if cluster.is_paused:
        return Paused(cluster=cluster.name), ""
    if (why := removal_reason(cluster)) is not None:
        return ENDINGS[why](cluster=cluster.name), ""
    stood = [each for kind in _CONTACT if (each := find(cluster.status.conditions, kind)) is not None]
    if health is None and stood:
        return _recorded_by_operator(stood, cluster.name)
    if (unknown := refusals.unavailable(snapshot)) is not None:
        return unknown, ""
    return (None if health is None else refusals.contact_lost(snapshot, health)), ""


def _recorded_by_operator(stood: Iterable[Condition], cluster: str) -> tuple[TreeMessage | None, str]:
    """Return the problem in the Cluster's conditions, for a process that does not probe the leaf.

    The CLI may reach a leaf that the operator cannot reach, and vice versa.
    """
    wrong = next((each for each in stood if each.status != TRUE and each.reason in _KNOWN), None)
    if wrong is None:
        return None, ""
    since = wrong.last_transition_time
    at = "" if since is None else format_rfc3339(since)
    return RecordedByOperator(cluster=cluster, message=wrong.message, at=at), wrong.reason


# nodes


def _node(ref: ObjectRef, tree: Tree) -> Decision | None:
    mirror, placement = tree.mirrors.get(ref.name), tree.placement(ref.name)
    if mirror is None and placement is None:
        return None
    snapshot = tree.snapshot
    if (why := removal_reason(snapshot.cluster)) is not None:
        ending = ENDINGS[why](cluster=snapshot.cluster.name, node=ref.name)
        return None if mirror is None else _decision(ref, ending, snapshot)
    if placement is None:
        removed = NodeRemoved(cluster=snapshot.cluster.name, node=ref.name, is_pending=True)
        return _decision(ref, removed, snapshot)
    refused = refusals.refusal(tree, placement)
    looked_at = () if isinstance(refused, NameTaken) else candidates_of_node(tree, placement)
    rule = refused or _node_rule(tree, mirror, placement)
    if isinstance(rule, Mirrors) and snapshot.cluster.is_paused:
        rule = Paused(cluster=snapshot.cluster.name, node=ref.name)
    return _decision(ref, rule, snapshot, looked_at)


def _node_rule(tree: Tree, mirror: TreeNode | None, placement: Placement) -> TreeMessage:
    """Return the problem in the node's Ready condition, or what the node mirrors."""
    cluster, node = tree.snapshot.cluster.name, placement.name
    ready = None if mirror is None else mirror.condition(READY)
    match None if ready is None else ready.reason:
        case Reason.UNREACHABLE | Reason.CREDENTIALS_REJECTED as reason:
            health = tree.snapshot.leaf.health
            lost = None if health is None else refusals.contact_lost(tree.snapshot, health)
            if lost is not None and lost.reason == reason:
                return msgspec.structs.replace(lost, node=node)
            return (Unreachable if reason == Reason.UNREACHABLE else CredentialsRejected)(cluster=cluster, node=node)
        case Reason.LEAF_CHANGED:
            return msgspec.structs.replace(refusals.leaf_changed(tree.snapshot), node=node)
        case Reason.LEAF_NODE_SILENT:
            return LeafNodeSilent(cluster=cluster, node=node)
        case Reason.LEAF_NODE_GONE:
            return LeafNodeGone(cluster=cluster, node=node)
        case Reason.LEAF_NODES_NOT_READY:
            return LeafNodesNotReady(cluster=cluster, node=node, is_empty=not tree.membership.of(placement))
    return _MIRRORS[placement.model.mode](
        cluster=cluster,
        node=node,
        model=placement.model.title,
        leaf_node=placement.model.leaf_node,
        allocatable=None if mirror is None else dict(mirror.status.allocatable),
    )


# pods


def _pod(ref: ObjectRef, snapshot: TreeSnapshot, builder: PlanBuilder) -> Decision | None:
    """Explain a pending pod; an acknowledged pod is not the concern of clustertree."""
    for pod in snapshot.pending_pods:
        if (pod.namespace, pod.name) == (ref.namespace, ref.name):
            is_early = pod.since + PATIENCE > builder.now
            return _decision(ref, pod_message(pod, snapshot, is_early=is_early), snapshot)
    return None


def candidates_of_cluster(tree: Tree) -> Iterator[Candidate]:
    """List every leaf node with the root's node that it counts for."""
    for node in tree.snapshot.leaf.nodes.values():
        holder = tree.membership.holders.get(node.name)
        refused = None if holder is None else refusals.refusal(tree, holder)
        if earlier := tree.taken.by.get(node.name):
            yield Candidate.of(node.name, InOtherCluster(by=earlier))
        elif holder is None:
            yield Candidate.of(node.name, NotSelected(cluster=tree.snapshot.cluster.name))
        elif refused is not None:
            yield Candidate.of(node.name, refused)
        else:
            yield _counted(tree, node, holder)


def candidates_of_node(tree: Tree, placement: Placement) -> Iterator[Candidate]:
    """List every leaf node as this model sees it. A model that names its leaf node considers no others."""
    nodes = tree.snapshot.leaf.nodes.values()
    for node in tree.membership.of(placement) if placement.model.mode is Mode.NODE else nodes:
        holder = tree.membership.holders.get(node.name)
        if holder is placement:
            yield _counted(tree, node, placement)
            continue
        model = placement.model
        if earlier := tree.taken.by.get(node.name):
            yield Candidate.of(node.name, InOtherCluster(by=earlier))
        elif holder is not None and model.selector.matches(node.metadata.labels):
            other = InOtherModel(model=model.title, by=holder.model.title, other=holder.name)
            yield Candidate.of(node.name, other)
        else:
            yield Candidate.of(node.name, NotSelected(node=placement.name, model=model.title))


def _counted(tree: Tree, node: TreeNode, placement: Placement) -> Candidate:
    options = tree.snapshot.cluster.tree.resources
    usage = tree.snapshot.leaf.usage(node.name)
    message = _not_counted(node, placement.name, usage, availability.reason(node, options, usage))
    if message is None:
        free_now = dict(free((node,), tree.snapshot.leaf.usage, options).allocatable)
        message = Counted(node=placement.name, has=dict(node.status.allocatable), free=free_now)
    return Candidate.of(node.name, message, is_taken=isinstance(message, Counted))


def _not_counted(node: TreeNode, mirror: str, usage: Usage, reason: Reason) -> TreeMessage | None:
    """Return why a leaf node adds nothing; None if it counts."""
    has = dict(node.status.allocatable)
    match reason:
        case Reason.NOT_READY:
            ready = node.condition(availability.READY)
            if ready is None:
                return NotReady(node=mirror, has=has)
            return NotReady(node=mirror, has=has, status=ready.status, ready_reason=ready.reason)
        case Reason.CORDONED:
            return Cordoned(node=mirror, has=has)
        case Reason.TAINTED:
            taints = tuple(f"{each.key}:{each.effect}" for each in node.spec.taints)
            return Tainted(node=mirror, has=has, taints=taints)
        case Reason.UNREADABLE:
            return Unreadable(node=mirror, has=has, error=availability.fault(node, usage))
    return None
