"""Admission of LatticeClusters and LatticeNodeClasses. Reviews read only the cache and never block.

The webhook denies requests that could never work: node keys that would keep nodes from joining, and the deletion of the
cluster Nodeyard runs on. An update that leaves such keys unchanged passes with a warning, so that an existing cluster
can still be scaled, repaired and deleted. Everything else is a warning. The planner computes the effects of a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.collect import collect, node_classes
from nodeyard.capabilities.pools.messages.base import PoolMessage
from nodeyard.capabilities.pools.messages.removals import AllPoolsRemoved, OrphanDeletes
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.planning.deletion import delete_cluster
from nodeyard.capabilities.pools.planning.generation import class_inputs
from nodeyard.capabilities.pools.planning.pools import autoscaling_warning
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.snapshot import PoolsSnapshot
from nodeyard.capabilities.pools.types import (
    DeletionPolicy,
    LatticeCluster,
    LatticeNodeClass,
    WorkerPool,
    resolved_pools,
)
from nodeyard.capabilities.pools.validation.node_keys import Fault, faults
from nodeyard.kube.json import Object
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.layout import counted
from nodeyard.plan.message import Message, listed
from nodeyard.plan.model import Action, Disruption
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, Webhook, WebhookRule, allowed, denied

_FIXED_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Time of both compared plans; its value does not matter."""
_INVALID_CODE: Final = 422
_DISRUPTIVE: Final = (Disruption.REPLACES, Disruption.DELETES, Disruption.RELEASES)

Pools = Mapping[str, WorkerPool]


def review_cluster(review: AdmissionRequest, view: View) -> AdmissionResponse:
    if review.operation == "DELETE":
        return _review_deletion(review, view)
    new, old = _cluster(review.object), _cluster(review.old_object)
    if new is None or new.is_deleting:
        return allowed()
    if old is not None and old.spec == new.spec:
        return allowed()
    before, after = _pools(old), _pools(new)
    added, existing = _faults(before, after)
    if added:
        return denied("; ".join(map(str, added)), code=_INVALID_CODE, reason="Invalid")
    return allowed(
        *(f"{fault}; accepted because the stored object already has it" for fault in existing),
        *_warnings(new, old, before, after),
        *_disruption_warnings(new, view),
    )


def _cluster(obj: Object | None) -> LatticeCluster | None:
    """Decode a LatticeCluster; None if it does not decode: the plan blocks it with the error."""
    return None if obj is None else _decode(obj, LatticeCluster)


def _decode(obj: Object, kind: type[Any]) -> Any | None:
    try:
        return msgspec.convert(obj, kind)
    except msgspec.ValidationError:
        return None


def _pools(cluster: LatticeCluster | None) -> Pools:
    return {} if cluster is None else resolved_pools(cluster.spec.nodes)


# keys


def _faults(before: Pools, after: Pools) -> tuple[list[Fault], list[Fault]]:
    """Split the faults into those that this change adds and those the stored object already has."""
    added: list[Fault] = []
    existing: list[Fault] = []
    for id, pool in after.items():
        known = {_identity(fault) for fault in faults(id, before[id])} if id in before else set()
        for fault in faults(id, pool):
            (existing if _identity(fault) in known else added).append(fault)
    return added, existing


def _identity(fault: Fault) -> tuple[str, str]:
    """Identify a fault independently of its list index: taints may be reordered."""
    return fault.value, fault.message


# warnings


def _warnings(new: LatticeCluster, old: LatticeCluster | None, before: Pools, after: Pools) -> Iterator[str]:
    for id, pool in after.items():
        if (warning := autoscaling_warning(new, id, pool)) is not None:
            yield warning.text()
    if before and not after:
        yield AllPoolsRemoved(cluster=new.name).text()
    if new.policy is not DeletionPolicy.ORPHAN:
        return
    removed = [id for id in before if id not in after]
    for id in removed:
        yield OrphanDeletes(pool=id).text()
    if not removed and (old is None or old.policy is not new.policy):
        yield OrphanDeletes().text()


