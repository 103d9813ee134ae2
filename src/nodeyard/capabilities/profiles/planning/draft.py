"""A plan in the making: the steps add to it, and at the end it is handed over as it is."""

from __future__ import annotations

from datetime import datetime

from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan import draft
from nodeyard.plan.diff import diff
from nodeyard.plan.model import Action, Disruption, FieldChange, ObjectRef, Verb, Write
from nodeyard.plan.owned import outcome


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
    ) -> str:
        """Apply an object of ours, where that changes something; the action's id, empty where it does not."""
        changed = self.changes(live, body)
        if not changed:
            return ""
        disruption = Disruption.REPLACES if disrupts else Disruption.NONE
        action = Action(
            id=_id(body),
            verb=Verb.APPLY,
            object=ref_to(body, live),
            reason=reason.value,
            facts=facts,
            diff=changed,
            disruption=disruption,
            disrupts=disrupts,
            after=tuple(each for each in after if each),
        )
        # Bound to what was looked at: whatever somebody else does meanwhile is planned with, not written over.
        version = "" if live is None else live["metadata"].get("resourceVersion", "")
        return self._add(action, Write(body=body, resource_version=version))

    def delete(
        self,
        live: Object,
        reason: Reason,
        facts: Object,
        *,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
    ) -> str:
        action = Action(
            id=_id(live),
            verb=Verb.DELETE,
            object=ref_to(live, live),
            reason=reason.value,
            facts=facts,
            disruption=Disruption.DELETES if disrupts else Disruption.NONE,
            disrupts=disrupts,
            after=tuple(each for each in after if each),
        )
        return self._add(action, Write(propagation="Background"))

    def changes(self, live: Object | None, body: Object) -> tuple[FieldChange, ...]:
        if live is None:
            return diff(None, body)
        after = outcome(live, body, self._manager)
        return () if after is live else diff(live, after)

    def _add(self, action: Action, write: Write) -> str:
        self.actions.append(action)
        self.writes[action.id] = write
        return action.id


def _id(obj: Object) -> str:
    return f"{obj['kind']}/{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def ref_to(obj: Object, live: Object | None = None) -> ObjectRef:
    metadata = obj["metadata"]
    return ObjectRef(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=(live or {}).get("metadata", {}).get("uid", ""),
    )
