"""Plans LatticeNodeClasses: blocks malformed ones and explains the rest.

Only their status is written, and the approval of an edit is removed when no pool is behind the class any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.messages.blocks import Invalid, NodeClassUnfit
from nodeyard.capabilities.pools.messages.states import (
    ClassInUse,
    ClassNotUsed,
    FixClass,
    MadeFromClass,
    NotYetMadeFromClass,
)
from nodeyard.capabilities.pools.planning.server_side_apply import class_group_name
from nodeyard.capabilities.pools.snapshot import ClassesSnapshot, ClassUse
from nodeyard.capabilities.pools.types import LatticeNodeClass
from nodeyard.plan.model import Blocked, Candidate, Decision, ObjectRef, Plan, Planned
from nodeyard.runtime.annotations import approval_ids

_EDITS: Final = timedelta(seconds=30)
"""Interval to check if an approved edit of a class has reached all pools."""


def class_ref(name: str, uid: str = "") -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.CLASS_KIND, name=name, uid=uid)


def plan_classes(snapshot: ClassesSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    blocked = [
        Blocked(object=class_ref(name), reason=Invalid.reason, facts=Invalid(error=error))
        for name, error in sorted(snapshot.malformed.items())
    ]
    decisions = [found for ref in explain if (found := _decide(snapshot, ref)) is not None]
    open_groups = tuple(
        class_group_name(each.metadata)
        for each in snapshot.classes
        if approval_ids(each) and any(use.is_outdated for use in snapshot.uses.get(each.metadata.name, ()))
    )
    plan = Plan(
        capability=names.CAPABILITY,
        key=names.CLASSES_KEY,
        blocked=tuple(blocked),
        decisions=tuple(decisions),
        wake_at=now + _EDITS if open_groups else None,
    )
    return Planned(plan=plan, open_groups=open_groups)


def unfit_use(node_class: LatticeNodeClass, use: ClassUse) -> NodeClassUnfit | None:
    """Return why a pool cannot use a class: it has no entry for the pool's provider. None if it can."""
    provider = use.provider
    if not provider or getattr(node_class.spec.providers, provider) is not None:
        return None
    error = f"it has no entry for {provider}; add spec.providers.{provider}"
    return NodeClassUnfit(pool=str(use), node_class=node_class.metadata.name, error=error)


def _decide(snapshot: ClassesSnapshot, ref: ObjectRef) -> Decision | None:
    """Explain a class: the pools that use it, and the pools that cannot."""
    if ref.kind != names.CLASS_KIND:
        return None
    if error := snapshot.malformed.get(ref.name):
        return Decision.of(ref, Invalid(error=error))
    node_class = next((each for each in snapshot.classes if each.metadata.name == ref.name), None)
    uses = snapshot.uses.get(ref.name, ())
    if node_class is None or not uses:
        return Decision.of(ref, ClassNotUsed(node_class=ref.name))
    candidates = [_candidate(node_class, use) for use in uses]
    refused = next((each for each in candidates if not each.is_taken), None)
    if refused is not None:
        return Decision.of(ref, refused.facts, candidates, [FixClass()])
    nodes, behind = sum(use.nodes for use in uses), sum(use.nodes for use in uses if use.is_behind)
    return Decision.of(ref, ClassInUse(node_class=ref.name, pools=len(uses), nodes=nodes, behind=behind), candidates)


def _candidate(node_class: LatticeNodeClass, use: ClassUse) -> Candidate:
    if (unfit := unfit_use(node_class, use)) is not None:
        return Candidate.of(str(use), unfit)
    message = NotYetMadeFromClass if use.is_behind else MadeFromClass
    return Candidate.of(str(use), message(pool=use.pool, cluster=use.cluster, nodes=use.nodes), is_taken=True)
