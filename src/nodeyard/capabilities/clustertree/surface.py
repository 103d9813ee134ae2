"""Leaves on the dashboard: mirrored nodes with their free share, contact, resources and leases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.collect import collect
from nodeyard.capabilities.clustertree.leases.liveness import State
from nodeyard.capabilities.clustertree.planning.availability import READY
from nodeyard.capabilities.clustertree.planning.heartbeat import was_silent
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, is_mirror_of, is_terminating, node_ref
from nodeyard.capabilities.clustertree.planning.refusals import refusal
from nodeyard.capabilities.clustertree.planning.removal import removal_reason
from nodeyard.capabilities.clustertree.planning.resources import Balance, balances
from nodeyard.capabilities.clustertree.planning.tree import Tree, resolve
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.report.status import REFUSALS, reachable
from nodeyard.capabilities.clustertree.snapshot import TreeNode, TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster, ConditionType
from nodeyard.capabilities.clustertree.watched import CLUSTER, mirrored_cluster
from nodeyard.kube.conditions import FALSE, TRUE, find
from nodeyard.kube.names import PAUSED
from nodeyard.kube.objects import Condition
from nodeyard.kube.quantity import NANO
from nodeyard.kube.resource_list import EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY
from nodeyard.kube.timestamps import parse_rfc3339_or_none
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import View, WatchNotSynced
from nodeyard.runtime.surface import (
    Attention,
    Blocker,
    Contact,
    Leaf,
    LeafResource,
    Places,
    Remedy,
    Rollout,
    Severity,
    Surface,
    Tile,
    TileState,
    patch_command,
    rungs,
)

_ALWAYS: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""For a memo whose state has all causes of its value: it does not age."""
_LOST: Final = frozenset({Reason.UNREACHABLE.value, Reason.CREDENTIALS_REJECTED.value})
_UNKNOWN: Final = "Unknown"
_NOTHING: Final = Condition(type="")


# tiles


def tile(view: View, name: str) -> Tile | None:
    node: TreeNode | None = view.get("Node", name)
    leaf = "" if node is None else mirrored_cluster(node)
    if node is None or not is_mirror_of(node, leaf):
        return None
    return Tile(
        state=TileState.MIRRORED,
        since=node.metadata.creation_timestamp,
        leaf=leaf,
        hue=leaf,
        free=_free_share(view, leaf, name),
    )


def _free_share(view: View, name: str, node: str) -> float | None:
    """Return the smallest free share of the node's resources; None before the leaf is listed."""
    cluster: Cluster | None = view.get(CLUSTER, name)
    there = view.cluster(name)
    if cluster is None or not (there.is_synced("Node") and there.is_synced("Pod")):
        return None
    nodes: Sequence[TreeNode] = there.all("Node")
    versions = tuple(each.metadata.resource_version for each in nodes)

    def members() -> Mapping[str, tuple[TreeNode, ...]]:
        snapshot = collect(view, name, _ALWAYS)
        return {} if snapshot is None else resolve(snapshot).membership.members

    try:
        # Shared by the nodes of a leaf: models may be many.
        found = view.memo(("members", name), (cluster.metadata.resource_version, versions), _ALWAYS, members)
    except WatchNotSynced:
        return None
    balance = balances(found.get(node, ()), lambda each: there.aggregate(names.USED, each), cluster.tree.resources)
    return min((each.free / each.base for each in balance.values() if each.base > 0), default=0.0)


# attention


def attention(view: View, _now: datetime) -> Iterator[Attention]:
    clusters: Sequence[Cluster] = view.all(CLUSTER)
    for cluster in clusters:
        nodes: Sequence[TreeNode] = view.indexed("Node", names.BY_CLUSTER, cluster.name)
        yield from _silent_leaf(cluster, len(nodes))
        for node in nodes:
            if was_silent(node):
                yield _silent_node(cluster, node)


def _silent_leaf(cluster: Cluster, nodes: int) -> Iterator[Attention]:
    lost = find(cluster.status.conditions, ConditionType.REACHABLE)
    ready = find(cluster.status.conditions, ConditionType.READY)
    link = {"view": "places", "leaf": cluster.name}
    if lost is not None and lost.status == FALSE and lost.reason in _LOST:
        severity = Severity.CRITICAL if nodes else Severity.WARNING
        yield _attention("SilentLeaf", cluster_ref(cluster), lost, severity, link)
    elif ready is not None and ready.status == FALSE and _is_refused(ready):
        yield _attention("Refused", cluster_ref(cluster), ready, Severity.WARNING, link)


