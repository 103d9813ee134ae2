"""The table of role bindings."""

from __future__ import annotations

from datetime import datetime

from nodeyard.apiserver.kinds.printer import AGE, NAME, Printer, age_of, name_of, text_column
from nodeyard.kube.json import Json, Object


def binding_cells(obj: Object, now: datetime) -> list[Json]:
    reference = obj.get("roleRef") or {}
    by_kind: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in obj.get("subjects") or ():
        by_kind.setdefault(subject.get("kind", ""), []).append(_subject(subject))
    return [
        name_of(obj),
        f"{reference.get('kind', '')}/{reference.get('name', '')}",
        age_of(obj, now),
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
        text_column("Role", "The role that is granted."),
        AGE,
        text_column("Users", "Users it is granted to.", wide=True),
        text_column("Groups", "Groups it is granted to.", wide=True),
        text_column("ServiceAccounts", "Service accounts it is granted to.", wide=True),
    ),
    binding_cells,
)
