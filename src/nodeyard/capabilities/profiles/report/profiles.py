"""Status of profiles, roles and ProfileServices: their nodes, the progress of a rollout, and faults."""

from __future__ import annotations

from datetime import datetime

import msgspec

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.faults import ServiceInvalid
from nodeyard.capabilities.profiles.messages.states import Reconciled, RollingOut
from nodeyard.capabilities.profiles.planning.configuration import validation
from nodeyard.capabilities.profiles.planning.configuration.drop_ins import profile_hash
from nodeyard.capabilities.profiles.planning.configuration.validation import ValidationResult
from nodeyard.capabilities.profiles.planning.profiles import config_message, rollout_message
from nodeyard.capabilities.profiles.planning.services import role_ref
from nodeyard.capabilities.profiles.report.status import READY, condition_of
from nodeyard.capabilities.profiles.snapshot import ProfileSnapshot, RoleSnapshot, ServiceSnapshot, StatusSnapshot
from nodeyard.capabilities.profiles.types import ProfileStatus
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import StatusWrite

PROGRESSING = "Progressing"


def report_status(snapshot: StatusSnapshot, now: datetime) -> list[StatusWrite]:
    match snapshot:
        case ProfileSnapshot():
            return _profile_status(snapshot, now)
        case RoleSnapshot():
            return _role_status(snapshot, now)
        case ServiceSnapshot():
            return _service_status(snapshot, now)


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
        return condition_of(READY, TRUE, Reconciled())
    return condition_of(READY, FALSE if result.faults else TRUE, config_message(snapshot, result))


def _progressing_condition(snapshot: ProfileSnapshot) -> Condition:
    """Return condition Progressing: true while the rollout runs."""
    message = rollout_message(snapshot)
    return condition_of(PROGRESSING, TRUE if isinstance(message, RollingOut) else FALSE, message)


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
    ready = msgspec.structs.replace(condition_of(READY, TRUE, Reconciled()), observed_generation=metadata.generation)
    conditions = with_condition(before.conditions, ready, now)
    after = _role_wire(metadata.generation, snapshot.nodes, conditions)
    if after == _role_wire(before.observed_generation, before.node_count, before.conditions):
        return []
    return [StatusWrite(object=role_ref(snapshot.role), status=after)]


def _role_wire(generation: int, nodes: int, conditions: tuple[Condition, ...]) -> Object:
    return {"observedGeneration": generation, "nodeCount": nodes, "conditions": to_wire(conditions)}


def _service_status(snapshot: ServiceSnapshot, now: datetime) -> list[StatusWrite]:
    metadata, before = snapshot.service.metadata, snapshot.service.status
    ready = condition_of(READY, TRUE, Reconciled())
    if snapshot.fault:
        ready = condition_of(READY, FALSE, ServiceInvalid(error=snapshot.fault))
    ready = msgspec.structs.replace(ready, observed_generation=metadata.generation)
    conditions = with_condition(before.conditions, ready, now)
    if (before.observed_generation, before.conditions) == (metadata.generation, conditions):
        return []
    ref = ObjectRef(
        api_version=names.SERVICE_API_VERSION, kind=names.SERVICE_KIND, name=metadata.name, uid=metadata.uid
    )
    status = {"observedGeneration": metadata.generation, "conditions": to_wire(conditions)}
    return [StatusWrite(object=ref, status=status)]
