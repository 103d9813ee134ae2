"""Plan and explain profiles, roles and ProfileServices: the nodes that use them, and how many nodes follow a role.

These keys have a status and no actions. They name the approved removals that are not complete, so that the reconciler
removes the approvals of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.choices import ProfileInvalid, ProfileNotFound
from nodeyard.capabilities.profiles.messages.faults import ConfigurationInvalid, ConfigurationWarning, ServiceInvalid
from nodeyard.capabilities.profiles.messages.remedies import AnnotateNode, AnnotateRole
from nodeyard.capabilities.profiles.messages.states import (
    NoProfileOnRole,
    Reconciled,
    RoleHasNodes,
    RolledOut,
    RollingOut,
    SetForNodes,
    Stalled,
    UsedByNode,
    UsedByRole,
    UsedBySelector,
    WithoutObjects,
)
from nodeyard.capabilities.profiles.planning.configuration import validation
from nodeyard.capabilities.profiles.planning.configuration.validation import ValidationResult
from nodeyard.capabilities.profiles.snapshot import (
    ProfileSnapshot,
    ProfileUser,
    RoleChoice,
    RoleSnapshot,
    ServiceSnapshot,
    StatusSnapshot,
)
from nodeyard.capabilities.profiles.types import Source
from nodeyard.kube.names import subdomain_faults
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.message import Message
from nodeyard.plan.model import Candidate, Decision, ObjectRef, Planned

_REMOVALS: Final = timedelta(seconds=30)
"""Interval to check if an approved removal is complete."""


def plan_status(snapshot: StatusSnapshot, now: datetime, explain: Sequence[ObjectRef] = ()) -> Planned:
    """Plan a status-only key: requeue a profile at its progress deadline, and while approved removals are open."""
    builder = PlanBuilder(now)
    if isinstance(snapshot, ProfileSnapshot) and snapshot.due is not None and snapshot.due > now:
        builder.wake(snapshot.due)
    if snapshot.open_removals:
        builder.open_groups.update(snapshot.open_removals)
        builder.wake(now + _REMOVALS)
    return builder.planned(names.CAPABILITY, _key_of(snapshot), tuple(_decide(ref, snapshot) for ref in explain))


def _key_of(snapshot: StatusSnapshot) -> str:
    match snapshot:
        case ProfileSnapshot():
            metadata = snapshot.raw["metadata"]
            return names.profile_key(snapshot.service.name, metadata["namespace"], metadata["name"])
        case RoleSnapshot():
            return names.role_key(snapshot.role.metadata.namespace, snapshot.role.metadata.name)
        case ServiceSnapshot():
            return names.service_key(snapshot.service.metadata.name)


# messages


def config_message(snapshot: ProfileSnapshot, result: ValidationResult) -> Message:
    service, profile = snapshot.service, snapshot.profile.name
    message = ConfigurationInvalid if result.faults else ConfigurationWarning
    error = "; ".join(result.faults or result.warnings)
    return message(service=service.name, kind=service.profile_kind, profile=profile, error=error)


def rollout_message(snapshot: ProfileSnapshot) -> Message:
    """Return the state of the rollout; without service objects there is nothing to roll out."""
    service, profile, rollout = snapshot.service, snapshot.profile.name, snapshot.rollout
    if not service.makes_object:
        return WithoutObjects(
            service=service.name, kind=service.profile_kind, profile=profile, nodes=snapshot.node_count
        )
    if snapshot.stalled:
        return Stalled(service=service.name, profile=profile, object=snapshot.stalled)
    is_done = rollout.is_done and snapshot.updated + snapshot.pinned >= rollout.total
    return (RolledOut if is_done else RollingOut)(
        service=service.name,
        kind=service.profile_kind,
        profile=profile,
        updated=snapshot.updated,
        total=rollout.total,
        pinned=snapshot.pinned,
        ignored=service.object_kind if snapshot.ignores and rollout.total else "",
    )


# why


def _decide(ref: ObjectRef, snapshot: StatusSnapshot) -> Decision:
    match snapshot:
        case ProfileSnapshot():
            return _decide_profile(ref, snapshot)
        case RoleSnapshot():
            role, choices = snapshot.role.metadata.name, snapshot.choices
            keys = tuple(each.service.annotation_key for each in choices)
            candidates = (
                Candidate.of(each.service.name, _role_choice(snapshot, each), is_taken=each.exists) for each in choices
            )
            message = RoleHasNodes(role=role, nodes=snapshot.nodes)
            return Decision.of(ref, message, candidates, [AnnotateRole(keys=keys, role=role)])
        case ServiceSnapshot():
            return Decision.of(ref, ServiceInvalid(error=snapshot.fault) if snapshot.fault else Reconciled())


def _decide_profile(ref: ObjectRef, snapshot: ProfileSnapshot) -> Decision:
    result = validation.validate_profile(snapshot.service, snapshot.profile.name, snapshot.profile.config)
    has_message = result.faults or result.warnings
    key = snapshot.service.annotation_key
    return Decision.of(
        ref,
        config_message(snapshot, result) if has_message else rollout_message(snapshot),
        (
            Candidate.of(
                f"role {each.name}" if each.source is Source.ROLE else each.name, _user(each, key), is_taken=True
            )
            for each in snapshot.used_by
        ),
        (AnnotateNode(keys=(key,)), AnnotateRole(keys=(key,))),
    )


def _user(user: ProfileUser, key: str) -> Message:
    match user.source:
        case Source.NODE:
            return UsedByNode(key=key)
        case Source.ROLE:
            return UsedByRole(key=key, nodes=user.nodes, followers=user.followers)
        case Source.SELECTOR:
            return UsedBySelector()


def _role_choice(snapshot: RoleSnapshot, choice: RoleChoice) -> Message:
    service, metadata = choice.service, snapshot.role.metadata
    name, kind, key, value = service.name, service.profile_kind, service.annotation_key, choice.value
    if not value:
        return NoProfileOnRole(role=metadata.name, key=key, kind=kind, is_empty=value == "")
    role, by = metadata.name, Source.ROLE.value
    if faults := subdomain_faults(value):
        return ProfileInvalid(service=name, kind=kind, profile=value, key=key, role=role, source=by, error=faults[0])
    if not choice.exists:
        namespace = metadata.namespace
        return ProfileNotFound(
            service=name, kind=kind, profile=value, key=key, role=role, source=by, namespace=namespace
        )
    nodes, followers = snapshot.nodes, choice.followers
    return SetForNodes(service=name, kind=kind, profile=value, nodes=nodes, followers=followers)
