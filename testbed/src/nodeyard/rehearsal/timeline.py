"""The result of a rehearsal: what happened when, as data. Times are seconds since the change.

The JSON form (`nodeyard.dev/v1alpha1` Rehearsal) is these structs in camelCase.
"""

from __future__ import annotations

from typing import Final

import msgspec

API_VERSION: Final = "nodeyard.dev/v1alpha1"
KIND: Final = "Rehearsal"


class _Struct(msgspec.Struct, rename="camel"):
    """Base of the wire types."""


class Step(_Struct, kw_only=True):
    """Equal actions of one key: the same capability, key and reason."""

    capability: str
    key: str
    reason: str
    text: str
    """The first action, in the past tense."""
    begin: float
    end: float
    count: int = 0
    objects: list[str] = []
    """The first objects of the actions."""


class Change(_Struct, kw_only=True):
    """Something that happened to a node, or a fault."""

    at: float
    what: str
    object: str


class Move(_Struct, kw_only=True):
    """A pod that had to leave its node, and the pod that replaced it."""

    pod: str
    node: str
    reason: str
    """Evicted, Deleted, or the reason of its DisruptionTarget condition."""
    at: float
    has_owner: bool = False
    """It has a controller, which replaces it."""
    replacement: str = ""
    to: str = ""
    """The node of the replacement; empty if it fits nowhere yet or the pod has no controller."""
    placed: float | None = None
    ready: float | None = None


class HeldPlan(_Struct, kw_only=True):
    """A plan that waits for an approval."""

    capability: str
    key: str
    id: str
    text: str
    since: float
    until: float | None = None


class Refusal(_Struct, kw_only=True):
    """An object that the operator could not change as desired, or a budget that refused evictions."""

    source: str
    """The capability, or `PodDisruptionBudget`."""
    object: str
    reason: str
    text: str
    since: float
    until: float | None = None
    is_waiting: bool = False


class Capacity(_Struct, kw_only=True):
    """Free capacity of the usable nodes of one zone and class over time."""

    zone: str
    node_class: str
    points: list[tuple[float, int, float, float]] = []
    """Time, usable nodes, free CPUs, free GiB of memory."""

    @property
    def lowest(self) -> tuple[float, int, float, float]:
        """The point with the least free CPU."""
        return min(self.points, key=lambda point: (point[2], point[0]))


class Check(_Struct, kw_only=True):
    """An assertion and whether it holds."""

    text: str
    holds: bool


class Timeline(_Struct, kw_only=True):
    """The result of a rehearsal."""

    converged: bool
    seconds: float
    """Until the last change before it converged, or until the end of the rehearsal."""
    reasons: list[str] = []
    """Why it did not converge."""
    profile: str
    seed: int
    start: str
    source: str
    """The bundle, cluster or scenario."""
    steps: list[Step] = []
    changes: list[Change] = []
    moves: list[Move] = []
    held: list[HeldPlan] = []
    refusals: list[Refusal] = []
    capacity: list[Capacity] = []
    facts: dict[str, float] = {}
    """The numbers that assertions may use, by name."""
    checks: list[Check] = []
    notes: list[str] = []
    """Limits of this result, for people."""

    @property
    def passes(self) -> bool:
        return self.converged and all(each.holds for each in self.checks)


def to_json(timeline: Timeline) -> bytes:
    body = {"apiVersion": API_VERSION, "kind": KIND, **msgspec.to_builtins(timeline)}
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"
