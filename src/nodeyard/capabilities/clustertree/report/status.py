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
from nodeyard.capabilities.clustertree.liveness import LeafHealth, State
from nodeyard.capabilities.clustertree.messages import text
from nodeyard.capabilities.clustertree.planning import availability
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, is_terminating, mirrors_of
from nodeyard.capabilities.clustertree.planning.refusals import unavailable_reason
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
_NOT_TRIED: Final = (Reason.NOT_CONTACTED, Reason.NOT_SYNCED)
FAILURES: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


class ConditionOutcome(NamedTuple):
    status: str
    reason: str
    facts: Object
    is_early: bool = False
    """Too little is known yet: keep the present condition, if there is one."""


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
        leases_renewed_time=_leases_renewed_time(snapshot, nodes, now),
        conditions=_conditions(snapshot, plan, outcome, now),
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


def _conditions(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> tuple[Condition, ...]:
    conditions, generation = snapshot.cluster.status.conditions, snapshot.cluster.metadata.generation
    failures = [each for each in outcome.results if each.result in FAILURES]
    nodes = nodes_after(snapshot, outcome)
    parts: dict[ConditionType, ConditionOutcome] = {
        ConditionType.REACHABLE: reachable(snapshot),
        ConditionType.RESOURCES_SYNCED: _resources_synced(snapshot, failures),
        ConditionType.LEASES_RENEWED: _leases_renewed(snapshot, nodes, _leases_renewed_time(snapshot, nodes, now)),
    }
    parts[ConditionType.READY] = _ready(snapshot, plan, failures, _pending(outcome), parts.values())
    for kind, result in parts.items():
        present = find(conditions, kind)
        wanted = present if result.is_early and present is not None else _condition(kind, result)
        wanted = msgspec.structs.replace(wanted, observed_generation=generation)
        conditions = with_condition(conditions, wanted, now)
    return conditions


def _condition(kind: ConditionType, result: ConditionOutcome) -> Condition:
    message = text(result.reason, result.facts)
    return Condition(type=kind.value, status=result.status, reason=str(result.reason), message=message)


def reachable(snapshot: TreeSnapshot) -> ConditionOutcome:
    """Return True, False or Unknown for whether the leaf responds and accepts the credentials."""
    leaf, facts = snapshot.leaf, _facts(snapshot)
    unknown = _unknown(snapshot)
    if unknown is not None and unknown.reason not in (Reason.NOT_SYNCED, Reason.TOO_LARGE):
        return unknown
    health = leaf.health
    if health is None:
        if leaf.is_connected:
            return ConditionOutcome(TRUE, Reason.REACHABLE, facts)
        return ConditionOutcome(UNKNOWN, Reason.PROBE_FAILING, {**facts, "error": leaf.error}, is_early=True)
    if health.state is State.FAILING:
        return ConditionOutcome(UNKNOWN, Reason.PROBE_FAILING, {**facts, "error": health.message}, is_early=True)
    return _lost(snapshot, health) or ConditionOutcome(TRUE, Reason.REACHABLE, facts)


def _resources_synced(snapshot: TreeSnapshot, failures: Sequence[ActionResult]) -> ConditionOutcome:
    leaf, facts = snapshot.leaf, _facts(snapshot)
    if (unknown := _unknown(snapshot)) is not None:
        return unknown
    if failures:
        return _failed(snapshot, failures[0])
    if snapshot.cluster.is_paused:
        return ConditionOutcome(UNKNOWN, Reason.PAUSED, facts)
    if leaf.health is not None and (lost := _lost(snapshot, leaf.health)) is not None:
        return lost
    if not leaf.is_connected:
        return ConditionOutcome(FALSE, Reason.STALE, {**facts, "error": leaf.error})
    if leaf.denied:
        return ConditionOutcome(FALSE, Reason.STALE, {**facts, "error": leaf.denied})
    if unreadable := _unreadable(snapshot):
        return ConditionOutcome(FALSE, Reason.UNREADABLE_AMOUNTS, {**facts, **unreadable})
    return ConditionOutcome(TRUE, Reason.SYNCED, facts)


def _leases_renewed(snapshot: TreeSnapshot, nodes: Sequence[str], renewed: str) -> ConditionOutcome:
    health, facts = snapshot.leaf.health, _facts(snapshot)
    if (why := removal_reason(snapshot.cluster)) is not None:
        return ConditionOutcome(UNKNOWN, why, facts)
    if not nodes:
        return ConditionOutcome(UNKNOWN, Reason.NO_NODES, facts)
    if health is None:
        return ConditionOutcome(UNKNOWN, Reason.NOT_CONTACTED, facts, is_early=True)
    if health.state is State.FAILING:
        return ConditionOutcome(UNKNOWN, Reason.PROBE_FAILING, {**facts, "error": health.message}, is_early=True)
    if health.state is State.UNREACHABLE:
        return ConditionOutcome(FALSE, Reason.LEASES_STOPPED, {**facts, "renewed": renewed})
    if health.failed:
        return ConditionOutcome(FALSE, Reason.LEASES_LATE, {**facts, "failed": dict(health.failed), "renewed": renewed})
    return ConditionOutcome(TRUE, Reason.LEASES_RENEWED, facts)


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
    facts = _facts(snapshot)
    refused = _first(plan.blocked, {EngineReason.NEEDS_APPROVAL}) or _first(plan.blocked, REFUSALS)
    if refused is not None:
        return ConditionOutcome(FALSE, refused.reason, refused.facts)
    if failures:
        return _failed(snapshot, failures[0])
    if (why := removal_reason(snapshot.cluster)) is not None:
        is_done = why is not Reason.DELETING and not mirrors_of(snapshot.mirrors, snapshot.cluster.name)
        return ConditionOutcome(TRUE if is_done else FALSE, why, facts)
    for part in parts:
        if part.status != TRUE and part.reason != Reason.NO_NODES:
            return part
    if pending:
        return ConditionOutcome(FALSE, Reason.NODES_PENDING, {**facts, "nodes": pending})
    overlap = _first(plan.blocked, {Reason.MODELS_OVERLAP})
    if overlap is not None:
        # A model without a node is refused; one with fewer leaf nodes than it selects is only reported.
        return ConditionOutcome(TRUE if "leafNodes" in overlap.facts else FALSE, overlap.reason, overlap.facts)
    return ConditionOutcome(TRUE, Reason.SYNCED, facts)


def _unknown(snapshot: TreeSnapshot) -> ConditionOutcome | None:
    """Return the reason why the leaf is not observed; None if it is."""
    if (why := removal_reason(snapshot.cluster)) is not None:
        return ConditionOutcome(UNKNOWN, why, _facts(snapshot))
    unknown = unavailable_reason(snapshot)
    if unknown is None:
        return None
    reason, facts = unknown
    # Right after the start nothing has been tried yet, which says nothing about the leaf.
    return ConditionOutcome(FALSE, reason, facts, is_early=reason in _NOT_TRIED and not facts.get("error"))


def _lost(snapshot: TreeSnapshot, health: LeafHealth) -> ConditionOutcome | None:
    """Return the condition for a leaf that is unreachable or rejects the credentials; None for any other."""
    facts: Object = {**_facts(snapshot), "error": health.message}
    if health.is_rejected:
        since = health.rejected_since or health.since
        return ConditionOutcome(FALSE, Reason.CREDENTIALS_REJECTED, {**facts, "since": format_rfc3339(since)})
    if health.state is not State.UNREACHABLE:
        return None
    if last := _last_contact(health, snapshot.cluster.status.last_contact_time):
        facts["lastContact"] = last
    return ConditionOutcome(FALSE, Reason.UNREACHABLE, facts)


def _failed(snapshot: TreeSnapshot, failure: ActionResult) -> ConditionOutcome:
    facts = {**_facts(snapshot), "object": str(failure.action.object), "error": failure.message}
    return ConditionOutcome(FALSE, Reason.WRITE_FAILED, facts)


def _unreadable(snapshot: TreeSnapshot) -> Object:
    leaf = snapshot.leaf
    nodes = {name: fault for name, node in leaf.nodes.items() if (fault := availability.fault(node))}
    pods = sorted(pod for usage in leaf.used.values() for pod in usage.unreadable)
    return {"nodes": nodes, "pods": pods} if nodes or pods else {}


def _facts(snapshot: TreeSnapshot) -> Object:
    return {"cluster": snapshot.cluster.name}


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
