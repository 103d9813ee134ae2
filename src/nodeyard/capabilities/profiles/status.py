"""What a node says of itself after a pass: every service with what was chosen, by whom, and whether it runs."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages import text
from nodeyard.capabilities.profiles.planning.availability import annotation, is_available, whole_number
from nodeyard.capabilities.profiles.planning.inheritance import inherited
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve, unknown_keys
from nodeyard.capabilities.profiles.planning.services import node_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.capabilities.profiles.types import Choice, NodeStatus
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.model import Blocked, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import StatusWrite

READY = "Ready"
ROLE_READY = "RoleReady"
PROFILES_READY = "ProfilesReady"
ROLLOUT_DONE = "RolloutDone"
SERVICES_KNOWN = "ServicesKnown"

PROFILE_FAULTS = frozenset(
    {
        Reason.INVALID,
        Reason.NOT_FOUND,
        Reason.AMBIGUOUS,
        Reason.CLAIMED_TWICE,
        Reason.CELL_CHANGED,
        Reason.CELL_INVALID,
        Reason.CONFIG_INVALID,
        Reason.FORBIDDEN,
        Reason.NOT_SERVED,
        Reason.NOT_NAMESPACED,
        Reason.FOREIGN,
    }
)
ROLE_FAULTS = frozenset({Reason.ROLE_NOT_FOUND, Reason.ATTACHMENTS_DIFFER, Reason.VARS_INVALID})
WAITING = frozenset({Reason.BUDGET_SPENT, Reason.STALLED, EngineReason.NEEDS_APPROVAL})
NOTICES = frozenset({Reason.PINNED, Reason.DELETING})
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def status(snapshot: NodeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if snapshot.node.is_deleting:
        return ()
    after = _status_of(snapshot, plan, outcome, now)
    if after == snapshot.node.status:
        return ()
    return [StatusWrite(object=node_ref(snapshot), status=wire(after))]


def _status_of(snapshot: NodeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> NodeStatus:
    node, objects = snapshot.node, _after(snapshot, outcome)
    resolutions = resolve(snapshot)
    choices = {
        name: _choice(resolution, objects.get(name), _said(plan.blocked, name))
        for name, resolution in resolutions.items()
    }
    failures = [each for each in outcome.results if each.result in _BAD]
    return NodeStatus(
        observed_generation=node.metadata.generation,
        profiles=dict(sorted(choices.items())),
        unknown_profiles=unknown_keys(snapshot),
        effective=inherited(snapshot).wire() or None,
        conditions=_conditions(snapshot, plan.blocked, failures, objects, now),
    )


def _after(snapshot: NodeSnapshot, outcome: Outcome) -> Mapping[str, Object]:
    """The service objects as this pass leaves them."""
    objects = dict(snapshot.objects)
    kinds = {service.object_kind: service.name for service in snapshot.services if service.makes_object}
    for each in outcome.results:
        name = kinds.get(each.action.object.kind)
        if name is None or each.result is not Result.DONE:
            continue
        if each.action.reason == Reason.OBJECT_DELETED:
            objects.pop(name, None)
        elif isinstance(each.answer, dict):
            objects[name] = each.answer
    return objects


def _said(blocked: Sequence[Blocked], service: str) -> str:
    """What there is to say about a service."""
    found = (each for each in blocked if each.facts.get("service") == service)
    return next((text(each.reason, each.facts) for each in found), "")


def _choice(resolution: Resolution, obj: Object | None, message: str) -> Choice:
    profile = resolution.profile
    generation = profile.generation if profile is not None else 0
    written = None if obj is None else whole_number(annotation(obj, names.GENERATION))
    if written is not None:
        generation = written
    return Choice(
        value=resolution.value,
        source=resolution.source.value if resolution.source else "",
        state=resolution.state.value,
        shadowed=tuple(f"{source.value}={value}" for source, value in resolution.shadowed),
        profile_uid=profile.uid if profile is not None else "",
        profile_generation=generation,
        hash=annotation(obj, names.HASH) if obj is not None else "",
        message=message,
    )


# conditions


def _conditions(
    snapshot: NodeSnapshot,
    blocked: Sequence[Blocked],
    failures: Sequence[ActionResult],
    objects: Mapping[str, Object],
    now: datetime,
) -> tuple[Condition, ...]:
    node = snapshot.node
    role = _about(ROLE_READY, blocked, ROLE_FAULTS)
    profiles = _about(PROFILES_READY, blocked, PROFILE_FAULTS)
    rollout = _rollout(snapshot, blocked, objects)
    # Another operator may know a service that we do not: no reason for the node not to be ready.
    services = _about(SERVICES_KNOWN, blocked, frozenset({Reason.UNKNOWN_SERVICE}))
    conditions = node.status.conditions
    for condition in (_ready((role, profiles, rollout), failures), role, profiles, rollout, services):
        observed = msgspec.structs.replace(condition, observed_generation=node.metadata.generation)
        conditions = with_condition(conditions, observed, now)
    return conditions


def _about(kind: str, blocked: Sequence[Blocked], reasons: Container[str]) -> Condition:
    for each in blocked:
        if each.reason in reasons:
            return Condition(type=kind, status=FALSE, reason=each.reason, message=text(each.reason, each.facts))
    return _true(kind)


def _true(kind: str) -> Condition:
    return Condition(type=kind, status=TRUE, reason=Reason.RECONCILED.value, message=text(Reason.RECONCILED, {}))


def _rollout(snapshot: NodeSnapshot, blocked: Sequence[Blocked], objects: Mapping[str, Object]) -> Condition:
    waiting = _about(ROLLOUT_DONE, blocked, WAITING)
    if waiting.status == FALSE:
        return waiting
    for name, obj in sorted(objects.items()):
        if not is_available(obj):
            facts = {"node": snapshot.node.name, "service": name, "hash": annotation(obj, names.HASH)}
            message = text(Reason.ROLLING, facts)
            return Condition(type=ROLLOUT_DONE, status=FALSE, reason=Reason.ROLLING.value, message=message)
    return _true(ROLLOUT_DONE)


def _ready(parts: Sequence[Condition], failures: Sequence[ActionResult]) -> Condition:
    if failures:
        first = failures[0]
        message = f"{first.action.object}: {first.message}"
        return Condition(type=READY, status=FALSE, reason=f"{first.action.reason}Failed", message=message)
    for part in parts:
        if part.status == FALSE:
            return Condition(type=READY, status=FALSE, reason=part.reason, message=part.message)
    return _true(READY)


# the wire


def wire(status: NodeStatus) -> Object:
    found: Object = {
        "observedGeneration": status.observed_generation,
        "profiles": {name: msgspec.to_builtins(choice) for name, choice in status.profiles.items()},
        "conditions": to_wire(status.conditions),
    }
    for choice in found["profiles"].values():
        if "shadowed" in choice:
            choice["shadowed"] = list(choice["shadowed"])
    if status.unknown_profiles:
        found["unknownProfiles"] = list(status.unknown_profiles)
    if status.effective:
        found["effective"] = status.effective
    return found
