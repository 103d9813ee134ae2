"""Taints and tolerations: matching, as kube-scheduler does it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeyard.kube.json import Object
from nodeyard.kube.objects import Taint

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)

_WHOLE = re.compile(r"0|-?[1-9]\d*")
_HARD = (NO_SCHEDULE, NO_EXECUTE)


def is_same(a: Object, b: Object) -> bool:
    """Return True if both taints have the same key and effect, whatever their values."""
    return a.get("key") == b.get("key") and a.get("effect") == b.get("effect")


def taints_of(node: Object) -> list[Object]:
    return (node.get("spec") or {}).get("taints") or []


def tolerates(toleration: Object, taint: Object) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    wanted, present = toleration.get("value") or "", taint.get("value") or ""
    if operator == "Equal":
        return bool(wanted == present)
    return _compares(operator, wanted, present)


def _compares(operator: str, bound: str, present: str) -> bool:
    """Compare as `Gt` and `Lt` do: both values must be integers, the taint's above or below the toleration's."""
    if not _WHOLE.fullmatch(bound) or not _WHOLE.fullmatch(present):
        return False
    limit, value = int(bound), int(present)
    return value > limit if operator == "Gt" else operator == "Lt" and value < limit


def untolerated(
    taints: Iterable[Object], tolerations: list[Object], effects: Iterable[str] = _HARD
) -> Iterator[Object]:
    """Yield the taints that these tolerations do not tolerate; PreferNoSchedule is ignored by default."""
    relevant = tuple(effects)
    for taint in taints:
        if taint.get("effect") in relevant and not any(tolerates(each, taint) for each in tolerations):
            yield taint


def is_tolerated(taints: Iterable[Object], tolerations: list[Object], effects: Iterable[str] = _HARD) -> bool:
    return next(untolerated(taints, tolerations, effects), None) is None


def without(taints: list[Object], key: str, effect: str = "") -> list[Object]:
    """Return the taints without those of this key, and of this effect if it is given."""
    return [taint for taint in taints if taint.get("key") != key or (effect and taint.get("effect") != effect)]


def evicts(before: Iterable[Taint], after: Iterable[Taint]) -> bool:
    """Return True if pods that could stay before may be evicted after."""
    return bool(evicting_taints(before, after))


def evicting_taints(before: Iterable[Taint], after: Iterable[Taint]) -> list[Taint]:
    """Return the taints for which pods may now be evicted: NoExecute taints that are new or changed."""
    known = {(taint.key, taint.value) for taint in before if taint.effect == NO_EXECUTE}
    return [taint for taint in after if taint.effect == NO_EXECUTE and (taint.key, taint.value) not in known]


def render(taint: Object) -> str:
    """Format a taint as kubectl does: `key=value:Effect`."""
    value = taint.get("value")
    return f"{taint.get('key', '')}{f'={value}' if value else ''}:{taint.get('effect', '')}"
