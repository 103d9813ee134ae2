"""Plan builder that previews server-side apply and binds writes to the observed resourceVersion."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from nodeyard.kube.json import Object
from nodeyard.plan import builder
from nodeyard.plan.diff import diff
from nodeyard.plan.managed_fields import preview_apply
from nodeyard.plan.message import Message
from nodeyard.plan.model import Disruption, FieldChange, ObjectRef, Verb, Write


class ApprovalGroup(NamedTuple):
    """Approval group of an action that belongs to one change over many nodes."""

    name: str = ""
    nodes: int = 0
    root: ObjectRef | None = None
    """Object whose edit causes the change; the approval is set on it."""


NO_GROUP = ApprovalGroup()


class PlanBuilder(builder.PlanBuilder):
    def __init__(self, now: datetime, manager: str) -> None:
        super().__init__(now)
        self._manager = manager
        self.reserves: dict[str, str] = {}
        """Rollout budgets that the plan takes from, with the desired hash."""
        self.waits_for: list[str] = []
        """Rollout budgets that are spent."""

    def apply(
        self,
        live: Object | None,
        body: Object,
        message: Message,
        *,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        is_first: bool = False,
        group: ApprovalGroup = NO_GROUP,
    ) -> str:
        """Add an apply if it changes the object; return the action id, or an empty string."""
        changed = self.changes(live, body)
        if not changed:
            return ""
        # Optimistic locking: a concurrent change by another writer fails the apply and is planned again.
        version = "" if live is None else live["metadata"].get("resourceVersion", "")
        return self.act(
            Verb.APPLY,
            ref_to(body, live),
            message,
            Write(body=body, resource_version=version, is_first=is_first),
            diff=changed,
            disruption=Disruption.REPLACES if disrupts else Disruption.NONE,
            disrupts=disrupts,
            after=after,
            approval_group=group.name,
            group_nodes=group.nodes,
            group_root=group.root,
        )

    def delete(
        self,
        live: Object,
        message: Message,
        *,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        group: ApprovalGroup = NO_GROUP,
    ) -> str:
        return self.act(
            Verb.DELETE,
            ref_to(live, live),
            message,
            Write(propagation="Background"),
            disruption=Disruption.DELETES if disrupts else Disruption.NONE,
            disrupts=disrupts,
            after=after,
            approval_group=group.name,
            group_nodes=group.nodes,
            group_root=group.root,
        )

    def changes(self, live: Object | None, body: Object) -> tuple[FieldChange, ...]:
        if live is None:
            return diff(None, body)
        after = preview_apply(live, body, self._manager)
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
