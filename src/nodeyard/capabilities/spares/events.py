"""What is said about a pass: one event per template and reason, with a count and the first names."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.spares import messages, names
from nodeyard.capabilities.spares.messages import text
from nodeyard.capabilities.spares.planning.unread import ref_of
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import NodeTemplate, Reason
from nodeyard.kube.json import Object
from nodeyard.plan.draft import NAMED
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason, text_of
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Ends the reason of an event about writes that did not succeed: `ClaimedFailed`."""

_QUIET = {Reason.FINALIZER_ADDED, Reason.FINALIZER_REMOVED}
_UNREMARKABLE = {Reason.DRY_RUN, Reason.WAITING, Reason.SETTLING, Reason.PAUSED}
_BAD = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    refs = {template.name: _ref(template) for template in snapshot.templates}
    refs |= {name: ref_of(unread) for name, unread in snapshot.malformed.items()}
    return [*_of_results(refs, outcome), *_of_refusals(plan), *_of_what_is_held(snapshot, refs, plan)]


def _ref(template: NodeTemplate) -> ObjectRef:
    return ObjectRef(api_version=names.API_VERSION, kind=names.KIND, name=template.name, uid=template.metadata.uid)


def _of_results(refs: dict[str, ObjectRef], outcome: Outcome) -> list[Event]:
    done: dict[tuple[str, str], list[str]] = {}
    bad: dict[tuple[str, str], list[str]] = {}
    errors: dict[tuple[str, str], str] = {}
    for result in outcome.results:
        action = result.action
        key = (action.facts.get("template", ""), action.reason)
        if key[0] not in refs or action.reason in _QUIET:
            continue
        node = action.disrupts[0] if action.disrupts else action.object.name
        if result.result is Result.DONE:
            done.setdefault(key, []).append(node)
        elif result.result in _BAD:
            bad.setdefault(key, []).append(node)
            errors.setdefault(key, result.message)
    told = [_told(refs[template], reason, template, nodes) for (template, reason), nodes in done.items()]
    return told + [_failure(refs[key[0]], key[1], nodes, errors[key]) for key, nodes in bad.items()]


def _listed(nodes: list[str]) -> Object:
    unique = sorted(set(nodes))
    return {"count": len(unique), "nodes": unique[:NAMED]}


def _told(ref: ObjectRef, reason: str, template: str, nodes: list[str]) -> Event:
    return Event(ref, NORMAL, reason, text(reason, {"template": template, **_listed(nodes)}))


def _failure(ref: ObjectRef, reason: str, nodes: list[str], error: str) -> Event:
    """It fails at every pass until something changes."""
    message = f"{messages.nodes(_listed(nodes))}: {error}"
    return Event(ref, WARNING, f"{reason}{FAILED}", message, is_standing=True)


def _of_what_is_held(snapshot: SparesSnapshot, refs: dict[str, ObjectRef], plan: Plan) -> list[Event]:
    """The brake holds single nodes; it is their templates that somebody looks at, and approves on."""
    held = {each.object.name: each for each in plan.blocked if each.reason == EngineReason.NEEDS_APPROVAL}
    if not held:
        return []
    told: dict[str, Blocked] = {}
    for node in snapshot.nodes:
        owner = node.metadata.labels.get(names.TEMPLATE_LABEL, "")
        if node.metadata.name in held and owner in refs:
            told.setdefault(owner, held[node.metadata.name])
    return [
        Event(refs[name], WARNING, blocked.reason, text_of(text, blocked.reason, blocked.facts), is_standing=True)
        for name, blocked in told.items()
    ]


def _of_refusals(plan: Plan) -> list[Event]:
    """Each holds until something changes, so they are told when they do."""
    return [
        Event(
            blocked.object,
            NORMAL if blocked.reason in _UNREMARKABLE else WARNING,
            blocked.reason,
            text(blocked.reason, blocked.facts),
            is_standing=True,
        )
        for blocked in plan.blocked
        if blocked.object.kind == names.KIND
    ]
