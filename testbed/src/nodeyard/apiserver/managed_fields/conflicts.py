"""Errors of apply: conflicts and invalid configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeyard.apiserver.managed_fields.fieldset import FieldSet, Path, difference, field_set, members
from nodeyard.apiserver.managed_fields.managers import Identity
from nodeyard.apiserver.managed_fields.paths import render
from nodeyard.kube.json import Object


class ApplyError(Exception):
    """A failed apply, with status code, reason and message of the response."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


def bad_request(message: str) -> ApplyError:
    return ApplyError(400, "BadRequest", message)


def failure(message: str) -> ApplyError:
    return ApplyError(500, "", message)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A field that the configuration would change and that another manager owns."""

    manager: Identity
    path: Path

    @property
    def field(self) -> str:
        return render(self.path)


class ApplyConflict(ApplyError):
    """The configuration would change fields of other managers and was not forced."""

    def __init__(self, conflicts: list[Conflict]) -> None:
        super().__init__(409, "Conflict", _message(conflicts))
        self.conflicts = conflicts

    def causes(self) -> list[Object]:
        """Return the causes in the details of the Status."""
        return [
            {
                "reason": "FieldManagerConflict",
                "message": f"conflict with {conflict.manager}",
                "field": conflict.field,
            }
            for conflict in self.conflicts
        ]

    def beyond(self, allowed: FieldSet) -> list[Conflict]:
        """Return the conflicts on other fields than these."""
        return [conflict for conflict in self.conflicts if difference(field_set(conflict.path), allowed)]


def conflicts_of(contested: Mapping[Identity, FieldSet]) -> list[Conflict]:
    ordered = sorted(contested, key=Identity.text)
    return [Conflict(identity, path) for identity in ordered for path in members(contested[identity])]


def _message(conflicts: list[Conflict]) -> str:
    if len(conflicts) == 1:
        return f"Apply failed with 1 conflict: conflict with {conflicts[0].manager}: {conflicts[0].field}"
    lines = []
    for manager in dict.fromkeys(conflict.manager for conflict in conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {conflict.field}" for conflict in conflicts if conflict.manager == manager]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)
