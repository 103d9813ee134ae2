"""A plan in the making: the steps of a planner add to it, and at the end it is handed over as it is."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.plan.identity import identified
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
"""How many names are listed in facts where only a few can be."""


class Draft:
    def __init__(self, now: datetime) -> None:
        self.now = now
        self.actions: list[Action] = []
        self.writes: dict[str, Write] = {}
        self.blocked: list[Blocked] = []
        self.wake_at: datetime | None = None

    def act(
        self,
        verb: Verb,
        ref: ObjectRef,
        reason: StrEnum,
        facts: Object,
        write: Write,
        *,
        diff: tuple[FieldChange, ...] = (),
        disruption: Disruption = Disruption.NONE,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        part: str = "",
        part_of: str = "",
        shared_by: int = 0,
        is_granted: bool = False,
    ) -> str:
        """Add an action; its id. `part` tells several actions on one object apart."""
        place = f"{ref.cluster}:" if ref.cluster else ""
        where = f"{ref.namespace}/" if ref.namespace else ""
        id = f"{place}{ref.kind}/{where}{ref.name}{f'#{part}' if part else ''}"
        action = Action(
            id=id,
            verb=verb,
            object=ref,
            reason=reason.value,
            facts=facts,
            diff=diff,
            disruption=disruption,
            disrupts=disrupts,
            part_of=part_of,
            shared_by=shared_by,
            is_granted=is_granted,
            after=tuple(each for each in after if each),
        )
        self.actions.append(action)
        self.writes[id] = write
        return id

    def block(self, ref: ObjectRef, reason: StrEnum, facts: Object) -> None:
        self.blocked.append(Blocked(object=ref, reason=reason.value, facts=facts))

    def wake(self, at: datetime) -> None:
        """The plan could differ from this moment on."""
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
        return Planned(plan=identified(plan), writes=self.writes)
