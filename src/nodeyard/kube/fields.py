"""Field errors, worded as the Kubernetes API server words them.

`FieldError` is the counterpart of apimachinery's field.Error: type, path, bad value, detail. Its `str()` is the text of
a cause in a 422 Status, and the Status message is those texts joined.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodeyard.kube import goformat


class FieldErrorType(Enum):
    """The reason of a cause, and the start of its message."""

    REQUIRED = ("FieldValueRequired", "Required value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    NOT_FOUND = ("FieldValueNotFound", "Not found")
    INTERNAL = ("InternalError", "Internal error")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")

    @property
    def reason(self) -> str:
        return self.value[0]

    @property
    def words(self) -> str:
        return self.value[1]


# Types whose message never repeats the bad value.
_WITHOUT_VALUE = {
    FieldErrorType.REQUIRED,
    FieldErrorType.FORBIDDEN,
    FieldErrorType.TOO_LONG,
    FieldErrorType.TOO_MANY,
    FieldErrorType.INTERNAL,
}


class _Omitted:
    def __repr__(self) -> str:
        return "OMITTED"


OMITTED: Final = _Omitted()
"""Placeholder for a bad value that is not shown: a whole object or list that a rule rejects."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """One error of one field."""

    type: FieldErrorType
    field: str
    value: Any = None
    detail: str = ""

    @property
    def message(self) -> str:
        """The message of the cause, without the field."""
        text = self.type.words
        if self.type not in _WITHOUT_VALUE and self.value is not OMITTED:
            text += f": {render_value(self.value)}"
        if self.detail:
            text += f": {self.detail}"
        return text

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(FieldErrorType.REQUIRED, field, detail=detail)


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(FieldErrorType.INVALID, field, value, detail)


def not_supported(field: str, value: Any, supported: list[str]) -> FieldError:
    quoted = ", ".join(f'"{choice}"' for choice in sorted(supported))
    return FieldError(FieldErrorType.NOT_SUPPORTED, field, value, f"supported values: {quoted}" if quoted else "")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(FieldErrorType.DUPLICATE, field, value)


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(FieldErrorType.FORBIDDEN, field, detail=detail)


def too_long(field: str, limit: int, unit: str = "bytes") -> FieldError:
    noun = unit.removesuffix("s") if limit == 1 else unit
    return FieldError(FieldErrorType.TOO_LONG, field, detail=f"may not be more than {limit} {noun}")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    noun = "item" if limit == 1 else "items"
    return FieldError(FieldErrorType.TOO_MANY, field, detail=f"{actual}: must have at most {limit} {noun}")


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(FieldErrorType.NOT_FOUND, field, value)


def render_value(value: Any) -> str:
    """Format a bad value as the server does: strings quoted, numbers as Go prints them, the rest as compact JSON."""
    if isinstance(value, str):
        return goformat.quote(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return goformat.number(value)
    return goformat.plain_json(value)


def child(path: str, name: str) -> str:
    """Return the path of a field: `spec` and `nodes` make `spec.nodes`; the root is the empty string."""
    return f"{path}.{name}" if path else name


def index(path: str, position: int) -> str:
    return f"{path}[{position}]"


def key(path: str, name: str) -> str:
    """Return the path of a map entry: `metadata.labels[app]`."""
    return f"{path}[{name}]"
