"""Builder of a plan: the steps of a planner add actions and blocked objects, then take the finished plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from nodeyard.plan.identity import assign_id
from nodeyard.plan.message import Message
from nodeyard.plan.model import (
    Action,
    Blocked,
    Decision,
    Disruption,
    FieldChange,
    ObjectRef,
    Plan,
    Planned,
    Verb,
    Write,
)

NAMED: Final = 10
"""Number of names that a fact lists at most."""


class PlanBuilder:
    def __init__(self, now: datetime, waits: Collection[str] = ()) -> None:
        """`waits` are the reasons of objects that wait and proceed without intervention."""
        self.now = now
        self._waits = waits
        self.actions: list[Action] = []
        self.writes: dict[str, Write] = {}
        self.blocked: list[Blocked] = []
        self.wake_at: datetime | None = None
        self.open_groups: set[str] = set()
        """Approval groups with later actions (`Planned.open_groups`)."""

    def act(
        self,
        verb: Verb,
        ref: ObjectRef,
        message: Message,
        write: Write,
        *,
        diff: tuple[FieldChange, ...] = (),
        disruption: Disruption = Disruption.NONE,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        part: str = "",
        approval_group: str = "",
        group_nodes: int = 0,
        group_managed: int = 0,
        group_root: ObjectRef | None = None,
        already_approved: bool = False,
        always_asks: bool = False,
    ) -> str:
        """Add an action and return its id. `part` distinguishes several actions on one object."""
        place = f"{ref.cluster}:" if ref.cluster else ""
        where = f"{ref.namespace}/" if ref.namespace else ""
        id = f"{place}{ref.kind}/{where}{ref.name}{f'#{part}' if part else ''}"
        action = Action(
            id=id,
            verb=verb,
            object=ref,
            reason=message.reason,
            facts=message,
            diff=diff,
            disruption=disruption,
            disrupts=disrupts,
            approval_group=approval_group,
            group_nodes=group_nodes,
            group_managed=group_managed,
            group_root=group_root,
            already_approved=already_approved,
            always_asks=always_asks,
            after=tuple(each for each in after if each),
        )
        self.actions.append(action)
        self.writes[id] = write
        return id

    def block(self, ref: ObjectRef, message: Message) -> None:
        is_waiting = message.reason in self._waits
        self.blocked.append(Blocked(object=ref, reason=message.reason, facts=message, is_waiting=is_waiting))

    def wake(self, at: datetime) -> None:
        """Plan again at this time at the latest: the plan may differ from then on."""
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at

    def planned(self, capability: str, key: str, decisions: Iterable[Decision] = ()) -> Planned:
        plan = Plan(
            capability=capability,
            key=key,
            actions=tuple(self.actions),
            blocked=tuple(self.blocked),
            decisions=tuple(decisions),
            wake_at=self.wake_at,
        )
        return Planned(plan=assign_id(plan), writes=self.writes, open_groups=tuple(sorted(self.open_groups)))
