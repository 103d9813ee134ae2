"""Events of a reconcile: one per template and reason, with the number of nodes and the first names."""

from __future__ import annotations

from collections.abc import Sequence

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.spares import messages, names
from nodeyard.capabilities.spares.messages import text
from nodeyard.capabilities.spares.planning.builder import template_ref
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.capabilities.spares.types import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.builder import NAMED
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason, text_of
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Suffix of the reason for failed writes: `ClaimedFailed`."""

_WITHOUT_EVENT = {Reason.FINALIZER_ADDED, Reason.FINALIZER_REMOVED}
_NORMAL_REFUSALS = {Reason.DRY_RUN, Reason.WAITING, Reason.SETTLING, Reason.PAUSED}
_VOLATILE_FACTS = {"missing", "desired", "pods", "podCount"}
_FAILURES = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    refs = {template.name: template_ref(template.name, template.metadata.uid) for template in snapshot.templates}
    refs |= {name: template_ref(name, each.uid) for name, each in snapshot.malformed.items()}
    return [*_result_events(refs, outcome), *_refusal_events(plan), *_approval_events(snapshot, refs, plan)]


def _result_events(refs: dict[str, ObjectRef], outcome: Outcome) -> list[Event]:
    done: dict[tuple[str, str], list[str]] = {}
    failed: dict[tuple[str, str], list[str]] = {}
    errors: dict[tuple[str, str], str] = {}
    for result in outcome.results:
        action = result.action
        key = (action.facts.get("template", ""), action.reason)
        if key[0] not in refs or action.reason in _WITHOUT_EVENT:
            continue
        node = action.disrupts[0] if action.disrupts else action.object.name
        if result.result is Result.DONE:
            done.setdefault(key, []).append(node)
        elif result.result in _FAILURES:
            failed.setdefault(key, []).append(node)
            errors.setdefault(key, result.message)
    succeeded = [_success(refs[template], reason, template, nodes) for (template, reason), nodes in done.items()]
    return succeeded + [_failure(refs[key[0]], key[1], nodes, errors[key]) for key, nodes in failed.items()]


def _summarize(nodes: list[str]) -> Object:
    unique = sorted(set(nodes))
    return {"count": len(unique), "nodes": unique[:NAMED]}


def _success(ref: ObjectRef, reason: str, template: str, nodes: list[str]) -> Event:
    return Event(ref, NORMAL, reason, text(reason, {"template": template, **_summarize(nodes)}))


def _failure(ref: ObjectRef, reason: str, nodes: list[str], error: str) -> Event:
    """Build a deduplicated event: the write fails at every reconcile until something changes."""
    message = f"{messages.format_nodes(_summarize(nodes))}: {error}"
    return Event(ref, WARNING, f"{reason}{FAILED}", message, is_standing=True)


def _approval_events(snapshot: SparesSnapshot, refs: dict[str, ObjectRef], plan: Plan) -> list[Event]:
    """Report nodes held by the brake on their templates, where users approve."""
    held = {each.object.name: each for each in plan.blocked if each.reason == EngineReason.NEEDS_APPROVAL}
    if not held:
        return []
    by_template: dict[str, Blocked] = {}
    for node in snapshot.nodes:
        owner = node.metadata.labels.get(names.TEMPLATE_LABEL, "")
        if node.metadata.name in held and owner in refs:
            by_template.setdefault(owner, held[node.metadata.name])
    return [
        Event(refs[name], WARNING, blocked.reason, text_of(text, blocked.reason, blocked.facts), is_standing=True)
        for name, blocked in by_template.items()
    ]


def _refusal_events(plan: Plan) -> list[Event]:
    """Report refusals once, and again when their text changes."""
    return [
        Event(
            blocked.object,
            NORMAL if blocked.reason in _NORMAL_REFUSALS else WARNING,
            blocked.reason,
            text(blocked.reason, _stable_facts(blocked)),
            is_standing=True,
        )
        for blocked in plan.blocked
        if blocked.object.kind == names.KIND
    ]


def _stable_facts(blocked: Blocked) -> Object:
    """Return the facts without counts and pods that change with every claim: a lasting refusal gets one event."""
    return {key: value for key, value in blocked.facts.items() if key not in _VOLATILE_FACTS}
