"""The plan for one key without writing it: for `nodeyard plan`, `why` and `approve`, and for the dashboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from nodeyard.plan.brake import Braked, Limit, brake
from nodeyard.plan.identity import assign_id
from nodeyard.plan.model import Blocked, Decision, ObjectRef, Planned
from nodeyard.plan.reasons import EngineReason, Paused
from nodeyard.runtime.annotations import approvals, is_key_paused, root_ref, roots_of
from nodeyard.runtime.capability import Capability, Key, View


@dataclass(frozen=True)
class DryPlan:
    """The plan for one key of one capability."""

    capability: Capability
    key: Key
    braked: Braked
    decisions: tuple[Decision, ...]
    roots: Sequence[Any]
    approval_roots: Sequence[Any] = ()
    held_roots: tuple[ObjectRef, ...] = ()
    """Root objects of the held actions."""

    def held_for(self, ref: ObjectRef) -> Blocked | None:
        """Return the refusal of the held plan if it concerns this object or has it as a root."""
        held = [each for each in self.braked.now.blocked if each.reason == EngineReason.NEEDS_APPROVAL]
        names = (ref.api_version, ref.kind, ref.namespace, ref.name)
        for each in (*((blocked, blocked.object) for blocked in held), *((held[0], one) for one in self.held_roots)):
            blocked, one = each
            if (one.api_version, one.kind, one.namespace, one.name) == names and not one.cluster:
                return blocked
        return None

    @property
    def pause(self) -> Blocked | None:
        """Return the refusal of a plan whose root objects are all paused."""
        return next((each for each in self.braked.now.blocked if isinstance(each.facts, Paused)), None)

    @property
    def has_changes(self) -> bool:
        return bool(self.braked.now.actions) or self.braked.held is not None


def prepare_plan(
    capability: Capability, view: View, key: Key, now: datetime, limit: Limit, explain: Sequence[ObjectRef] = ()
) -> Callable[[], tuple[Planned, DryPlan]] | None:
    """Collect the snapshot of a key on the event loop; return a function that plans and may run in a thread.

    Returns None if the key no longer exists. Raises WatchNotSynced if a watch that the plan needs has not synced.
    """
    snapshot = capability.collect(view, key, now)
    if snapshot is None:
        return None
    roots, approval_roots = capability.roots.of_key(view, key), capability.roots.approval(view, key)

    def make_plan() -> tuple[Planned, DryPlan]:
        planned = capability.plan(snapshot, now, explain)
        if is_key_paused(capability, roots):
            # As in the operator, which does not plan such a key. The decisions still explain its objects.
            paused = [(ref, Paused(object=str(ref))) for root in roots if (ref := root_ref(capability, root))]
            blocked = tuple(Blocked(object=ref, reason=facts.reason, facts=facts) for ref, facts in paused)
            plan = msgspec.structs.replace(planned.plan, actions=(), blocked=blocked, wake_at=None)
            planned = Planned(plan=plan)
        plan = assign_id(planned.plan)
        braked = brake(plan, limit, capability.managed_nodes(snapshot), approvals((*roots, *approval_roots)))
        known = [(root, ref) for root in roots if (ref := root_ref(capability, root)) is not None]
        held = () if braked.held is None else roots_of(capability, braked.held.actions, known)
        refs = tuple(ref for _, ref in held)
        return planned, DryPlan(capability, key, braked, plan.decisions, roots, approval_roots, refs)

    return make_plan
