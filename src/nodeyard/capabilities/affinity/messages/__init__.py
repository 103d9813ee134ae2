"""Render a reason and its facts as text, once for conditions, events, `why` and the dashboard.

Tenants, applications and pods share some reasons. The facts tell which of them the text is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nodeyard.capabilities.affinity.messages import applications, chains, placement, tenants
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.reasons import text_of

_SHARED: Final[tuple[Mapping[Any, Callable[[Object], str] | str], ...]] = (
    applications.MESSAGES,
    placement.MESSAGES,
    chains.MESSAGES,
    tenants.MESSAGES,
)
_REASONS: Final = frozenset(each.value for each in Reason)


def text(reason: str, facts: Object) -> str:
    """Render a reason of affinity or of the engine; return any other reason unchanged."""
    return text_of(_render, reason, facts)


def _render(reason: str, facts: Object) -> str:
    if reason not in _REASONS:
        return reason
    own = Reason(reason)
    if tenants.is_about_tenant(facts) and own in tenants.MESSAGES:
        return tenants.MESSAGES[own](facts)
    if "subject" in facts and (own in placement.MESSAGES or own is Reason.CLASS_MISSING):
        return placement.placement_text(own, facts)
    for messages in _SHARED:
        found = messages.get(own)
        if found is not None:
            return found(facts) if callable(found) else found
    return reason
