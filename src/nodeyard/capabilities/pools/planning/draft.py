"""A plan in the making: the steps add to it, and at the end it is handed over as it is."""

from __future__ import annotations

from datetime import datetime

from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.model import Action, Blocked, Disruption, FieldChange, ObjectRef, Verb, Write

NAMED = 10
"""How many names are listed where only a few can be."""


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
        reason: Reason,
        facts: Object,
        write: Write,
        *,
        diff: tuple[FieldChange, ...] = (),
        disruption: Disruption = Disruption.NONE,
        disrupts: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        part: str = "",
        part_of: str = "",
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
            is_granted=is_granted,
            after=after,
        )
        self.actions.append(action)
        self.writes[id] = write
        return id

    def block(self, ref: ObjectRef, reason: Reason, facts: Object) -> None:
        self.blocked.append(Blocked(object=ref, reason=reason.value, facts=facts))

    def wake(self, at: datetime) -> None:
        if self.wake_at is None or at < self.wake_at:
            self.wake_at = at
