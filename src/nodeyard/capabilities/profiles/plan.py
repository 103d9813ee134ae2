"""One OpenStackDataPlaneNode, planned: the table of contents. Each step is a module of `planning`.

1. What the node and its role choose is resolved, service by service.
2. What the node inherits from its role is worked out.
3. Each service's object and configuration are brought to that, within the budget of its rollout.
4. What somebody asks about is explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.decisions import decide
from nodeyard.capabilities.profiles.planning.draft import Draft
from nodeyard.capabilities.profiles.planning.inheritance import inherited
from nodeyard.capabilities.profiles.planning.resolution import resolve, unknown_keys
from nodeyard.capabilities.profiles.planning.services import keep, node_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.plan.model import ObjectRef, Plan, Planned


def plan(snapshot: NodeSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    draft = Draft(now, names.MANAGER)
    node, ref = snapshot.node, node_ref(snapshot)
    resolutions = resolve(snapshot)
    if node.is_deleting:
        draft.block(ref, Reason.DELETING, {"node": node.name})
    else:
        _block_what_is_wrong(draft, snapshot, ref)
        effective = inherited(snapshot)
        for fault in effective.faults:
            draft.block(ref, fault.reason, {"node": node.name, "field": fault.field, "error": fault.message})
        for _name, resolution in sorted(resolutions.items()):
            keep(draft, snapshot, resolution, effective)
    decisions = [decide(each, snapshot, resolutions, draft.blocked) for each in explain]
    return Planned(
        plan=Plan(
            capability=names.CAPABILITY,
            key=names.node_key(node.metadata.namespace, node.name),
            actions=tuple(draft.actions),
            blocked=tuple(draft.blocked),
            decisions=tuple(decision for decision in decisions if decision is not None),
            wake_at=draft.wake_at,
        ),
        writes=draft.writes,
        is_final=not draft.blocked,
    )


def _block_what_is_wrong(draft: Draft, snapshot: NodeSnapshot, ref: ObjectRef) -> None:
    """With the node as a whole; its services go on as far as they can."""
    node = snapshot.node
    if node.wanted.role and snapshot.role is None:
        draft.block(ref, Reason.ROLE_NOT_FOUND, {"node": node.name, "role": node.wanted.role})
    given = {**(snapshot.role.metadata.annotations if snapshot.role else {}), **node.metadata.annotations}
    for key in unknown_keys(snapshot):
        draft.block(ref, Reason.UNKNOWN_SERVICE, {"node": node.name, "key": key})
    for key, services in sorted(snapshot.claimed_twice.items()):
        if key in given:
            draft.block(ref, Reason.CLAIMED_TWICE, {"node": node.name, "key": key, "services": list(services)})
