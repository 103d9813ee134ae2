"""Events of a reconcile: one per template and reason, with the number of nodes and the first names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from nodeyard.apply.outcome import Outcome, Result
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.messages import NodesMessage, TemplateState, WaitingForPods
from nodeyard.capabilities.spares.planning.builder import template_ref
from nodeyard.capabilities.spares.reasons import Reason
from nodeyard.capabilities.spares.snapshot import SparesSnapshot
from nodeyard.plan.message import Message
from nodeyard.plan.model import Blocked, ObjectRef, Plan
from nodeyard.plan.reasons import EngineReason
from nodeyard.runtime.capability import Event

NORMAL = "Normal"
WARNING = "Warning"
FAILED = "Failed"
"""Suffix of the reason for failed writes: `ClaimedFailed`."""

_WITHOUT_EVENT = {Reason.FINALIZER_ADDED, Reason.FINALIZER_REMOVED}
_NORMAL_REFUSALS = {Reason.DRY_RUN, Reason.WAITING, Reason.SETTLING, Reason.PAUSED}
_FAILURES = (Result.DENIED, Result.FAILED, Result.UNKNOWN)


def events(snapshot: SparesSnapshot, plan: Plan, outcome: Outcome) -> Sequence[Event]:
    refs = {template.name: template_ref(template.name, template.metadata.uid) for template in snapshot.templates}
    refs |= {name: template_ref(name, each.uid) for name, each in snapshot.malformed.items()}
    return [*_result_events(refs, outcome), *_refusal_events(plan), *_approval_events(snapshot, refs, plan)]


def _result_events(refs: dict[str, ObjectRef], outcome: Outcome) -> list[Event]:
    done: dict[tuple[str, str], list[str]] = {}
    failed: dict[tuple[str, str], list[str]] = {}
    errors: dict[tuple[str, str], str] = {}
    message_of: dict[tuple[str, str], NodesMessage] = {}
    for result in outcome.results:
        action = result.action
        message = action.facts
        if not isinstance(message, NodesMessage) or message.template not in refs or action.reason in _WITHOUT_EVENT:
            continue
        key = (message.template, action.reason)
        message_of.setdefault(key, message)
        node = action.disrupts[0] if action.disrupts else action.object.name
        if result.result is Result.DONE:
            done.setdefault(key, []).append(node)
        elif result.result in _FAILURES:
            failed.setdefault(key, []).append(node)
            errors.setdefault(key, result.message)
    succeeded = [
        Event(refs[key[0]], NORMAL, key[1], message_of[key].with_nodes(set(nodes)).past_text())
        for key, nodes in done.items()
    ]
    # Failures are deduplicated: the write fails at every reconcile until something changes.
    return succeeded + [
        Event(
            refs[key[0]],
            WARNING,
            f"{key[1]}{FAILED}",
            f"{message_of[key].with_nodes(set(nodes)).format_nodes()}: {errors[key]}",
            is_standing=True,
        )
        for key, nodes in failed.items()
    ]


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
        Event(refs[name], WARNING, blocked.reason, blocked.facts.text(), is_standing=True)
        for name, blocked in by_template.items()
    ]


def _refusal_events(plan: Plan) -> list[Event]:
    """Report refusals once, and again when their text changes."""
    return [
        Event(
            blocked.object,
            NORMAL if blocked.reason in _NORMAL_REFUSALS else WARNING,
            blocked.reason,
            _stable(blocked).text(),
            is_standing=True,
        )
        for blocked in plan.blocked
        if blocked.object.kind == names.KIND
    ]


def _stable(blocked: Blocked) -> Message:
    """Return the message without counts and pods that change with every claim: a lasting refusal gets one Event."""
    message: Message = blocked.facts
    if isinstance(message, TemplateState):
        return message.without_counts()
    if isinstance(message, WaitingForPods):
        return msgspec.structs.replace(message, pods=(), pod_count=0)
    return message
