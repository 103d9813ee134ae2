"""Reason and facts to text, for conditions, events, `why` and the dashboard alike; joined of the parts in `sentences`.

Some reasons are those of tenants, of applications and of pods: the facts tell whom it is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.sentences import applications, chains, placement, tenants
from nodeyard.kube.json import Object
from nodeyard.plan.reasons import text_of

_ABOUT_OTHERS: Final[tuple[Mapping[Any, Callable[[Object], str] | str], ...]] = (
    applications.SENTENCES,
    placement.SENTENCES,
    chains.SENTENCES,
    tenants.SENTENCES,
)
_REASONS: Final = frozenset(each.value for each in Reason)


def text(reason: str, facts: Object) -> str:
    """A sentence for a reason of ours or of the engine; any other reason is its own text."""
    return text_of(_own, reason, facts)


def _own(reason: str, facts: Object) -> str:
    if reason not in _REASONS:
        return reason
    ours = Reason(reason)
    if tenants.is_about_tenant(facts) and ours in tenants.SENTENCES:
        return tenants.sentence(ours, facts)
    if "subject" in facts and (ours in placement.SENTENCES or ours is Reason.CLASS_MISSING):
        return placement.sentence(ours, facts)
    for sentences in _ABOUT_OTHERS:
        found = sentences.get(ours)
        if found is not None:
            return found(facts) if callable(found) else found
    return reason
