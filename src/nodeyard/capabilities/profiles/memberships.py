"""What profiles, roles and declared services say of themselves: who has them, how far a rollout is, what is wrong.

Nothing is decided here: the nodes are, each by itself. Only status is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.budgets import stalled_object
from nodeyard.capabilities.profiles.collecting import known, scope_fault
from nodeyard.capabilities.profiles.configuration import judgement
from nodeyard.capabilities.profiles.configuration.judgement import Judgement
from nodeyard.capabilities.profiles.configuration.rendering import profile_hash
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.planning.availability import deadline_seconds
from nodeyard.capabilities.profiles.planning.services import role_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.capabilities.profiles.standings import Standing, standing_of
from nodeyard.capabilities.profiles.types import (
    OpenStackDataPlaneRole,
    ProfileService,
    ProfileStatus,
    Source,
    annotation_of,
)
from nodeyard.capabilities.profiles.users import members, users
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.draft import NAMED
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import StatusWrite, View

READY = "Ready"
PROGRESSING = "Progressing"
LISTED = 100


@dataclass(frozen=True)
class Follower:
    """Who uses a profile: a node or role that names it, or a node that it selects."""

    source: Source
    name: str
    nodes: int = 1
    """Of a role: how many it has."""
    followers: int = 1
    """Of a role: for how many of them its choice counts."""


@dataclass(frozen=True)
class Given:
    """What a role says about one service."""

    service: Service
    value: str | None
    """None where it says nothing."""
    followers: int
    """For how many of its nodes that counts."""
    exists: bool


@dataclass(frozen=True)
class ProfileSnapshot:
    service: Service
    raw: Object
    profile: Profile
    node_count: int = 0
    """How many nodes choose it."""
    nodes: Sequence[str] = ()
    """The first of them by name."""
    standing: Standing = field(default_factory=Standing)
    """How the service objects that have it stand."""
    due: datetime | None = None
    """When the first of those that are awaited is past its deadline."""
    stalled: str = ""
    """Which one is."""
    used_by: Sequence[Follower] = ()
    """Roles, and the first of the nodes that have it by themselves."""

    @property
    def updated(self) -> int:
        """How many service objects have it as it is now."""
        return self.standing.generations.get(str(self.profile.generation), 0)


@dataclass(frozen=True)
class RoleSnapshot:
    role: OpenStackDataPlaneRole
    nodes: int = 0
    given: Sequence[Given] = ()
    """By service."""


@dataclass(frozen=True)
class ServiceSnapshot:
    service: ProfileService
    fault: str = ""


Membership = ProfileSnapshot | RoleSnapshot | ServiceSnapshot


def collect_profile(view: View, service_name: str, namespace: str, name: str, now: datetime) -> ProfileSnapshot | None:
    service = next((each for each in known(view).services if each.name == service_name), None)
    if service is None or not namespace:
        return None
    raw = view.get(watched.viewed(service.profile_api_version, service.profile_kind), name, namespace)
    if raw is None:
        return None
    profile, standing = watched.seen(service, raw), standing_of(view, service, namespace, name)
    patience = timedelta(seconds=deadline_seconds(service, profile))
    due = standing.due(patience)
    is_late = due is not None and due <= now
    return ProfileSnapshot(
        service,
        raw,
        profile,
        members(view, service, namespace, name),
        tuple(islice(users(view, service, namespace, name), LISTED)),
        standing,
        due,
        stalled_object(view, service, f"{namespace}/{name}", now - patience) if is_late else "",
        tuple(_used_by(view, service, namespace, name)),
    )


def _used_by(view: View, service: Service, namespace: str, profile: str) -> Iterator[Follower]:
    choice = f"{namespace}/{service.annotation_key}={profile}"
    for role in view.indexed(names.ROLE_KIND, names.BY_ANNOTATION, choice):
        nodes, followers = _followers(view, service, f"{namespace}/{role.metadata.name}")
        yield Follower(Source.ROLE, role.metadata.name, nodes, followers)
    selected = names.profile_key(service.name, namespace, profile)
    for source, index, value in (
        (Source.NODE, names.BY_ANNOTATION, choice),
        (Source.SELECTOR, watched.SELECTED, selected),
    ):
        for node in islice(view.indexed(names.NODE_KIND, index, value), NAMED):
            yield Follower(source, node.name)


def _followers(view: View, service: Service, role: str) -> tuple[int, int]:
    """How many nodes a role has, and how many of them leave the choice for a service to it."""
    nodes = view.counted(names.NODE_KIND, names.BY_ROLE, role)
    return nodes, nodes - view.counted(names.NODE_KIND, watched.BY_ROLE_KEY, f"{role}/{service.annotation_key}")


def collect_role(view: View, namespace: str, name: str) -> RoleSnapshot | None:
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, name, namespace)
    if role is None:
        return None
    nodes = view.counted(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{name}")
    return RoleSnapshot(role, nodes, tuple(_given(view, each, role) for each in known(view).services))


def _given(view: View, service: Service, role: OpenStackDataPlaneRole) -> Given:
    namespace, value = role.metadata.namespace, annotation_of(role, service.annotation_key)
    _, followers = _followers(view, service, f"{namespace}/{role.metadata.name}")
    kind = watched.viewed(service.profile_api_version, service.profile_kind)
    return Given(service, value, followers, value is not None and view.get(kind, value, namespace) is not None)


def collect_service(view: View, name: str) -> ServiceSnapshot | None:
    service: ProfileService | None = view.get(names.SERVICE_KIND, name)
    if service is None:
        return None
    declared = known(view)
    fault = declared.faults.get(name, "")
    counting = next((each for each in declared.services if each.name == name and not each.is_built_in), None)
    return ServiceSnapshot(service, fault or (scope_fault(view, counting) if counting else ""))


def status_membership(snapshot: Membership, now: datetime) -> list[StatusWrite]:
    match snapshot:
        case ProfileSnapshot():
            return _of_profile(snapshot, now)
        case RoleSnapshot():
            return _of_role(snapshot, now)
        case ServiceSnapshot():
            return _of_service(snapshot, now)


def _true(kind: str) -> Condition:
    return Condition(type=kind, status=TRUE, reason=Reason.RECONCILED.value, message=text(Reason.RECONCILED, {}))


# profiles


def _of_profile(snapshot: ProfileSnapshot, now: datetime) -> list[StatusWrite]:
    """Only of kinds of ours: those of declared services keep their status for themselves."""
    if not snapshot.service.is_built_in:
        return []
    metadata = snapshot.raw["metadata"]
    before = _decoded(snapshot.raw.get("status"))
    generation = snapshot.profile.generation
    judged = judgement.of_profile(snapshot.service, snapshot.profile.name, snapshot.profile.config)
    conditions = before.conditions
    for condition in (_sound(snapshot, judged), _progress(snapshot)):
        observed = msgspec.structs.replace(condition, observed_generation=generation)
        conditions = with_condition(conditions, observed, now)
    after = ProfileStatus(
        observed_generation=generation,
        node_count=snapshot.node_count,
        nodes=tuple(snapshot.nodes),
        updated=snapshot.updated,
        available=snapshot.standing.available,
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


def _decoded(status: object) -> ProfileStatus:
    try:
        return msgspec.convert(status or {}, ProfileStatus, strict=False)
    except msgspec.ValidationError:
        return ProfileStatus()


def _sound(snapshot: ProfileSnapshot, judged: Judgement) -> Condition:
    if not judged.faults and not judged.warnings:
        return _true(READY)
    reason, facts = judged_as(snapshot, judged)
    status = FALSE if judged.faults else TRUE
    return Condition(type=READY, status=status, reason=reason.value, message=text(reason, facts))


def judged_as(snapshot: ProfileSnapshot, judged: Judgement) -> tuple[Reason, Object]:
    reason = Reason.CONFIG_INVALID if judged.faults else Reason.CONFIG_DOUBTFUL
    return reason, {"profile": snapshot.profile.name, "error": "; ".join(judged.faults or judged.warnings)}


def _progress(snapshot: ProfileSnapshot) -> Condition:
    """True while it is on its way to its nodes."""
    reason, facts = standing_as(snapshot)
    status = TRUE if reason is Reason.ROLLING else FALSE
    return Condition(type=PROGRESSING, status=status, reason=reason.value, message=text(reason, facts))


def standing_as(snapshot: ProfileSnapshot) -> tuple[Reason, Object]:
    """How far it has come."""
    standing = snapshot.standing
    is_done = standing.is_done and snapshot.updated == standing.total
    reason = Reason.STALLED if snapshot.stalled else Reason.AVAILABLE if is_done else Reason.ROLLING
    facts: Object = {"profile": snapshot.profile.name, "updated": snapshot.updated, "total": standing.total}
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


def _of_role(snapshot: RoleSnapshot, now: datetime) -> list[StatusWrite]:
    metadata, before = snapshot.role.metadata, snapshot.role.status
    ready = msgspec.structs.replace(_true(READY), observed_generation=metadata.generation)
    conditions = with_condition(before.conditions, ready, now)
    after = _role_wire(metadata.generation, snapshot.nodes, conditions)
    if after == _role_wire(before.observed_generation, before.node_count, before.conditions):
        return []
    return [StatusWrite(object=role_ref(snapshot.role), status=after)]


def _role_wire(generation: int, nodes: int, conditions: tuple[Condition, ...]) -> Object:
    return {"observedGeneration": generation, "nodeCount": nodes, "conditions": to_wire(conditions)}


def _of_service(snapshot: ServiceSnapshot, now: datetime) -> list[StatusWrite]:
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


def key_of(snapshot: Membership) -> str:
    """The key that a snapshot is of."""
    match snapshot:
        case ProfileSnapshot():
            metadata = snapshot.raw["metadata"]
            return names.profile_key(snapshot.service.name, metadata["namespace"], metadata["name"])
        case RoleSnapshot():
            return f"role/{snapshot.role.metadata.namespace}/{snapshot.role.metadata.name}"
        case ServiceSnapshot():
            return f"service/{snapshot.service.metadata.name}"
