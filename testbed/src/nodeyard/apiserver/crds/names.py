"""Names of a CustomResourceDefinition, which must be free in its group to be accepted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nodeyard.kube.json import Json, Object


class NameCheck(NamedTuple):
    accepted: Object
    """The names that the definition has now."""
    reason: str = "NoConflicts"
    message: str = "no conflicts found"

    @property
    def has_conflict(self) -> bool:
        return self.reason != "NoConflicts"


def check_names(wanted: Object, accepted: Object, others: Iterable[Object]) -> NameCheck:
    """Accept each name that is free, and keep the others. Reports the last conflict, as kube-apiserver does."""
    others = list(others)
    resources = _used(others, ("plural", "singular", "shortNames"))
    kinds = _used(others, ("kind", "listKind"))
    check = NameCheck({**accepted})
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
            check = NameCheck(check.accepted, f"{field[0].upper()}{field[1:]}Conflict", _message(taken))
        else:
            _set(check.accepted, field, wanted.get(field))
    _set(check.accepted, "categories", wanted.get("categories"))
    return check


def _used(others: Iterable[Object], fields: tuple[str, ...]) -> set[str]:
    return {name for names in others for field in fields for name in _listed(names.get(field))}


def _listed(value: Json) -> list[str]:
    if not value:
        return []
    return value if isinstance(value, list) else [value]


def _message(taken: list[str]) -> str:
    faults = [f'"{name}" is already in use' for name in taken]
    return faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"


def _set(names: Object, field: str, value: Json) -> None:
    if value:
        names[field] = value
    else:
        names.pop(field, None)
