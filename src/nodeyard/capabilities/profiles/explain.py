"""Explain profiles, roles and ProfileServices: the nodes that use them, and how many nodes follow a role."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration import validation
from nodeyard.capabilities.profiles.planning.services import role_ref
from nodeyard.capabilities.profiles.profile_status import (
    ProfileSnapshot,
    RoleChoice,
    RoleSnapshot,
    ServiceSnapshot,
    StatusSnapshot,
    config_reason,
    key_of,
    rollout_reason,
)
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import Source, annotation_of
from nodeyard.kube.json import Object
from nodeyard.kube.names import APPROVE, subdomain_faults
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.model import Candidate, Decision, FieldChange, ObjectRef, Planned, Verb, Write

_USED = {
    Source.NODE: Reason.USED_BY_NODE,
    Source.ROLE: Reason.USED_BY_ROLE,
    Source.SELECTOR: Reason.USED_BY_SELECTOR,
}


_REMOVALS = timedelta(seconds=30)
"""Interval to check if an approved removal is complete."""


def plan_status(snapshot: StatusSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    """Plan a status-only key: requeue a profile at its progress deadline, and remove completed approvals of a role."""
    draft = PlanBuilder(now)
    if isinstance(snapshot, ProfileSnapshot) and snapshot.due is not None and snapshot.due > now:
        draft.wake(snapshot.due)
    if isinstance(snapshot, RoleSnapshot):
        _end_approvals(draft, snapshot)
    return draft.planned(names.CAPABILITY, key_of(snapshot), tuple(_decide(ref, snapshot) for ref in explain))


def _end_approvals(draft: PlanBuilder, snapshot: RoleSnapshot) -> None:
    """Remove completed approvals: an approval is for one edit, and the same edit later needs a new one."""
    if snapshot.has_removals:
        draft.wake(draft.now + _REMOVALS)
    if snapshot.approved is None:
        return
    metadata = snapshot.role.metadata
    before, after = annotation_of(snapshot.role, APPROVE), snapshot.approved or None
    draft.act_with_facts(
        Verb.PATCH,
        role_ref(snapshot.role),
        Reason.APPROVAL_REMOVED,
        {"role": metadata.name},
        Write(body={"metadata": {"annotations": {APPROVE: after}}}, resource_version=metadata.resource_version),
        diff=(FieldChange(path=f"metadata.annotations[{APPROVE}]", from_=before, to=after),),
    )


def _decide(ref: ObjectRef, snapshot: StatusSnapshot) -> Decision:
    match snapshot:
        case ProfileSnapshot():
            return _why_profile(ref, snapshot)
        case RoleSnapshot():
            return _why_role(ref, snapshot)
        case ServiceSnapshot():
            reason = Reason.SERVICE_INVALID if snapshot.fault else Reason.RECONCILED
            return Decision(object=ref, rule=reason.value, facts={"error": snapshot.fault} if snapshot.fault else {})


def _why_profile(ref: ObjectRef, snapshot: ProfileSnapshot) -> Decision:
    result = validation.validate_profile(snapshot.service, snapshot.profile.name, snapshot.profile.config)
    reason, facts = rollout_reason(snapshot)
    if result.faults or result.warnings:
        reason, facts = config_reason(snapshot, result)
    key = snapshot.service.annotation_key
    return Decision(
        object=ref,
        rule=reason.value,
        facts={"kind": snapshot.service.profile_kind, "key": key, **facts},
        candidates=tuple(
            Candidate(
                name=f"role {each.name}" if each.source is Source.ROLE else each.name,
                is_taken=True,
                reason=_USED[each.source].value,
                facts={"key": key, "nodes": each.nodes, "followers": each.followers},
            )
            for each in snapshot.used_by
        ),
        would_change=(Reason.ANNOTATE_NODE.value, Reason.ANNOTATE_ROLE.value),
    )


def _why_role(ref: ObjectRef, snapshot: RoleSnapshot) -> Decision:
    keys = [each.service.annotation_key for each in snapshot.choices]
    return Decision(
        object=ref,
        rule=Reason.ROLE_HAS_NODES.value,
        facts={"role": ref.name, "nodes": snapshot.nodes, "keys": keys},
        candidates=tuple(_role_candidate(snapshot, each) for each in snapshot.choices),
        would_change=(Reason.ANNOTATE_ROLE.value,),
    )


def _role_candidate(snapshot: RoleSnapshot, choice: RoleChoice) -> Candidate:
    service, metadata = choice.service, snapshot.role.metadata
    facts: Object = {
        "role": metadata.name,
        "namespace": metadata.namespace,
        "source": Source.ROLE.value,
        "key": service.annotation_key,
        "kind": service.profile_kind,
        "profile": choice.value or "",
        "value": choice.value or "",
        "nodes": snapshot.nodes,
        "followers": choice.followers,
        "is_empty": choice.value == "",
    }
    reason = Reason.SET_FOR_NODES if choice.exists else Reason.NOT_FOUND
    if not choice.value:
        reason = Reason.NO_PROFILE_ON_ROLE
    elif faults := subdomain_faults(choice.value):
        reason, facts = Reason.INVALID, {**facts, "error": faults[0]}
    return Candidate(name=service.name, is_taken=choice.exists, reason=reason.value, facts=facts)
