"""Which tolerations of a pod answer for which taints, and for how long. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from nodeyard.apiserver.controllers.node_facts import Taint

FOREVER = float("inf")


class Toleration(msgspec.Struct, frozen=True, rename="camel"):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def covers(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


def seconds_tolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> float:
    """How long a pod may stay: nothing where a taint is not tolerated, else the shortest that a toleration grants."""
    shortest = FOREVER
    for taint in taints:
        used = next((toleration for toleration in tolerations if toleration.covers(taint)), None)
        if used is None:
            return 0.0
        if used.toleration_seconds is not None:
            shortest = min(shortest, max(used.toleration_seconds, 0))
    return shortest
