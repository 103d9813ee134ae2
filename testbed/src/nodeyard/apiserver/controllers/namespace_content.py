"""The remaining content of a namespace that is being deleted, and its conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from nodeyard.apiserver.controllers.conditions import find, with_condition
from nodeyard.apiserver.resources import GroupResource
from nodeyard.kube.json import Object

_FINE: Final = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@dataclass(slots=True)
class Content:
    """The content that one pass over a namespace found."""

    remaining: Counter[GroupResource] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    wait: int = 0
    """Seconds in which the rest may be deleted by itself."""

    def conditions(self, current: Sequence[Object], now: datetime, *, says_remaining: bool) -> list[Object]:
        """Return the conditions of the namespace. As on the real server they omit the content while pods remain."""
        troubles = {}
        if self.failures:
            failures = ", ".join(sorted(self.failures))
            text = f"Failed to delete all resource types, {len(self.failures)} remaining: {failures}"
            troubles["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", text)
        if says_remaining and self.remaining:
            counts = sorted(
                f"{r.plural}.{r.group} has {count} resource instances" for r, count in self.remaining.items()
            )
            text = f"Some resources are remaining: {', '.join(counts)}"
            troubles["NamespaceContentRemaining"] = ("SomeResourcesRemain", text)
        if says_remaining and self.finalizers:
            counts = sorted(f"{name} in {count} resource instances" for name, count in self.finalizers.items())
            text = f"Some content in the namespace has finalizers remaining: {', '.join(counts)}"
            troubles["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", text)
        conditions = list(current)
        for kind, fine in _FINE.items():
            reason, message = troubles.get(kind, fine)
            status = "True" if kind in troubles else "False"
            wanted = {"type": kind, "status": status, "reason": reason, "message": message}
            conditions = with_condition(conditions, wanted, now)
        return conditions


def differs(current: Sequence[Object], wanted: Sequence[Object]) -> bool:
    return any(find(current, condition["type"]) != condition for condition in wanted)
