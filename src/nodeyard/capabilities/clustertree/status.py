"""What a Cluster says of itself after a pass: from what was observed, the plan, and what became of it.

Nothing in it moves while nothing happens, but for when leases were last renewed, once a minute. There are no ages, and
of a probe that failed once nothing is said before it is known whether the leaf is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.liveness import Finding, State
from nodeyard.capabilities.clustertree.messages import text
from nodeyard.capabilities.clustertree.planning import availability
from nodeyard.capabilities.clustertree.planning.ownership import cluster_ref, is_going, ours
from nodeyard.capabilities.clustertree.planning.refusals import out_of_touch
from nodeyard.capabilities.clustertree.planning.removal import ending
from nodeyard.capabilities.clustertree.planning.renewals import renewal_shown
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
from nodeyard.kube.moments import written
from nodeyard.kube.objects import Condition
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
    }
)
"""What keeps a Cluster from having the nodes that it asks for."""
_NOT_TRIED: Final = (Reason.NOT_CONTACTED, Reason.NOT_SYNCED)
BAD: Final = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


class Verdict(NamedTuple):
    status: str
    reason: str
    facts: Object
    is_early: bool = False
    """Too little is known to say so: what was said before counts, if anything was."""


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
        last_contact_time=_last_contact(leaf.finding, before.last_contact_time),
        leases_renewed_time=_leases_renewed_time(snapshot, nodes, now),
        conditions=_conditions(snapshot, plan, outcome, now),
    )


def nodes_after(snapshot: TreeSnapshot, outcome: Outcome) -> list[str]:
    """The nodes that the Cluster has when the pass is over."""
    nodes = {name for name, node in ours(snapshot.mirrors, snapshot.cluster.name).items() if not is_going(node)}
    for each in outcome.results:
        if each.result is Result.DONE and each.action.reason == Reason.NODE_CREATED:
            nodes.add(each.action.object.name)
        elif each.result is Result.DONE and each.action.reason == Reason.NODE_REMOVED:
            nodes.discard(each.action.object.name)
    return sorted(nodes)


def _last_contact(finding: Finding | None, before: str) -> str:
    """Once it does not answer any more; after a restart, what was known before."""
    if finding is None or finding.state is State.FAILING:
        return before
    if finding.state is not State.UNREACHABLE or finding.is_rejected:
        return ""
    return before if finding.last_contact is None else written(finding.last_contact)


def _leases_renewed_time(snapshot: TreeSnapshot, nodes: Sequence[str], now: datetime) -> str:
    moment = renewal_shown(snapshot, now) if nodes and ending(snapshot.cluster) is None else None
    return "" if moment is None else written(moment)


# conditions


def _conditions(snapshot: TreeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> tuple[Condition, ...]:
    conditions, generation = snapshot.cluster.status.conditions, snapshot.cluster.metadata.generation
    failures = [each for each in outcome.results if each.result in BAD]
    nodes = nodes_after(snapshot, outcome)
    parts: dict[ConditionType, Verdict] = {
        ConditionType.REACHABLE: reachable(snapshot),
        ConditionType.RESOURCES_SYNCED: _resources_synced(snapshot, failures),
        ConditionType.LEASES_RENEWED: _leases_renewed(snapshot, nodes, _leases_renewed_time(snapshot, nodes, now)),
    }
    parts[ConditionType.READY] = _ready(snapshot, plan, failures, _pending(outcome), parts.values())
    for kind, verdict in parts.items():
        present = find(conditions, kind)
        wanted = present if verdict.is_early and present is not None else _condition(kind, verdict)
        wanted = msgspec.structs.replace(wanted, observed_generation=generation)
        conditions = with_condition(conditions, wanted, now)
    return conditions


def _condition(kind: ConditionType, verdict: Verdict) -> Condition:
    message = text(verdict.reason, verdict.facts)
    return Condition(type=kind.value, status=verdict.status, reason=str(verdict.reason), message=message)


def reachable(snapshot: TreeSnapshot) -> Verdict:
    """Whether the leaf answers, and lets us in."""
    leaf, facts = snapshot.leaf, _facts(snapshot)
    unknown = _unknown(snapshot)
    if unknown is not None and unknown.reason != Reason.NOT_SYNCED:
        return unknown
    finding = leaf.finding
    if finding is None:
        if leaf.is_connected:
            return Verdict(TRUE, Reason.REACHABLE, facts)
        return Verdict(UNKNOWN, Reason.PROBE_FAILING, {**facts, "error": leaf.error}, is_early=True)
    if finding.state is State.FAILING:
        return Verdict(UNKNOWN, Reason.PROBE_FAILING, {**facts, "error": finding.message}, is_early=True)
    return _lost(snapshot, finding) or Verdict(TRUE, Reason.REACHABLE, facts)


def _resources_synced(snapshot: TreeSnapshot, failures: Sequence[ActionResult]) -> Verdict:
    leaf, facts = snapshot.leaf, _facts(snapshot)
    if (unknown := _unknown(snapshot)) is not None:
        return unknown
    if failures:
        return _failed(snapshot, failures[0])
    if leaf.finding is not None and (lost := _lost(snapshot, leaf.finding)) is not None:
        return lost
    if not leaf.is_connected:
        return Verdict(FALSE, Reason.STALE, {**facts, "error": leaf.error})
    if leaf.denied:
        return Verdict(FALSE, Reason.STALE, {**facts, "error": leaf.denied})
    if unreadable := _unreadable(snapshot):
        return Verdict(FALSE, Reason.UNREADABLE_AMOUNTS, {**facts, **unreadable})
    return Verdict(TRUE, Reason.SYNCED, facts)


def _leases_renewed(snapshot: TreeSnapshot, nodes: Sequence[str], renewed: str) -> Verdict:
    finding, facts = snapshot.leaf.finding, _facts(snapshot)
    if (why := ending(snapshot.cluster)) is not None:
        return Verdict(UNKNOWN, why, facts)
    if not nodes:
        return Verdict(UNKNOWN, Reason.NO_NODES, facts)
    if finding is None:
        return Verdict(UNKNOWN, Reason.NOT_CONTACTED, facts, is_early=True)
    if finding.state is State.FAILING:
        return Verdict(UNKNOWN, Reason.PROBE_FAILING, {**facts, "error": finding.message}, is_early=True)
    if finding.state is State.UNREACHABLE:
        return Verdict(FALSE, Reason.LEASES_STOPPED, {**facts, "renewed": renewed})
    if finding.failed:
        return Verdict(FALSE, Reason.LEASES_LATE, {**facts, "failed": dict(finding.failed), "renewed": renewed})
    return Verdict(TRUE, Reason.LEASES_RENEWED, facts)


def _pending(outcome: Outcome) -> list[str]:
    """The nodes that the pass was to make and has not made."""
    creations = [each for each in outcome.results if each.action.reason == Reason.NODE_CREATED]
    return sorted(each.action.object.name for each in creations if each.result is not Result.DONE)


def _ready(
    snapshot: TreeSnapshot,
    plan: Plan,
    failures: Sequence[ActionResult],
    pending: Sequence[str],
    parts: Iterable[Verdict],
) -> Verdict:
    """The first thing that stands in the way; before all others what a person is waited for."""
    facts = _facts(snapshot)
    refused = _first(plan.blocked, {EngineReason.NEEDS_APPROVAL}) or _first(plan.blocked, REFUSALS)
    if refused is not None:
        return Verdict(FALSE, refused.reason, refused.facts)
    if failures:
        return _failed(snapshot, failures[0])
    if (why := ending(snapshot.cluster)) is not None:
        is_done = why is not Reason.DELETING and not ours(snapshot.mirrors, snapshot.cluster.name)
        return Verdict(TRUE if is_done else FALSE, why, facts)
    for part in parts:
        if part.status != TRUE and part.reason != Reason.NO_NODES:
            return part
    if pending:
        return Verdict(FALSE, Reason.NODES_PENDING, {**facts, "nodes": pending})
    overlap = _first(plan.blocked, {Reason.MODELS_OVERLAP})
    if overlap is not None:
        # A model that gets no node at all is refused; one that gets a smaller one is only told of.
        return Verdict(TRUE if "leafNodes" in overlap.facts else FALSE, overlap.reason, overlap.facts)
    return Verdict(TRUE, Reason.SYNCED, facts)


def _unknown(snapshot: TreeSnapshot) -> Verdict | None:
    """Why there is nothing to say about the leaf; None where there is."""
    if (why := ending(snapshot.cluster)) is not None:
        return Verdict(UNKNOWN, why, _facts(snapshot))
    unknown = out_of_touch(snapshot)
    if unknown is None:
        return None
    reason, facts = unknown
    # When we begin nothing has been tried yet; that is no news about the leaf.
    return Verdict(FALSE, reason, facts, is_early=reason in _NOT_TRIED and not facts.get("error"))


def _lost(snapshot: TreeSnapshot, finding: Finding) -> Verdict | None:
    """The leaf does not let us in, or does not answer at all; None where it does both."""
    facts: Object = {**_facts(snapshot), "error": finding.message}
    if finding.is_rejected:
        since = finding.rejected_since or finding.since
        return Verdict(FALSE, Reason.CREDENTIALS_REJECTED, {**facts, "since": written(since)})
    if finding.state is not State.UNREACHABLE:
        return None
    if last := _last_contact(finding, snapshot.cluster.status.last_contact_time):
        facts["lastContact"] = last
    return Verdict(FALSE, Reason.UNREACHABLE, facts)


def _failed(snapshot: TreeSnapshot, failure: ActionResult) -> Verdict:
    facts = {**_facts(snapshot), "object": str(failure.action.object), "error": failure.message}
    return Verdict(FALSE, Reason.WRITE_FAILED, facts)


def _unreadable(snapshot: TreeSnapshot) -> Object:
    leaf = snapshot.leaf
    nodes = {name: fault for name, node in leaf.nodes.items() if (fault := availability.fault(node))}
    pods = sorted(pod for usage in leaf.used.values() for pod in usage.unreadable)
    return {"nodes": nodes, "pods": pods} if nodes or pods else {}


def _facts(snapshot: TreeSnapshot) -> Object:
    return {"cluster": snapshot.cluster.name}


def _first(blocked: Iterable[Blocked], reasons: Iterable[str]) -> Blocked | None:
    return next((each for each in blocked if each.reason in reasons), None)


# the wire


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
        # Not ours, and not to be taken away.
        found["clusterLinkStatus"] = status.cluster_link_status
    return found
