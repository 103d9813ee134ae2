"""Reasons of the engine, in addition to those of each capability, and their texts."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from nodeyard.kube.json import Object

Messages: TypeAlias = Callable[[str, Object], str]
"""Formats a reason and its facts as one sentence."""


class EngineReason(StrEnum):
    NEEDS_APPROVAL = "NeedsApproval"
    ADMISSION_DENIED = "AdmissionDenied"
    NOT_SERVED = "NotServed"


def text_of(messages: Messages, reason: str, facts: Object) -> str:
    """Return the sentence for a reason of the engine or of the capability."""
    own = _TEXTS.get(reason)
    return own(facts) if own is not None else messages(reason, facts)


def _needs_approval(facts: Object) -> str:
    why = "which always needs approval" if facts.get("always") else f"more than the limit of {facts['limit']}"
    what = facts.get("disrupts") or f"{facts['nodes']} of {facts['managed']} managed nodes"
    return f"held: {what} would be disrupted, {why}; run `nodeyard approve {facts['id']}` to proceed"


def _admission_denied(facts: Object) -> str:
    return f"admission denied the write ({facts.get('by') or 'unnamed'}): {facts.get('message', '')}"


_TEXTS: dict[str, Callable[[Object], str]] = {
    EngineReason.NEEDS_APPROVAL.value: _needs_approval,
    EngineReason.ADMISSION_DENIED.value: _admission_denied,
}