def _is_refused(ready: Condition) -> bool:
    return ready.reason in REFUSALS and ready.reason != EngineReason.NEEDS_APPROVAL


def _silent_node(cluster: Cluster, node: TreeNode) -> Attention:
    ready = node.condition(READY) or _NOTHING
    ref, link = node_ref(node.name, node.metadata.uid), {"view": "yard", "group": "leaf", "leaf": cluster.name}
    return _attention("SilentLeaf", ref, ready, Severity.WARNING, link)


def _attention(
    kind: str, object: ObjectRef, condition: Condition, severity: Severity, link: dict[str, str]
) -> Attention:
    return Attention(
        kind=kind,
        severity=severity,
        object=object,
        reason=condition.reason,
        message=condition.message,
        since=condition.last_transition_time,
        link=link,
    )


# rollouts


def rollouts(view: View, now: datetime) -> Iterator[Rollout]:
    for snapshot in _snapshots(view, now):
        cluster = snapshot.cluster
        tree = resolve(snapshot)
        present = [name for name, node in tree.mirrors.items() if not is_terminating(node)]
        if (ending := removal_reason(cluster)) is not None:
            if present:
                yield _leaving(cluster, len(present), ending.value)
            continue
        wanted = {each.name for each in tree.placements if not each.rival}
        done = len(wanted.intersection(present))
        if done < len(wanted) or len(present) > done:
            yield _coming(tree, done, len(wanted), len(present) - done)


def _leaving(cluster: Cluster, left: int, reason: str) -> Rollout:
    ready = find(cluster.status.conditions, ConditionType.READY) or _NOTHING
    total = max(left, cluster.status.nodes)
    return Rollout(
        capability=names.CAPABILITY,
        kind="Leaf",
        object=cluster_ref(cluster),
        done=total - left,
        total=total,
        state=reason,
        next=f"{counted(left, 'mirrored node')} and the leases are removed.",
        message=ready.message,
        since=cluster.metadata.deletion_timestamp or ready.last_transition_time,
        blockers=_held(cluster, ready),
    )


def _coming(tree: Tree, done: int, total: int, surplus: int) -> Rollout:
    cluster = tree.snapshot.cluster
    ready = find(cluster.status.conditions, ConditionType.READY) or _NOTHING
    steps = [
        *([f"{counted(total - done, 'node')} created"] if done < total else []),
        *([f"{counted(surplus, 'node')} removed"] if surplus else []),
    ]
    refused = [message for each in tree.placements if (message := refusal(tree, each)) is not None]
    blockers = [
        Blocker(
            object=node_ref(message.node) if message.reason == Reason.NAME_TAKEN else cluster_ref(cluster),
            reason=message.reason,
            message=message.text(),
            since=ready.last_transition_time if ready.reason == message.reason else None,
            ways_out=(f"nodeyard why leaf/{cluster.name}", "Change spec.clusterTreeOptions.leafModels."),
        )
        for message in refused
    ]
    return Rollout(
        capability=names.CAPABILITY,
        kind="Leaf",
        object=cluster_ref(cluster),
        done=done,
        total=total,
        state=ready.reason or _UNKNOWN,
        next=f"{' and '.join(steps)}.".capitalize(),
        message=ready.message,
        since=ready.last_transition_time if ready.status != TRUE else None,
        blockers=(*_held(cluster, ready), *blockers),
    )


def _held(cluster: Cluster, ready: Condition) -> tuple[Blocker, ...]:
    if ready.reason != EngineReason.NEEDS_APPROVAL:
        return ()
    held = Blocker(
        object=cluster_ref(cluster),
        reason=ready.reason,
        message=ready.message,
        since=ready.last_transition_time,
        ways_out=("nodeyard plan",),
    )
    return (held,)


# places


def places(view: View, now: datetime) -> Places:
    return Places(leaves=tuple(_leaf(snapshot, now) for snapshot in _snapshots(view, now)))


def _snapshots(view: View, now: datetime) -> Iterator[TreeSnapshot]:
    """Yield the Clusters whose kubeconfig could be read; the root is no leaf of itself."""
    clusters: Sequence[Cluster] = view.all(CLUSTER)
    for cluster in clusters:
        try:
            snapshot = None if cluster.is_root else collect(view, cluster.name, now)
        except WatchNotSynced:
            continue
        if snapshot is not None:
            yield snapshot


