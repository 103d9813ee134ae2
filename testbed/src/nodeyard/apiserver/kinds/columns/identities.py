"""The table of role bindings."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age, name, text
from nodeyard.kube.json import Json, Object


def binding_cells(obj: Object, now: datetime) -> list[Json]:
    reference = obj.get("roleRef") or {}
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        by_kind.setdefault(subject.get("kind", ""), []).append(_subject(subject))
    return [
        name(obj),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        age(obj, now),
        ", ".join(by_kind["User"]),
        ", ".join(by_kind["Group"]),
        ", ".join(by_kind["ServiceAccount"]),
    ]


def _subject(subject: Object) -> str:
    named = str(subject.get("name", ""))
    return f"{subject['namespace']}/{named}" if subject.get("namespace") else named


BINDING = Printer(
    (
        NAME,
        text("Role", "The role that is granted."),
        AGE,
        text("Users", "Users it is granted to.", wide=True),
        text("Groups", "Groups it is granted to.", wide=True),
        text("ServiceAccounts", "Service accounts it is granted to.", wide=True),
    ),
    binding_cells,
)
