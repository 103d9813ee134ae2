"""Field selectors: `spec.nodeName=a,status.phase!=Failed`. They support only equality."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from nodeyard.kube.selectors.labels import SelectorError


class FieldRequirement(NamedTuple):
    field: str
    operator: Literal["=", "!="]
    value: str

    def __str__(self) -> str:
        return f"{self.field}{self.operator}{_escape(self.value)}"


class FieldSelector:
    """Equalities and inequalities that all must hold; a missing field counts as empty."""

    __slots__ = ("_equal", "_unequal", "requirements")

    def __init__(self, requirements: Iterable[FieldRequirement] = ()) -> None:
        self.requirements = tuple(requirements)
        self._equal: dict[tuple[str, str], None] = {}
        self._unequal: dict[str, set[str]] = {}
        for name, operator, value in self.requirements:
            if operator == "=":
                self._equal[name, value] = None
            else:
                self._unequal.setdefault(name, set()).add(value)

    @property
    def empty(self) -> bool:
        return not self.requirements

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all(fields.get(name, "") == value for name, value in self._equal) and all(
            fields.get(name, "") not in values for name, values in self._unequal.items()
        )

    def exact(self, field: str) -> str | None:
        """Return the only value that the selector allows for a field; None if it allows several."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.operator == "=":
                return requirement.value
        return None

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSelector):
            return NotImplemented
        return self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash(self.requirements)


_TERM_RE: Final = re.compile(r"(?:[^\\,]|\\.?)+", re.DOTALL)
_OPERATION_RE: Final = re.compile(r"!=|==|=")


def parse_fields(text: str) -> FieldSelector:
    """Parse the `fieldSelector` of a list. The caller checks which fields the kind has."""
    requirements = []
    for term in sorted(_TERM_RE.findall(text)):
        operation = _OPERATION_RE.search(term)
        if operation is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        name, value = term[: operation.start()], _unescape(term[operation.end() :])
        if name or value:
            requirements.append(FieldRequirement(name, "!=" if operation[0] == "!=" else "=", value))
    return FieldSelector(requirements)


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescape(text: str) -> str:
    value: list[str] = []
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            escaped = next(letters, "")
            if escaped not in ("\\", ",", "="):
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            value.append(escaped)
        elif letter in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(letter)}")
        else:
            value.append(letter)
    return "".join(value)