def _disruption_warnings(new: LatticeCluster, view: View) -> list[str]:
    """Return the disruptive actions that the plan has with this change and not without it."""
    snapshot = collect(view, new.name, _FIXED_TIME)
    if snapshot is None:
        return []
    known = {_unlabelled_text(action) for action in _disruptive(snapshot)}
    changed = replace(snapshot, cluster=new, classes=node_classes(view, new))
    return [action.facts.text() for action in _disruptive(changed) if _unlabelled_text(action) not in known]


def _disruptive(snapshot: PoolsSnapshot) -> list[Action]:
    return [action for action in plan(snapshot, _FIXED_TIME).plan.actions if action.disruption in _DISRUPTIVE]


def _unlabelled_text(action: Action) -> str:
    """Render an action without displayName, so that a changed displayName is no difference."""
    message: Message = action.facts
    if isinstance(message, PoolMessage):
        message = msgspec.structs.replace(message, display_name="")
    return message.text()


# deletion


def _review_deletion(review: AdmissionRequest, view: View) -> AdmissionResponse:
    """Deny a deletion that the planner would block: a stored deletion cannot be undone."""
    snapshot = collect(view, review.name, _FIXED_TIME)
    if snapshot is None:
        return allowed()
    cluster = _cluster(review.old_object) or snapshot.cluster
    if cluster.metadata.annotations.get(names.ORPHAN_ON_DELETE) == names.TRUE:
        return allowed(f"only LatticeCluster {review.name} is deleted: its machines and Cluster API objects stay")
    metadata = msgspec.structs.replace(
        cluster.metadata, deletion_timestamp=_FIXED_TIME, finalizers=(*cluster.metadata.finalizers, names.FINALIZER)
    )
    builder = PlanBuilder(_FIXED_TIME)
    delete_cluster(builder, replace(snapshot, cluster=msgspec.structs.replace(cluster, metadata=metadata)))
    for blocked in builder.blocked:
        if blocked.reason in (Reason.SELF_MANAGED, Reason.IDENTITY_UNKNOWN):
            return denied(blocked.facts.text())
    machines = len(snapshot.management.machines)
    return (
        allowed(f"deleting {review.name} deletes its {counted(machines, 'machine')} without a drain")
        if machines
        else allowed()
    )


# classes


def review_class(review: AdmissionRequest, view: View) -> AdmissionResponse:
    if review.operation == "DELETE":
        users = [user for user, _cluster in _users(review.name, view)]
        return allowed(_in_use(review.name, users)) if users else allowed()
    old, new = (_decode(each or {}, LatticeNodeClass) for each in (review.old_object, review.object))
    if old is None or new is None:
        return allowed()
    replaced = [
        user for user, cluster in _users(review.name, view) if class_inputs(cluster, old) != class_inputs(cluster, new)
    ]
    return allowed(_replaced(review.name, replaced)) if replaced else allowed()


def _users(name: str, view: View) -> Iterator[tuple[str, LatticeCluster]]:
    """Yield the pools that use a class, as cluster/pool, with their cluster."""
    for cluster in view.indexed(names.CLUSTER_KIND, names.BY_CLASS, name):
        for id, pool in _pools(cluster).items():
            if pool.node_class == name:
                yield f"{cluster.name}/{id}", cluster


def _in_use(name: str, users: list[str]) -> str:
    return (
        f"LatticeNodeClass {name} is used by {counted(len(users), 'pool')} ({listed(users)}): without it they keep "
        "their nodes and can be scaled, but no other change to them is applied"
    )


def _replaced(name: str, users: list[str]) -> str:
    return (
        f"this change of LatticeNodeClass {name} replaces the nodes of {counted(len(users), 'pool')} "
        f"({listed(users)}), one at a time in each"
    )


WEBHOOKS: Final[tuple[Webhook, ...]] = (
    Webhook(
        name="clusters",
        rules=(
            WebhookRule(
                names.GROUP, (names.CLUSTER_PLURAL,), operations=("CREATE", "UPDATE", "DELETE"), scope="Cluster"
            ),
        ),
        review=review_cluster,
    ),
    Webhook(
        name="classes",
        rules=(WebhookRule(names.GROUP, (names.CLASS_PLURAL,), operations=("UPDATE", "DELETE"), scope="Cluster"),),
        review=review_class,
    ),
)
