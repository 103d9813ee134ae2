"""Computes the status of a Cluster from the snapshot, the plan and its outcome.

The status is stable while nothing happens, except for `leasesRenewedTime`, which is updated once a minute. It contains
no ages. A single failed probe does not change it; conditions wait until the leaf is unreachable or responds again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.leases.liveness import LeafHealth, State
from nodeyard.capabilities.clustertree.messages import (
    ENDINGS,
    LeasesLate,
    LeasesRenewed,
    LeasesStopped,
    ModelsOverlap,
    NodesPending,
    NoNodes,
    NotContacted,
    NotSynced,
    Paused,
    ProbeFailing,
    Reachable,
    Stale,
    Synced,
    UnreadableAmounts,
    WriteFailed,
)
from nodeyard.capabilities.clustertree.planning import availability
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, is_terminating, mirrors_of
from nodeyard.capabilities.clustertree.planning.refusals import contact_lost, unavailable
from nodeyard.capabilities.clustertree.planning.removal import removal_reason
from nodeyard.capabilities.clustertree.planning.renewals import shown_renewal
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import TreeSnapshot
from nodeyard.capabilities.clustertree.types import (
    ClusterStatus,
    ClusterTreeStatus,
    ConditionType,
    LeafNodeItem,
)
from nodeyard.kube.conditions import FALSE, TRUE, UNKNOWN, find, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import StatusWrite

REFUSALS: Final[frozenset[str]] = frozenset(
    {
        EngineReason.NEEDS_APPROVAL,
        Reason.NO_KUBECONFIG,
        Reason.KUBECONFIG_REFUSED,
        Reason.SECRET_MISSING,
        Reason.INVALID_MODEL,
        Reason.NAME_TAKEN,
        Reason.LEAF_NODE_MISSING,
        Reason.LEAF_SHARED,
        Reason.LEAF_CHANGED,
        Reason.TOO_LARGE,
    }
)
"""Reasons that keep a Cluster from having the nodes in its leafModels."""
FAILURES: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


class ConditionOutcome(NamedTuple):
    status: str
    message: Message
    is_early: bool = False
    """Too little is known yet: keep the present condition, if there is one."""

    @property
    def reason(self) -> str:
        return self.message.reason


def status(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if any(action.reason == Reason.FINALIZER_REMOVED for action in plan.actions) and snapshot.cluster.is_deleting:
        return ()
    after = wire(_status_of(snapshot, plan, outcome, now))
    if after == wire(snapshot.cluster.status):
        return ()
    return [StatusWrite(object=cluster_ref(snapshot.cluster), status=after)]


def _status_of(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> ClusterStatus:
    before, leaf = snapshot.cluster.status, snapshot.leaf
    nodes = nodes_after(snapshot, outcome)
    renewed = _leases_renewed_time(snapshot, nodes, now)
    return ClusterStatus(
        cluster_link_status=before.cluster_link_status,
        cluster_tree_status=ClusterTreeStatus(
            leaf_node_items=tuple(LeafNodeItem(leaf_node_name=each) for each in nodes)
        ),
        observed_generation=snapshot.cluster.metadata.generation,
        nodes=len(nodes),
        leaf_nodes=len(leaf.nodes) if leaf.is_synced else before.leaf_nodes,
        unacknowledged_pods=sum(1 for each in plan.blocked if each.reason == Reason.POD_UNACKNOWLEDGED),
        last_contact_time=_last_contact(leaf.health, before.last_contact_time),
        leases_renewed_time=renewed,
        conditions=_conditions(snapshot, plan, outcome, _leases_renewed(snapshot, nodes, renewed), now),
    )


def nodes_after(snapshot: TreeSnapshot, outcome: Outcome) -> list[str]:
    """The nodes of the Cluster after this reconcile."""
    nodes = {
        name for name, node in mirrors_of(snapshot.mirrors, snapshot.cluster.name).items() if not is_terminating(node)
    }
    for each in outcome.results:
        if each.result is Result.DONE and each.action.reason == Reason.NODE_CREATED:
            nodes.add(each.action.object.name)
        elif each.result is Result.DONE and each.action.reason == Reason.NODE_REMOVED:
            nodes.discard(each.action.object.name)
    return sorted(nodes)


def _last_contact(health: LeafHealth | None, before: str) -> str:
    """Set only while the leaf is unreachable. Before the first round after a restart the present value is kept."""
    if health is None or health.state is State.FAILING:
        return before
    if health.state is not State.UNREACHABLE or health.is_rejected:
        return ""
    return before if health.last_contact is None else format_rfc3339(health.last_contact)


def _leases_renewed_time(snapshot: TreeSnapshot, nodes: Sequence[str], now: datetime) -> str:
    moment = shown_renewal(snapshot, now) if nodes and removal_reason(snapshot.cluster) is None else None
    return "" if moment is None else format_rfc3339(moment)


# conditions


def _conditions(
    snapshot: TreeSnapshot, plan: Plan, outcome: Outcome, leases_renewed: ConditionOutcome, now: datetime
) -> tuple[Condition, ...]:
    conditions, generation = snapshot.cluster.status.conditions, snapshot.cluster.metadata.generation
    failures = [each for each in outcome.results if each.result in FAILURES]
    parts: dict[ConditionType, ConditionOutcome] = {
        ConditionType.REACHABLE: reachable(snapshot),
        ConditionType.RESOURCES_SYNCED: _resources_synced(snapshot, failures),
        ConditionType.LEASES_RENEWED: leases_renewed,
    }
    parts[ConditionType.READY] = _ready(snapshot, plan, failures, _pending(outcome), parts.values())
    for kind, result in parts.items():
        present = find(conditions, kind)
        wanted = present if result.is_early and present is not None else _condition(kind, result)
        wanted = msgspec.structs.replace(wanted, observed_generation=generation)
        conditions = with_condition(conditions, wanted, now)
    return conditions


def _condition(kind: ConditionType, result: ConditionOutcome) -> Condition:
    message = result.message
    return Condition(type=kind.value, status=result.status, reason=message.reason, message=message.text())


def reachable(snapshot: TreeSnapshot) -> ConditionOutcome:
    """Return True, False or Unknown for whether the leaf responds and accepts the credentials."""
    leaf, cluster = snapshot.leaf, snapshot.cluster.name
    unknown = _unknown(snapshot)
    if unknown is not None and unknown.reason not in (Reason.NOT_SYNCED, Reason.TOO_LARGE):
        return unknown
    health = leaf.health
    if health is None:
        if leaf.is_connected:
            return ConditionOutcome(TRUE, Reachable(cluster=cluster))
        return ConditionOutcome(UNKNOWN, ProbeFailing(cluster=cluster, error=leaf.error), is_early=True)
    if health.state is State.FAILING:
        return ConditionOutcome(UNKNOWN, ProbeFailing(cluster=cluster, error=health.message), is_early=True)
    return _lost(snapshot, health) or ConditionOutcome(TRUE, Reachable(cluster=cluster))


def _resources_synced(snapshot: TreeSnapshot, failures: Sequence[ActionResult]) -> ConditionOutcome:
    leaf, cluster = snapshot.leaf, snapshot.cluster.name
    if (unknown := _unknown(snapshot)) is not None:
        return unknown
    if failures:
        return _failed(snapshot, failures[0])
    if snapshot.cluster.is_paused:
        return ConditionOutcome(UNKNOWN, Paused(cluster=cluster))
    if leaf.health is not None and (lost := _lost(snapshot, leaf.health)) is not None:
        return lost
    if not leaf.is_connected:
        return ConditionOutcome(FALSE, Stale(cluster=cluster, error=leaf.error))
    if leaf.denied:
        return ConditionOutcome(FALSE, Stale(cluster=cluster, error=leaf.denied))
    return _unreadable(snapshot) or ConditionOutcome(TRUE, Synced(cluster=cluster))


def _leases_renewed(snapshot: TreeSnapshot, nodes: Sequence[str], renewed: str) -> ConditionOutcome:
    health, cluster = snapshot.leaf.health, snapshot.cluster.name
    if (why := removal_reason(snapshot.cluster)) is not None:
        return ConditionOutcome(UNKNOWN, ENDINGS[why](cluster=cluster))
    if not nodes:
        return ConditionOutcome(UNKNOWN, NoNodes(cluster=cluster))
    if health is None:
        return ConditionOutcome(UNKNOWN, NotContacted(cluster=cluster), is_early=True)
    if health.state is State.FAILING:
        return ConditionOutcome(UNKNOWN, ProbeFailing(cluster=cluster, error=health.message), is_early=True)
    if health.state is State.UNREACHABLE:
        return ConditionOutcome(FALSE, LeasesStopped(cluster=cluster, renewed=renewed))
    if health.failed:
        return ConditionOutcome(FALSE, LeasesLate(cluster=cluster, failed=dict(health.failed), renewed=renewed))
    return ConditionOutcome(TRUE, LeasesRenewed(cluster=cluster))


def _pending(outcome: Outcome) -> list[str]:
    """Nodes that this reconcile should have created and has not."""
    creations = [each for each in outcome.results if each.action.reason == Reason.NODE_CREATED]
    return sorted(each.action.object.name for each in creations if each.result is not Result.DONE)


def _ready(
    snapshot: TreeSnapshot,
    plan: Plan,
    failures: Sequence[ActionResult],
    pending: Sequence[str],
    parts: Iterable[ConditionOutcome],
) -> ConditionOutcome:
    """Return the first problem. What waits for an approval comes before everything else."""
    cluster = snapshot.cluster.name
    refused = _first(plan.blocked, {EngineReason.NEEDS_APPROVAL}) or _first(plan.blocked, REFUSALS)
    if refused is not None:
        return ConditionOutcome(FALSE, refused.facts)
    if failures:
        return _failed(snapshot, failures[0])
    if (why := removal_reason(snapshot.cluster)) is not None:
        is_done = why is not Reason.DELETING and not mirrors_of(snapshot.mirrors, cluster)
        return ConditionOutcome(TRUE if is_done else FALSE, ENDINGS[why](cluster=cluster))
    for part in parts:
        if part.status != TRUE and part.reason != Reason.NO_NODES:
            return part
    if pending:
        return ConditionOutcome(FALSE, NodesPending(cluster=cluster, nodes=tuple(pending)))
    overlap = _first(plan.blocked, {Reason.MODELS_OVERLAP})
    if overlap is not None and isinstance(overlap.facts, ModelsOverlap):
        # A model without a node is refused; one with fewer leaf nodes than it selects is only reported.
        return ConditionOutcome(TRUE if overlap.facts.leaf_nodes else FALSE, overlap.facts)
    return ConditionOutcome(TRUE, Synced(cluster=cluster))


def _unknown(snapshot: TreeSnapshot) -> ConditionOutcome | None:
    """Return the reason why the leaf is not observed; None if it is."""
    if (why := removal_reason(snapshot.cluster)) is not None:
        return ConditionOutcome(UNKNOWN, ENDINGS[why](cluster=snapshot.cluster.name))
    unknown = unavailable(snapshot)
    if unknown is None:
        return None
    # Right after the start nothing has been tried yet, which says nothing about the leaf.
    is_early = isinstance(unknown, NotContacted | NotSynced) and not unknown.error
    return ConditionOutcome(FALSE, unknown, is_early=is_early)


def _lost(snapshot: TreeSnapshot, health: LeafHealth) -> ConditionOutcome | None:
    """Return the condition for a leaf that is unreachable or rejects the credentials; None for any other."""
    if not health.is_rejected and health.state is not State.UNREACHABLE:
        return None
    lost = contact_lost(snapshot, health, _last_contact(health, snapshot.cluster.status.last_contact_time))
    return None if lost is None else ConditionOutcome(FALSE, lost)


def _failed(snapshot: TreeSnapshot, failure: ActionResult) -> ConditionOutcome:
    object = str(failure.action.object)
    return ConditionOutcome(FALSE, WriteFailed(cluster=snapshot.cluster.name, object=object, error=failure.message))


def _unreadable(snapshot: TreeSnapshot) -> ConditionOutcome | None:
    leaf = snapshot.leaf
    nodes = {name: fault for name, node in leaf.nodes.items() if (fault := availability.fault(node, leaf.usage(name)))}
    pods = tuple(sorted(pod for usage in leaf.used.values() for pod in usage.unreadable))
    if not nodes and not pods:
        return None
    return ConditionOutcome(FALSE, UnreadableAmounts(cluster=snapshot.cluster.name, nodes=nodes, pods=pods))


def _first(blocked: Iterable[Blocked], reasons: Iterable[str]) -> Blocked | None:
    return next((each for each in blocked if each.reason in reasons), None)


# JSON


def wire(status: ClusterStatus) -> Object:
    found: Object = {
        "clusterTreeStatus": {
            "leafNodeItems": [
                {"leafNodeName": each.leaf_node_name} for each in status.cluster_tree_status.leaf_node_items
            ]
        },
        "observedGeneration": status.observed_generation,
        "nodes": status.nodes,
        "leafNodes": status.leaf_nodes,
        "unacknowledgedPods": status.unacknowledged_pods,
        "conditions": to_wire(status.conditions),
    }
    if status.last_contact_time:
        found["lastContactTime"] = status.last_contact_time
    if status.leases_renewed_time:
        found["leasesRenewedTime"] = status.leases_renewed_time
    if status.cluster_link_status is not None:
        # ClusterLink owns this field; a status write must preserve it.
        found["clusterLinkStatus"] = status.cluster_link_status
    return found
