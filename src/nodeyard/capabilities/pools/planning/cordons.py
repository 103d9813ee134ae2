"""Cordons the nodes of a removed pool, and uncordons them if the pool is added again.

Annotations of each node record the start of the drain and, if the drain cordoned it, the pool. A node that somebody
else cordoned stays cordoned. Patches use optimistic locking: otherwise a cordon that another client sets in between
would be recorded as the drain's own, and undone.
"""

from __future__ import annotations

from datetime import datetime

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning.removed_pool import RemovedPool
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube import timestamps
from nodeyard.kube.json import Object
from nodeyard.kube.names import POOL_DRAINING
from nodeyard.kube.objects import Node
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Disruption, FieldChange, Verb, Write


def is_cordoned(node: Node) -> bool:
    """Return True if the node is unschedulable and marked as draining for other capabilities."""
    return node.spec.unschedulable and POOL_DRAINING in node.metadata.annotations


def cordoned_since(node: Node) -> datetime | None:
    return timestamps.parse_rfc3339_or_none(node.metadata.annotations.get(POOL_DRAINING))


def cordon(builder: PlanBuilder, pool: RemovedPool, node: Node) -> str:
    """Cordon a node; return the action's id."""
    annotations: dict[str, str | None] = {POOL_DRAINING: timestamps.format_rfc3339(builder.now)}
    if not node.spec.unschedulable:
        annotations[names.CORDONED_BY] = pool.owner
    return _patch(builder, pool, node, annotations, True, Reason.NODE_CORDONED)


def uncordon(builder: PlanBuilder, pool: RemovedPool, node: Node) -> str:
    """Undo the cordon of this pool; return the action's id, empty if there is nothing to undo."""
    has = node.metadata.annotations
    cordoned_by = has.get(names.CORDONED_BY)
    if cordoned_by == pool.owner:
        keys = [key for key in (POOL_DRAINING, names.CORDONED_BY) if key in has]
        return _patch(builder, pool, node, dict.fromkeys(keys), False, Reason.NODE_UNCORDONED)
    if cordoned_by is None and POOL_DRAINING in has:
        return _patch(builder, pool, node, {POOL_DRAINING: None}, node.spec.unschedulable, Reason.NODE_UNCORDONED)
    return ""


def _patch(
    builder: PlanBuilder,
    pool: RemovedPool,
    node: Node,
    annotations: dict[str, str | None],
    closed: bool,
    reason: Reason,
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
    return builder.act_with_facts(
        Verb.PATCH,
        pool.node_ref(node),
        reason,
        pool.facts(node=node.metadata.name),
        Write(body=body, resource_version=node.metadata.resource_version),
        diff=tuple(diff),
        disruption=Disruption.RELEASES if is_cordon else Disruption.NONE,
        already_approved=is_cordon,
    )
