"""The plan of spares: all templates are planned together over one set of spares. Each step is a module of `planning`.

1. Partition the snapshot: templates by priority, their nodes, the spares.
2. Per priority, allocate each template: move out, release, repair, claim.
3. Explain each shortage: a competing template of higher priority, or no spares; and which spares were refused.
4. Reserve spares that a short template may claim once they are eligible, against lower priorities.
5. Label the remaining spares.
6. Explain the objects asked about (`nodeyard why`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

import msgspec

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import HighPriority, NoSpare
from nodeyard.capabilities.spares.planning.allocation import Allocation, Refusals, allocate, block_malformed, reserve
from nodeyard.capabilities.spares.planning.builder import PlanBuilder
from nodeyard.capabilities.spares.planning.decisions import explain as explain_object
from nodeyard.capabilities.spares.planning.node_metadata import label_spares
from nodeyard.capabilities.spares.planning.partition import Partition, partition
from nodeyard.capabilities.spares.planning.templates import Waiting
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.plan.model import ObjectRef, Plan, Planned

_FINAL_ACTIONS = frozenset({Reason.CLAIMED.value, Reason.FINALIZER_ADDED.value})
_FINAL_REFUSALS = frozenset(
    {Reason.NO_SPARE.value, Reason.HIGH_PRIORITY.value, Reason.PAUSED.value, Reason.INVALID.value}
)


def plan(snapshot: SparesSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    builder = PlanBuilder(now)
    partitioned = partition(snapshot)
    for _name, malformed in sorted(snapshot.malformed.items()):
        block_malformed(builder, malformed)
    allocations = _allocate_all(builder, partitioned)
    label_spares(builder, partitioned)
    decisions = [explain_object(ref, partitioned, allocations, builder) for ref in explain]
    return Planned(
        plan=Plan(
            capability=names.CAPABILITY,
            key=names.KEY,
            actions=tuple(builder.actions),
            blocked=tuple(builder.blocked),
            decisions=tuple(decision for decision in decisions if decision is not None),
            wake_at=builder.wake_at,
        ),
        writes=builder.writes,
        is_final=_is_final(builder),
        open_groups=tuple(sorted(builder.open_groups)),
    )


def _is_final(builder: PlanBuilder) -> bool:
    """Tell whether executing the plan leaves nothing to plan.

    A claim leaves the node converged; other actions may be the first of several steps. Refusals of nodes and dry runs
    may change once the claims have used up spares.
    """
    actions = {action.reason for action in builder.actions}
    return actions <= _FINAL_ACTIONS and {blocked.reason for blocked in builder.blocked} <= _FINAL_REFUSALS


def _allocate_all(builder: PlanBuilder, partitioned: Partition) -> dict[str, Allocation]:
    """Allocate every template, highest priority first. Templates of equal priority do not block each other."""
    waiting = Waiting(partitioned.templates)
    refusals = Refusals(partitioned.spares)
    allocations: dict[str, Allocation] = {}
    for _priority, level in groupby(partitioned.templates, key=lambda each: each.priority):
        short: list[Allocation] = []
        for template in level:
            allocation = allocations[template.name] = allocate(builder, partitioned, template)
            if allocation.short:
                _explain_shortage(builder, allocation, waiting, refusals)
                short.append(allocation)
        for allocation in short:
            if allocation.template.can_claim:
                waiting.add(allocation.template)
                if any(allocation.template.eligibility):
                    reserve(partitioned.spares, allocation.template, allocation.kept, allocation.short)
    return allocations


def _explain_shortage(builder: PlanBuilder, allocation: Allocation, waiting: Waiting, refusals: Refusals) -> None:
    template = allocation.template
    competitor = waiting.competitor(template)
    name, missing, desired = template.name, allocation.short, template.desired
    if competitor is None:
        builder.block(template.ref, NoSpare(template=name, missing=missing, desired=desired))
    else:
        allocation.competitor = competitor.name
        higher = HighPriority(template=name, missing=missing, desired=desired, higher=competitor.name)
        builder.block(template.ref, higher)
    for refused in refusals.of(template):
        builder.block(template.ref, msgspec.structs.replace(refused, template=name))
