"""The wire form of the dashboard: camelCase JSON; a default value is omitted, and an absent field is empty.

Tiles are rows (`tiles.Row`); attention, rollouts and places are the structs of `runtime.surface`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.surface import Rung

LISTED: Final = 500
"""Bound of each list of the feed; `totals` counts all."""
GROUPED: Final = 100
"""Bound of the groups of one plan."""
SAMPLES: Final = 5
"""Objects that a group names."""

encode: Final = msgspec.json.Encoder().encode


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of the wire types."""


class Problem(Struct, frozen=True):
    message: str
    remedy: str = ""


class Refused(Exception):
    """A request that is not answered; the page shows both sentences."""

    def __init__(self, status: int, message: str, remedy: str = "", **more: Json) -> None:
        super().__init__(message)
        self.status = status
        self.problem = Problem(message=message, remedy=remedy)
        self.more = more
        """Further fields of the answer."""


class ClusterInfo(Struct, frozen=True):
    name: str
    server: str
    version: str = ""


class ViewerInfo(Struct, frozen=True):
    name: str
    can_approve: bool = False


class OperatorInfo(Struct, frozen=True):
    capability: str
    state: str
    """Running, Observing or Gone."""
    version: str = ""
    holder: str = ""
    limit: str = ""
    observe: str = ""
    renewed: datetime | None = None


class Group(Struct, frozen=True):
    """Equal actions of a plan: the same verb, kind, reason, disruption and changed fields."""

    id: str
    verb: str
    kind: str
    reason: str
    message: str
    disruption: str
    count: int
    nodes: int = 0
    """Disrupted nodes."""
    samples: tuple[ObjectRef, ...] = ()
    after: tuple[str, ...] = ()
    """Groups that run before."""
    is_new: bool = False
    """The actions are there only because of the change that is tried out."""


class Held(Struct, frozen=True):
    id: str
    reason: str
    message: str
    nodes: int
    actions: int
    groups: tuple[Group, ...] = ()


class BlockedGroup(Struct, frozen=True):
    reason: str
    message: str
    count: int
    samples: tuple[ObjectRef, ...] = ()


class PlanSummary(Struct, frozen=True):
    capability: str
    key: str
    id: str = ""
    held: Held | None = None
    groups: tuple[Group, ...] = ()
    groups_total: int = 0
    """Number of groups, if they are cut."""
    blocked: tuple[BlockedGroup, ...] = ()
    blocked_total: int = 0
    """Number of groups of refusals, if they are cut."""


class PodWithBudget(Struct, frozen=True):
    namespace: str
    name: str
    budget: str = ""


class Budget(Struct, frozen=True):
    namespace: str
    name: str
    allowed: int


class ApprovalPreview(Struct, frozen=True):
    """Consequences of approving a held plan."""

    id: str
    nodes: int
    actions: int
    later_steps: tuple[str, ...] = ()
    pods: tuple[PodWithBudget, ...] = ()
    budgets: tuple[Budget, ...] = ()
    truncated: bool = False


class Found(Struct, frozen=True):
    """A search result."""

    kind: str
    api_version: str
    name: str
    namespace: str = ""
    capability: str = ""


class Note(Struct, frozen=True):
    reason: str
    message: str


class Step(Rung, frozen=True):
    """A rung of a ladder, for one decision."""

    state: str
    """passed, decided or notReached."""


class CandidateRow(Struct, frozen=True):
    name: str
    reason: str
    message: str
    is_taken: bool = False
    failed: str | None = None
    """The requirement that the candidate does not meet."""


class Change(Struct, frozen=True):
    message: str
    command: str = ""


class WhyAnswer(Struct, frozen=True):
    by: str
    object: ObjectRef
    sentence: str
    reason: str
    since: datetime | None = None
    notes: tuple[Note, ...] = ()
    ladder: tuple[Step, ...] = ()
    requirements: tuple[str, ...] = ()
    candidates: tuple[CandidateRow, ...] = ()
    total: int = 0
    would_change: tuple[Change, ...] = ()


class Why(Struct, frozen=True):
    object: ObjectRef
    answers: tuple[WhyAnswer, ...] = ()


class WhatIf(Struct, frozen=True):
    plans: tuple[PlanSummary, ...] = ()
    gone: tuple[PlanSummary, ...] = ()
    """Groups of the present plans that would not be there."""
    markdown: str = ""
    warnings: tuple[str, ...] = ()


class NodeFit(Struct, frozen=True):
    name: str
    is_taken: bool = False
    failed: str | None = None
    message: str = ""


class CouldRun(Struct, frozen=True):
    verdict: str
    """Yes, No or Refused."""
    sentence: str
    requirements: tuple[str, ...] = ()
    nodes: tuple[NodeFit, ...] = ()
    total: int = 0
    by_requirement: dict[str, int] = {}


def to_plain(value: Any) -> Any:
    return msgspec.to_builtins(value)
