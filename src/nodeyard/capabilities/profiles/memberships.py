"""What profiles, roles and declared services say of themselves: who has them, how far a rollout is, what is wrong.

Nothing is decided here: the nodes are, each by itself. Only status is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from nodeyard.capabilities.profiles import names, watched
from nodeyard.capabilities.profiles.budgets import stalled_object
from nodeyard.capabilities.profiles.collecting import known
from nodeyard.capabilities.profiles.configuration import judgement
from nodeyard.capabilities.profiles.configuration.judgement import Judgement
from nodeyard.capabilities.profiles.configuration.rendering import profile_hash
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.planning.availability import deadline_seconds
from nodeyard.capabilities.profiles.planning.services import role_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import Profile, Service
from nodeyard.capabilities.profiles.standings import Standing, standing_of
from nodeyard.capabilities.profiles.types import OpenStackDataPlaneRole, ProfileService, ProfileStatus
from nodeyard.capabilities.profiles.users import members, users
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import ObjectRef, Plan, Planned
from nodeyard.runtime.capability import StatusWrite, View

READY = "Ready"
PROGRESSING = "Progressing"
LISTED = 100


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

    @property
    def updated(self) -> int:
        """How many service objects have it as it is now."""
        return self.standing.generations.get(str(self.profile.generation), 0)


@dataclass(frozen=True)
class RoleSnapshot:
    role: OpenStackDataPlaneRole
    nodes: int = 0


@dataclass(frozen=True)
class ServiceSnapshot:
    service: ProfileService
    fault: str = ""


Membership = ProfileSnapshot | RoleSnapshot | ServiceSnapshot


def collect_profile(view: View, service_name: str, namespace: str, name: str, now: datetime) -> ProfileSnapshot | None:
    service = next((each for each in known(view).services if each.name == service_name), None)
    if service is None:
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
    )


def collect_role(view: View, namespace: str, name: str) -> RoleSnapshot | None:
    role: OpenStackDataPlaneRole | None = view.get(names.ROLE_KIND, name, namespace)
    if role is None:
        return None
    return RoleSnapshot(role, view.counted(names.NODE_KIND, names.BY_ROLE, f"{namespace}/{name}"))


def collect_service(view: View, name: str) -> ServiceSnapshot | None:
    service: ProfileService | None = view.get(names.SERVICE_KIND, name)
    return None if service is None else ServiceSnapshot(service, known(view).faults.get(name, ""))


def plan_nothing(snapshot: Membership, now: datetime) -> Planned:
    """A profile is looked at again when one of its objects could be late."""
    due = snapshot.due if isinstance(snapshot, ProfileSnapshot) else None
    wake_at = due if due is not None and due > now else None
    return Planned(plan=Plan(capability=names.CAPABILITY, key=key_of(snapshot), wake_at=wake_at))


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
    reason = Reason.CONFIG_INVALID if judged.faults else Reason.CONFIG_DOUBTFUL
    facts = {"profile": snapshot.profile.name, "error": "; ".join(judged.faults or judged.warnings)}
    status = FALSE if judged.faults else TRUE
    return Condition(type=READY, status=status, reason=reason.value, message=text(reason, facts))


def _progress(snapshot: ProfileSnapshot) -> Condition:
    """True while it is on its way to its nodes."""
    standing = snapshot.standing
    is_done = standing.is_done and snapshot.updated == standing.total
    reason = Reason.STALLED if snapshot.stalled else Reason.AVAILABLE if is_done else Reason.ROLLING
    facts = {"profile": snapshot.profile.name, "updated": snapshot.updated, "total": standing.total}
    if snapshot.stalled:
        facts |= {"service": snapshot.service.name, "stalled": snapshot.stalled}
    status = TRUE if reason is Reason.ROLLING else FALSE
    return Condition(type=PROGRESSING, status=status, reason=reason.value, message=text(reason, facts))


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
