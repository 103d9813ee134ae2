"""Status of a node: the choice for each service, and the conditions."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

import msgspec

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.messages.base import ServiceMessage
from nodeyard.capabilities.profiles.messages.states import (
    AwaitsReady,
    AwaitsReport,
    Pinned,
    ProgressIgnored,
    Reconciled,
)
from nodeyard.capabilities.profiles.planning.inheritance import effective_spec
from nodeyard.capabilities.profiles.planning.resolution import Resolution, resolve, unknown_keys
from nodeyard.capabilities.profiles.planning.rollout import (
    annotation,
    is_available,
    is_brief,
    reported_hash,
    whole_number,
)
from nodeyard.capabilities.profiles.planning.services import node_ref
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot
from nodeyard.capabilities.profiles.types import Choice, NodeStatus
from nodeyard.kube.conditions import FALSE, TRUE, to_wire, with_condition
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import StatusWrite

READY = "Ready"
ROLE_READY = "RoleReady"
PROFILES_READY = "ProfilesReady"
ROLLOUT_DONE = "RolloutDone"
SERVICES_KNOWN = "ServicesKnown"

_TRUE_TEXTS: Mapping[str, str] = {
    ROLE_READY: "The role, if one is named, exists and agrees with the node",
    PROFILES_READY: "No choice of a profile has a fault",
    ROLLOUT_DONE: "No service object waits for its rollout",
    SERVICES_KNOWN: "Every profile annotation belongs to a service",
}
"""The messages of conditions that are True: each says no more than its type."""

PROFILE_FAULTS = frozenset(
    {
        Reason.INVALID,
        Reason.NOT_FOUND,
        Reason.AMBIGUOUS,
        Reason.KEY_CONFLICT,
        Reason.CELL_CHANGED,
        Reason.CELL_INVALID,
        Reason.CONFIG_INVALID,
        Reason.FORBIDDEN,
        Reason.NAMESPACE_NOT_GRANTED,
        Reason.SECRETS_NOT_GRANTED,
        Reason.NOT_SERVED,
        Reason.NOT_NAMESPACED,
        Reason.OTHER_NODE,
    }
)
ROLE_FAULTS = frozenset({Reason.ROLE_NOT_FOUND, Reason.ATTACHMENTS_DIFFER, Reason.VARS_INVALID})
WAITING = frozenset({Reason.BUDGET_SPENT, Reason.STALLED, EngineReason.NEEDS_APPROVAL})
NOTICES = frozenset({Reason.PINNED, Reason.DELETING})
BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def status(snapshot: NodeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> Sequence[StatusWrite]:
    if snapshot.node.is_deleting:
        return ()
    if outcome.is_complete and any(is_brief(each.facts, snapshot) for each in plan.blocked):
        return ()
    after = _status_of(snapshot, plan, outcome, now)
    if after == snapshot.node.status:
        return ()
    return [StatusWrite(object=node_ref(snapshot), status=wire(after))]


def _status_of(snapshot: NodeSnapshot, plan: Plan, outcome: Outcome, now: datetime) -> NodeStatus:
    node, objects = snapshot.node, _after(snapshot, outcome)
    resolutions = resolve(snapshot)
    pinned = {each.facts.service for each in plan.blocked if isinstance(each.facts, Pinned)}
    choices = {
        name: _choice(resolution, objects.get(name), _service_message(plan.blocked, name), is_pinned=name in pinned)
        for name, resolution in resolutions.items()
    }
    failures = [each for each in outcome.results if each.result in BAD]
    return NodeStatus(
        observed_generation=node.metadata.generation,
        profiles=dict(sorted(choices.items())),
        unknown_profiles=unknown_keys(snapshot),
        effective=effective_spec(snapshot).wire() or None,
        conditions=_conditions(snapshot, plan.blocked, failures, objects, now),
    )


def _after(snapshot: NodeSnapshot, outcome: Outcome) -> Mapping[str, Object]:
    """Return the service objects after the writes of this reconcile."""
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


def _service_message(blocked: Sequence[Blocked], service: str) -> str:
    """Return the first blocking message of a service."""
    messages = (each.facts for each in blocked if isinstance(each.facts, ServiceMessage))
    return next((each.text() for each in messages if each.service == service), "")


def _choice(resolution: Resolution, obj: Object | None, message: str, *, is_pinned: bool) -> Choice:
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
        pinned=is_pinned,
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
    role = _condition_for(ROLE_READY, blocked, ROLE_FAULTS)
    profiles = _condition_for(PROFILES_READY, blocked, PROFILE_FAULTS)
    rollout = _rollout(snapshot, blocked, objects)
    # Not part of Ready: another operator may use the unknown annotation.
    services = _condition_for(SERVICES_KNOWN, blocked, frozenset({Reason.UNKNOWN_SERVICE}))
    conditions = node.status.conditions
    for condition in (_ready((role, profiles, rollout), failures), role, profiles, rollout, services):
        observed = msgspec.structs.replace(condition, observed_generation=node.metadata.generation)
        conditions = with_condition(conditions, observed, now)
    return conditions


def _condition_for(kind: str, blocked: Sequence[Blocked], reasons: Container[str]) -> Condition:
    for each in blocked:
        if each.reason in reasons:
            return condition_of(kind, FALSE, each.facts)
    return Condition(type=kind, status=TRUE, reason=Reason.RECONCILED, message=_TRUE_TEXTS[kind])


def condition_of(kind: str, status: str, message: Message) -> Condition:
    return Condition(type=kind, status=status, reason=message.reason, message=message.text())


def _rollout(snapshot: NodeSnapshot, blocked: Sequence[Blocked], objects: Mapping[str, Object]) -> Condition:
    waiting = _condition_for(ROLLOUT_DONE, blocked, WAITING)
    if waiting.status == FALSE:
        return waiting
    for name, obj in sorted(objects.items()):
        ignores = name in snapshot.ignored
        if not is_available(obj, ignores=ignores):
            node, hash = snapshot.node.name, annotation(obj, names.HASH)
            if ignores or reported_hash(obj) == hash:
                return condition_of(ROLLOUT_DONE, FALSE, AwaitsReady(service=name, node=node))
            return condition_of(ROLLOUT_DONE, FALSE, AwaitsReport(service=name, node=node, hash=hash))
    # Available, but with an earlier generation of the profile.
    pinned = _condition_for(ROLLOUT_DONE, blocked, {Reason.PINNED})
    if pinned.status == FALSE:
        return msgspec.structs.replace(pinned, status=TRUE)
    if ignored := sorted(snapshot.ignored & objects.keys()):
        message = ProgressIgnored(node=snapshot.node.name, services=tuple(ignored))
        return condition_of(ROLLOUT_DONE, TRUE, message)
    return waiting


def _ready(parts: Sequence[Condition], failures: Sequence[ActionResult]) -> Condition:
    if failures:
        first = failures[0]
        message = f"{first.action.object}: {first.message}"
        return Condition(type=READY, status=FALSE, reason=f"{first.action.reason}Failed", message=message)
    for part in parts:
        if part.status == FALSE:
            return Condition(type=READY, status=FALSE, reason=part.reason, message=part.message)
    drifting = next((part for part in parts if part.reason == Reason.PINNED), None)
    return (
        condition_of(READY, TRUE, Reconciled()) if drifting is None else msgspec.structs.replace(drifting, type=READY)
    )


# serialization


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
