"""Plan one OpenStackDataPlaneNode. Each step is a module of `planning`.

1. `resolution` finds the profile of each service.
2. `inheritance` merges the fields of the role into those of the node.
3. `services` plans the service object and its configuration, within the rollout budget.
4. `decisions` explains the objects that `why` asks about.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.choices import RoleNotFound
from nodeyard.capabilities.profiles.messages.faults import KeyConflict, UnknownService
from nodeyard.capabilities.profiles.messages.states import NodeDeleting
from nodeyard.capabilities.profiles.planning.builder import PlanBuilder
from nodeyard.capabilities.profiles.planning.decisions import decide
from nodeyard.capabilities.profiles.planning.inheritance import effective_spec
from nodeyard.capabilities.profiles.planning.resolution import resolve, unknown_keys
from nodeyard.capabilities.profiles.planning.services import node_ref, plan_service
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.plan.model import ObjectRef, Plan, Planned


def plan(snapshot: NodeSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    builder = PlanBuilder(now, names.MANAGER)
    node, ref = snapshot.node, node_ref(snapshot)
    resolutions = resolve(snapshot)
    if node.is_deleting:
        builder.block(ref, NodeDeleting(node=node.name))
    else:
        _block_node_faults(builder, snapshot, ref)
        effective = effective_spec(snapshot)
        for fault in effective.faults:
            builder.block(ref, fault)
        for _name, resolution in sorted(resolutions.items()):
            plan_service(builder, snapshot, resolution, effective)
    decisions = [decide(each, snapshot, resolutions, builder.blocked) for each in explain]
    return Planned(
        plan=Plan(
            capability=names.CAPABILITY,
            key=names.node_key(node.metadata.namespace, node.name),
            actions=tuple(builder.actions),
            blocked=tuple(builder.blocked),
            decisions=tuple(decision for decision in decisions if decision is not None),
            wake_at=builder.wake_at,
        ),
        writes=builder.writes,
        is_final=not builder.blocked,
        reserves=builder.reserves,
        waits_for=tuple(builder.waits_for),
    )


def _block_node_faults(builder: PlanBuilder, snapshot: NodeSnapshot, ref: ObjectRef) -> None:
    """Block on faults of the node itself; its services are still planned."""
    node = snapshot.node
    if node.wanted.role and snapshot.role is None:
        builder.block(ref, RoleNotFound(node=node.name, role=node.wanted.role))
    given = {**(snapshot.role.metadata.annotations if snapshot.role else {}), **node.metadata.annotations}
    for key in unknown_keys(snapshot):
        builder.block(ref, UnknownService(key=key))
    for key, services in sorted(snapshot.key_conflicts.items()):
        if key in given:
            builder.block(ref, KeyConflict(key=key, services=tuple(services)))
