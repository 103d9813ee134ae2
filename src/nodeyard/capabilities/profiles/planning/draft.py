"""A plan in the making: the steps add to it, and at the end it is handed over as it is."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan import draft
from nodeyard.plan.diff import diff
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.owned import outcome


class Undertaking(NamedTuple):
    """What a step is part of where other nodes have steps of it too."""

    name: str = ""
    nodes: int = 0


ALONE = Undertaking()


class Draft(draft.Draft):
    def __init__(self, now: datetime, manager: str) -> None:
        super().__init__(now)
        self._manager = manager

    def apply(
        self,
        live: Object | None,
        body: Object,
        reason: Reason,
        facts: Object,
        *,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        is_first: bool = False,
        undertaking: Undertaking = ALONE,
    ) -> str:
        """Apply an object of ours, where that changes something; the action's id, empty where it does not."""
        changed = self.changes(live, body)
        if not changed:
            return ""
        # Bound to what was looked at: whatever somebody else does meanwhile is planned with, not written over.
        version = "" if live is None else live["metadata"].get("resourceVersion", "")
        return self.act(
            Verb.APPLY,
            ref_to(body, live),
            reason,
            facts,
            Write(body=body, resource_version=version, is_first=is_first),
            diff=changed,
            disruption=Disruption.REPLACES if disrupts else Disruption.NONE,
            disrupts=disrupts,
            after=after,
            part_of=undertaking.name,
            shared_by=undertaking.nodes,
        )

    def delete(
        self,
        live: Object,
        reason: Reason,
        facts: Object,
        *,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        undertaking: Undertaking = ALONE,
    ) -> str:
        return self.act(
            Verb.DELETE,
            ref_to(live, live),
            reason,
            facts,
            Write(propagation="Background"),
            disruption=Disruption.DELETES if disrupts else Disruption.NONE,
            disrupts=disrupts,
            after=after,
            part_of=undertaking.name,
            shared_by=undertaking.nodes,
        )

    def changes(self, live: Object | None, body: Object) -> tuple[FieldChange, ...]:
        if live is None:
            return diff(None, body)
        after = outcome(live, body, self._manager)
        return () if after is live else diff(live, after)


def ref_to(obj: Object, live: Object | None = None) -> ObjectRef:
    metadata = obj["metadata"]
    return ObjectRef(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=(live or {}).get("metadata", {}).get("uid", ""),
    )