def _leaf(snapshot: TreeSnapshot, now: datetime) -> Leaf:
    leaf, cluster = snapshot.leaf, snapshot.cluster
    members = (node for nodes in resolve(snapshot).membership.members.values() for node in nodes)
    balance = balances(members, leaf.usage, cluster.tree.resources) if leaf.is_synced else {}
    renewed = None if leaf.health is None else leaf.health.renewed_at
    renewed = renewed or parse_rfc3339_or_none(cluster.status.leases_renewed_time)
    return Leaf(
        name=cluster.name,
        capability=names.CAPABILITY,
        contact=_contact(snapshot),
        resources=tuple(_resource(name, each) for name, each in balance.items() if each.base),
        lease_age_seconds=None if renewed is None else float(max(0, round((now - renewed).total_seconds()))),
    )


def _resource(name: str, balance: Balance) -> LeafResource:
    is_bytes = name in (MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGE_PAGES)
    return LeafResource(
        resource=name,
        base=balance.base / NANO,
        taken=balance.taken / NANO,
        reserved=balance.reserved / NANO,
        free=balance.free / NANO,
        unit="bytes" if is_bytes else "",
    )


def _contact(snapshot: TreeSnapshot) -> Contact:
    """Return the contact as the lease loop sees it, otherwise as the status has it."""
    found, shown = reachable(snapshot), find(snapshot.cluster.status.conditions, ConditionType.REACHABLE)
    health = snapshot.leaf.health
    if health is not None and health.state is not State.FAILING:
        return Contact(state=found.reason, message=found.message.text(), since=health.since)
    if shown is not None and (found.is_early or health is None):
        return Contact(state=shown.reason, message=shown.message, since=shown.last_transition_time)
    return Contact(state=found.reason, message=found.message.text(), since=None if health is None else health.since)


# why

LADDERS: Final = {
    names.KIND: rungs(
        (Reason.PAUSED, "It is paused"),
        (Reason.DELETING, "It is being deleted"),
        (Reason.IS_ROOT, "It is the root itself"),
        (Reason.DISABLED, "Mirroring is switched off"),
        (Reason.SECRET_MISSING, "The Secret with its kubeconfig is missing"),
        (Reason.KUBECONFIG_REFUSED, "Its kubeconfig cannot be used"),
        (Reason.NO_KUBECONFIG, "It has no kubeconfig"),
        (Reason.LEAF_CHANGED, "Its server is another cluster than before"),
        (Reason.TOO_LARGE, "The leaf is too large for the cache"),
        (Reason.NOT_SYNCED, "The leaf has not been listed yet"),
        (Reason.NOT_CONTACTED, "The leaf has not been reached yet"),
        (Reason.CREDENTIALS_REJECTED, "The leaf rejects the credentials"),
        (Reason.UNREACHABLE, "The leaf does not respond"),
        (Reason.PROBE_FAILING, "The last probes of the leaf failed"),
        (Reason.INVALID_MODEL, "A leaf model is invalid"),
        (Reason.MODELS_OVERLAP, "Two leaf models have the same node"),
        (Reason.NAME_TAKEN, "A node of the root has the name already"),
        (Reason.LEAF_SHARED, "An earlier Cluster mirrors the leaf"),
        (Reason.LEAF_NODE_MISSING, "A leaf node does not exist"),
        (Reason.IS_LEAF, "It is mirrored"),
    ),
}


def remedies(_view: View, decision: Decision) -> list[Remedy]:
    """Return what would change a decision, with the command if its values are known."""
    return [Remedy(message=each.text(), command=_command(decision.object, each)) for each in decision.would_change]


def _command(ref: ObjectRef, remedy: Message) -> str:
    cluster = ref.name if ref.kind == names.KIND else getattr(remedy, "cluster", "")
    plural, reason = f"{names.PLURAL}.{names.GROUP}", remedy.reason if cluster else ""
    match reason:
        case Reason.END_PAUSE:
            return f"kubectl annotate {plural} {cluster} {PAUSED}-"
        case Reason.ENABLE_TREE:
            return patch_command(plural, cluster, {"spec": {"clusterTreeOptions": {"enable": True}}})
        case Reason.EDIT_LEAF_MODELS:
            return f"kubectl edit {plural} {cluster}"
    return ""


SURFACE: Final = Surface(
    tile=tile,
    attention=attention,
    rollouts=rollouts,
    places=places,
    ladders=LADDERS,
    remedies=remedies,
)
