"""Which of the names that a definition wants it gets: in its group nobody else may have them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nodeyard.kube.json import Json, Object


class Verdict(NamedTuple):
    accepted: Object
    """The names that are its own now."""
    reason: str = "NoConflicts"
    message: str = "no conflicts found"

    @property
    def has_conflict(self) -> bool:
        return self.reason != "NoConflicts"


def judge(wanted: Object, accepted: Object, others: Iterable[Object]) -> Verdict:
    """Name by name; what is taken stays as it was. Of several conflicts the last is told, as the real server does."""
    others = list(others)
    resources = _used(others, ("plural", "singular", "shortNames"))
    kinds = _used(others, ("kind", "listKind"))
    verdict = Verdict({**accepted})
    for field, used in (
        ("plural", resources),
        ("singular", resources),
        ("shortNames", resources),
        ("kind", kinds),
        ("listKind", kinds),
    ):
        own = _listed(accepted.get(field))
        taken = [name for name in _listed(wanted.get(field)) if name in used and name not in own]
        if taken:
            verdict = Verdict(verdict.accepted, f"{field[0].upper()}{field[1:]}Conflict", _told(taken))
        else:
            _set(verdict.accepted, field, wanted.get(field))
    _set(verdict.accepted, "categories", wanted.get("categories"))
    return verdict


def _used(others: Iterable[Object], fields: tuple[str, ...]) -> set[str]:
    return {name for names in others for field in fields for name in _listed(names.get(field))}


def _listed(value: Json) -> list[str]:
    if not value:
        return []
    return value if isinstance(value, list) else [value]


def _told(taken: list[str]) -> str:
    told = [f'"{name}" is already in use' for name in taken]
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"


def _set(names: Object, field: str, value: Json) -> None:
    if value:
        names[field] = value
    else:
        names.pop(field, None)
