"""The engine's own reasons, which stand beside a capability's, and their texts."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

from nodeyard.kube.json import Object

Messages: TypeAlias = Callable[[str, Object], str]
"""A reason and its facts to one sentence."""


class EngineReason(StrEnum):
    NEEDS_APPROVAL = "NeedsApproval"
    ADMISSION_DENIED = "AdmissionDenied"


def text_of(messages: Messages, reason: str, facts: Object) -> str:
    """The sentence for a reason, whoever's it is."""
    own = _TEXTS.get(reason)
    return own(facts) if own is not None else messages(reason, facts)


def _needs_approval(facts: Object) -> str:
    return (
        f"held: {facts['nodes']} of {facts['managed']} managed nodes would be disrupted, more than {facts['limit']}; "
        f"`nodeyard approve {facts['id']}` lets it go"
    )


def _admission_denied(facts: Object) -> str:
    return f"admission refused the write ({facts.get('by') or 'unnamed'}): {facts.get('message', '')}"


_TEXTS: dict[str, Callable[[Object], str]] = {
    EngineReason.NEEDS_APPROVAL.value: _needs_approval,
    EngineReason.ADMISSION_DENIED.value: _admission_denied,
}
