"""Why a profile, a role or a declared service is as it is: who has it, and for how many nodes what it says counts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.configuration import judgement
from nodeyard.capabilities.profiles.memberships import (
    Given,
    Membership,
    ProfileSnapshot,
    RoleSnapshot,
    ServiceSnapshot,
    judged_as,
    key_of,
    standing_as,
)
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import Source
from nodeyard.kube.json import Object
from nodeyard.kube.names import subdomain_faults
from nodeyard.plan.model import Candidate, Decision, ObjectRef, Plan, Planned

_USED = {
    Source.NODE: Reason.USED_BY_NODE,
    Source.ROLE: Reason.USED_BY_ROLE,
    Source.SELECTOR: Reason.USED_BY_SELECTOR,
}


def plan_nothing(snapshot: Membership, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    """A profile is looked at again when one of its objects could be late."""
    due = snapshot.due if isinstance(snapshot, ProfileSnapshot) else None
    wake_at = due if due is not None and due > now else None
    decisions = tuple(_decide(ref, snapshot) for ref in explain)
    return Planned(plan=Plan(capability=names.CAPABILITY, key=key_of(snapshot), wake_at=wake_at, decisions=decisions))


def _decide(ref: ObjectRef, snapshot: Membership) -> Decision:
    match snapshot:
        case ProfileSnapshot():
            return _why_profile(ref, snapshot)
        case RoleSnapshot():
            return _why_role(ref, snapshot)
        case ServiceSnapshot():
            reason = Reason.SERVICE_INVALID if snapshot.fault else Reason.RECONCILED
            return Decision(object=ref, rule=reason.value, facts={"error": snapshot.fault} if snapshot.fault else {})


def _why_profile(ref: ObjectRef, snapshot: ProfileSnapshot) -> Decision:
    judged = judgement.of_profile(snapshot.service, snapshot.profile.name, snapshot.profile.config)
    reason, facts = standing_as(snapshot)
    if judged.faults or judged.warnings:
        reason, facts = judged_as(snapshot, judged)
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
    keys = [each.service.annotation_key for each in snapshot.given]
    return Decision(
        object=ref,
        rule=Reason.SHARED.value,
        facts={"role": ref.name, "nodes": snapshot.nodes, "keys": keys},
        candidates=tuple(_of_given(snapshot, each) for each in snapshot.given),
        would_change=(Reason.ANNOTATE_ROLE.value,),
    )


def _of_given(snapshot: RoleSnapshot, given: Given) -> Candidate:
    service, metadata = given.service, snapshot.role.metadata
    facts: Object = {
        "role": metadata.name,
        "namespace": metadata.namespace,
        "source": Source.ROLE.value,
        "key": service.annotation_key,
        "kind": service.profile_kind,
        "profile": given.value or "",
        "value": given.value or "",
        "nodes": snapshot.nodes,
        "followers": given.followers,
        "is_empty": given.value == "",
    }
    reason = Reason.GIVEN if given.exists else Reason.NOT_FOUND
    if not given.value:
        reason = Reason.SILENT
    elif faults := subdomain_faults(given.value):
        reason, facts = Reason.INVALID, {**facts, "error": faults[0]}
    return Candidate(name=service.name, is_taken=given.exists, reason=reason.value, facts=facts)
