"""Status of profiles, roles and ProfileServices: their nodes, the progress of a rollout, and faults.

No decision about nodes is made here. The only writes are statuses, and the removal of approvals from a role whose
removals are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.budgets import stalled_object
from nodeyard.capabilities.profiles.bulk_removal import running_removals
from nodeyard.capabilities.profiles.collect import load_registry, scope_fault
from nodeyard.capabilities.profiles.configuration import validation
from nodeyard.capabilities.profiles.configuration.rendering import profile_hash
from nodeyard.capabilities.profiles.configuration.validation import ValidationResult
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.planning.availability import deadline_seconds
from nodeyard.capabilities.profiles.planning.services import role_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.rollout_counts import RolloutCount, ignores_progress, rollout_count
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneRole,
    ProfileService,
    ProfileStatus,
    Source,
    annotation_of,
)
from nodeyard.capabilities.profiles.users import count_users, list_users
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.builder import NAMED
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.annotations import approved_on, without_approvals
from nodeyard.runtime.capability import StatusWrite, View

READY = "Ready"
PROGRESSING = "Progressing"
LISTED = 100


@dataclass(frozen=True)
class ProfileUser:
    """User of a profile: a node or role that names it, or a node that it selects."""

    source: Source
    name: str
    nodes: int = 1
    """Number of nodes of a role."""
    followers: int = 1
    """Number of nodes of a role that use its choice."""


@dataclass(frozen=True)
class RoleChoice:
    """Choice of a role for one service."""

    service: Service
    value: str | None
    """None if the role lacks the annotation."""
    followers: int
    """Number of nodes of the role that use it."""
    exists: bool


@dataclass(frozen=True)
class ProfileSnapshot:
    service: Service
    raw: Object
    profile: Profile
    node_count: int = 0
    """Number of nodes with the profile."""
    nodes: Sequence[str] = ()
    """Names of the first nodes, sorted."""
    rollout: RolloutCount = field(default_factory=RolloutCount)
    """Counters of its service objects."""
    due: datetime | None = None
    """Earliest progress deadline."""
    stalled: str = ""
    """Name of the object that is past its progress deadline."""
    used_by: Sequence[ProfileUser] = ()
    """Roles, and the first nodes that name the profile or are selected."""
    ignores: bool = False
    """True if its rollout does not wait for status.hash.profile."""
    pinned: int = 0
    """Number of nodes pinned to an earlier generation."""

    @property
    def updated(self) -> int:
        """Number of service objects with the current generation; the number of nodes for a service without objects."""
        if not self.service.makes_object:
            return self.node_count
        return self.rollout.generations.get(str(self.profile.generation), 0)


@dataclass(frozen=True)
class RoleSnapshot:
    role: OpenStackDataPlaneRole
    nodes: int = 0
    choices: Sequence[RoleChoice] = ()
    """Choices by service."""
    approved: str | None = None
    """Value of the approve annotation without completed approvals; None if it does not change."""
    has_removals: bool = False
    """True if an approved removal is not complete."""


@dataclass(frozen=True)
class ServiceSnapshot:
    service: ProfileService
    fault: str = ""


StatusSnapshot = ProfileSnapshot | RoleSnapshot | ServiceSnapshot


def collect_profile(view: View, service_name: str, namespace: str, name: str, now: datetime) -> ProfileSnapshot | None:
    service = next((each for each in load_registry(view).services if each.name == service_name), None)
    if service is None or not namespace:
        return None
    raw = view.get(watched.kind_name(service.profile_api_version, service.profile_kind), name, namespace)
    if raw is None:
        return None
    profile = watched.parse_profile(service, raw)
    ignores = ignores_progress(view, service, profile)
    rollout = rollout_count(view, service, namespace, name, ignores=ignores)
    deadline = timedelta(seconds=deadline_seconds(service, profile))
    due = rollout.due(deadline)
    is_late = due is not None and due <= now
    return ProfileSnapshot(
        service,
        raw,
        profile,
        count_users(view, service, namespace, name),
        tuple(islice(list_users(view, service, namespace, name), LISTED)),
        rollout,
        due,
        stalled_object(view, service, f"{namespace}/{name}", now - deadline, ignores=ignores) if is_late else "",
        tuple(_used_by(view, service, namespace, name)),
        ignores,
        view.counted(names.NODE_KIND, watched.PINNED, names.profile_key(service.name, namespace, name)),
    )


def _used_by(view: View, service: Service, namespace: str, profile: str) -> Iterator[ProfileUser]:
    choice = f"{namespace}/{service.annotation_key}={profile}"
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        nodes, followers = _followers(view, service, f"{namespace}/{role.metadata.name}")
        yield ProfileUser(Source.ROLE, role.metadata.name, nodes, followers)
    selected = names.profile_key(service.name, namespace, profile)
    for source, index, value in (
        (Source.NODE, names.BY_ANNOTATION, choice),
        (Source.SELECTOR, watched.SELECTED, selected),
    ):
        for node in islice(view.indexed(names.NODE_KIND, index, value), NAMED):
            yield ProfileUser(source, node.name)


def _followers(view: View, service: Service, role: str) -> tuple[int, int]:
    """Count the nodes of a role, and those that do not override its choice for a service."""
    nodes = view.counted(names.NODE_KIND, names.BY_ROLE, role)
    return nodes, nodes - view.counted(names.NODE_KIND, watched.BY_ROLE_KEY, f"{role}/{service.annotation_key}")


def collect_role(view: View, namespace: str, name: str) -> RoleSnapshot | None:
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, name, namespace)
    if role is None:
        return None
    nodes = view.counted(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{name}")
    services = load_registry(view).services
    running = running_removals(view, role, services) if approved_on(role) else frozenset()
    choices = tuple(_role_choice(view, each, role) for each in services)
    return RoleSnapshot(role, nodes, choices, without_approvals(role, running), bool(running))


def _role_choice(view: View, service: Service, role: OpenStackDataPlaneRole) -> RoleChoice:
    namespace, value = role.metadata.namespace, annotation_of(role, service.annotation_key)
    _, followers = _followers(view, service, f"{namespace}/{role.metadata.name}")
    kind = watched.kind_name(service.profile_api_version, service.profile_kind)
    return RoleChoice(service, value, followers, value is not None and view.get(kind, value, namespace) is not None)


def collect_service(view: View, name: str) -> ServiceSnapshot | None:
    service: ProfileService | None = view.get(names.SERVICE_KIND, name)
    if service is None:
        return None
    declared = load_registry(view)
    fault = declared.faults.get(name, "")
    service_in_use = next((each for each in declared.services if each.name == name and not each.is_built_in), None)
    return ServiceSnapshot(service, fault or (scope_fault(view, service_in_use) if service_in_use else ""))


def report_status(snapshot: StatusSnapshot, now: datetime) -> list[StatusWrite]:
    match snapshot:
        case ProfileSnapshot():
            return _profile_status(snapshot, now)
        case RoleSnapshot():
            return _role_status(snapshot, now)
        case ServiceSnapshot():
            return _service_status(snapshot, now)


def _true(kind: str) -> Condition:
    return Condition(type=kind, status=TRUE, reason=Reason.RECONCILED.value, message=text(Reason.RECONCILED, {}))


# profiles


def _profile_status(snapshot: ProfileSnapshot, now: datetime) -> list[StatusWrite]:
    """Return the status of a built-in profile kind; the status of declared kinds belongs to their owner."""
    if not snapshot.service.is_built_in:
        return []
    metadata = snapshot.raw["metadata"]
    before = _decode_status(snapshot.raw.get("status"))
    generation = snapshot.profile.generation
    result = validation.validate_profile(snapshot.service, snapshot.profile.name, snapshot.profile.config)
    conditions = before.conditions
    for condition in (_ready_condition(snapshot, result), _progressing_condition(snapshot)):
        observed = msgspec.structs.replace(condition, observed_generation=generation)
        conditions = with_condition(conditions, observed, now)
    after = ProfileStatus(
        observed_generation=generation,
        node_count=snapshot.node_count,
        nodes=tuple(snapshot.nodes),
        updated=snapshot.updated,
        available=snapshot.rollout.available if snapshot.service.makes_object else snapshot.node_count,
        hash=profile_hash(snapshot.service, snapshot.profile.config),
        conditions=conditions,
    )
    if _profile_wire(after) == _profile_wire(before):
        return []
    ref = ObjectRef(
        api_version=snapshot.service.profile_api_version,
        kind=snapshot.service.profile_kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata.get("uid", ""),
    )
    return [StatusWrite(object=ref, status=_profile_wire(after))]


def _decode_status(status: object) -> ProfileStatus:
    try:
        return msgspec.convert(status or {}, ProfileStatus, strict=False)
    except msgspec.ValidationError:
        return ProfileStatus()


def _ready_condition(snapshot: ProfileSnapshot, result: ValidationResult) -> Condition:
    if not result.faults and not result.warnings:
        return _true(READY)
    reason, facts = config_reason(snapshot, result)
    status = FALSE if result.faults else TRUE
    return Condition(type=READY, status=status, reason=reason.value, message=text(reason, facts))


def config_reason(snapshot: ProfileSnapshot, result: ValidationResult) -> tuple[Reason, Object]:
    reason = Reason.CONFIG_INVALID if result.faults else Reason.CONFIG_WARNING
    return reason, {"profile": snapshot.profile.name, "error": "; ".join(result.faults or result.warnings)}


def _progressing_condition(snapshot: ProfileSnapshot) -> Condition:
    """Return condition Progressing: true while the rollout runs."""
    reason, facts = rollout_reason(snapshot)
    status = TRUE if reason is Reason.ROLLING else FALSE
    return Condition(type=PROGRESSING, status=status, reason=reason.value, message=text(reason, facts))


def rollout_reason(snapshot: ProfileSnapshot) -> tuple[Reason, Object]:
    """Return reason and facts of the rollout; a service without objects is always Available."""
    if not snapshot.service.makes_object:
        facts: Object = {"profile": snapshot.profile.name, "nodes": snapshot.node_count}
        return Reason.AVAILABLE, {**facts, "service": snapshot.service.name}
    rollout = snapshot.rollout
    is_done = rollout.is_done and snapshot.updated + snapshot.pinned >= rollout.total
    reason = Reason.STALLED if snapshot.stalled else Reason.AVAILABLE if is_done else Reason.ROLLING
    facts = {"profile": snapshot.profile.name, "updated": snapshot.updated, "total": rollout.total}
    if snapshot.pinned:
        facts |= {"pinned": snapshot.pinned}
    if snapshot.ignores and rollout.total:
        facts |= {"ignored": snapshot.service.object_kind}
    if snapshot.stalled:
        facts |= {"service": snapshot.service.name, "stalled": snapshot.stalled}
    return reason, facts


def _profile_wire(status: ProfileStatus) -> Object:
    found: Object = {
        "observedGeneration": status.observed_generation,
        "nodeCount": status.node_count,
        "updated": status.updated,
        "available": status.available,
        "hash": status.hash,
        "conditions": to_wire(status.conditions),
    }
    return {**found, "nodes": list(status.nodes)} if status.nodes else found


# roles and services


def _role_status(snapshot: RoleSnapshot, now: datetime) -> list[StatusWrite]:
    metadata, before = snapshot.role.metadata, snapshot.role.status
    ready = msgspec.structs.replace(_true(READY), observed_generation=metadata.generation)
    conditions = with_condition(before.conditions, ready, now)
    after = _role_wire(metadata.generation, snapshot.nodes, conditions)
    if after == _role_wire(before.observed_generation, before.node_count, before.conditions):
        return []
    return [StatusWrite(object=role_ref(snapshot.role), status=after)]


def _role_wire(generation: int, nodes: int, conditions: tuple[Condition, ...]) -> Object:
    return {"observedGeneration": generation, "nodeCount": nodes, "conditions": to_wire(conditions)}


def _service_status(snapshot: ServiceSnapshot, now: datetime) -> list[StatusWrite]:
    metadata, before = snapshot.service.metadata, snapshot.service.status
    ready = _true(READY)
    if snapshot.fault:
        ready = Condition(type=READY, status=FALSE, reason=Reason.SERVICE_INVALID.value, message=snapshot.fault)
    ready = msgspec.structs.replace(ready, observed_generation=metadata.generation)
    conditions = with_condition(before.conditions, ready, now)
    if (before.observed_generation, before.conditions) == (metadata.generation, conditions):
        return []
    ref = ObjectRef(
        api_version=names.SERVICE_API_VERSION, kind=names.SERVICE_KIND, name=metadata.name, uid=metadata.uid
    )
    status = {"observedGeneration": metadata.generation, "conditions": to_wire(conditions)}
    return [StatusWrite(object=ref, status=status)]


def key_of(snapshot: StatusSnapshot) -> str:
    """Return the key of a snapshot."""
    match snapshot:
        case ProfileSnapshot():
            metadata = snapshot.raw["metadata"]
            return names.profile_key(snapshot.service.name, metadata["namespace"], metadata["name"])
        case RoleSnapshot():
            return f"role/{snapshot.role.metadata.namespace}/{snapshot.role.metadata.name}"
        case ServiceSnapshot():
            return f"service/{snapshot.service.metadata.name}"
