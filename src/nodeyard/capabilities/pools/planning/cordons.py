"""Nodes of a pool that leaves are closed to new pods, and opened again should it come back.

Each node remembers for itself: that a drain has it, since when it is closed, and, where that was our doing, whose. One
that somebody else had closed stays closed. The patches are bound to the version that was looked at: else a cordon set
by another meanwhile would be taken for ours, and undone.
"""

from __future__ import annotations

from datetime import datetime

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.leaving import LeavingPool
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube import moments
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Node
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import Disruption, FieldChange, Verb, Write


def is_closed(node: Node) -> bool:
    """Whether nothing new is scheduled here, and other capabilities know to leave it alone."""
    return node.spec.unschedulable and POOL_DRAINING in node.metadata.annotations


def closed_since(node: Node) -> datetime | None:
    return moments.read(node.metadata.annotations.get(POOL_DRAINING))


def cordon(draft: Draft, pool: LeavingPool, node: Node) -> str:
    """The action's id."""
    annotations: dict[str, str | None] = {POOL_DRAINING: moments.written(draft.now)}
    if not node.spec.unschedulable:
        annotations[names.CORDONED_BY] = pool.owner
    return _patch(draft, pool, node, annotations, True, Reason.NODE_CORDONED)


def uncordon(draft: Draft, pool: LeavingPool, node: Node) -> str:
    """Undo what was done for this pool; the action's id, empty where nothing was."""
    has = node.metadata.annotations
    cordoned_by = has.get(names.CORDONED_BY)
    if cordoned_by == pool.owner:
        keys = [key for key in (POOL_DRAINING, names.CORDONED_BY) if key in has]
        return _patch(draft, pool, node, dict.fromkeys(keys), False, Reason.NODE_UNCORDONED)
    if cordoned_by is None and POOL_DRAINING in has:
        return _patch(draft, pool, node, {POOL_DRAINING: None}, node.spec.unschedulable, Reason.NODE_UNCORDONED)
    return ""


def _patch(
    draft: Draft, pool: LeavingPool, node: Node, annotations: dict[str, str | None], closed: bool, reason: Reason
) -> str:
    before = node.metadata.annotations
    body: Object = {"metadata": {"annotations": annotations}}
    diff = [
        FieldChange(path=f"metadata.annotations[{key}]", from_=before.get(key), to=value)
        for key, value in annotations.items()
    ]
    if closed != node.spec.unschedulable:
        body["spec"] = {"unschedulable": closed or None}
        diff.append(FieldChange(path="spec.unschedulable", from_=node.spec.unschedulable or None, to=closed or None))
    is_cordon = reason is Reason.NODE_CORDONED
    return draft.act(
        Verb.PATCH,
        pool.node_ref(node),
        reason,
        pool.facts(node=node.metadata.name),
        Write(body=body, resource_version=node.metadata.resource_version),
        diff=tuple(diff),
        disruption=Disruption.RELEASES if is_cordon else Disruption.NONE,
        is_granted=is_cordon,
    )
