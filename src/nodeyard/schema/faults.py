"""Validation faults without a path yet.

Checks get the value, not its path: building the path of every field would cost more than all checks together. A fault
starts at the value, and every container on the way up appends its step. The message is built at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from nodeyard.kube.fields import FieldError, FieldErrorType, child
from nodeyard.kube.goformat import quote

# The path that the server prints for a fault without a field.
NO_PATH = "<nil>"


class MapKey(str):
    """A map key (additionalProperties), as opposed to a property name."""

    __slots__ = ()


Step = str | int


@dataclass(slots=True)
class Fault:
    type: FieldErrorType
    value: Any
    detail: Callable[[str], str]
    """Builds the message from the path."""
    has_field: bool = True
    """The server sets the field. For some faults it has the path only in the message."""
    steps: list[Step] = field(default_factory=list)
    """Path steps from the value up to the root."""
    own_steps: int = 0
    """Number of `steps` inside a branch of anyOf and the like, which belong to the checked value itself."""

    def error(self, prefix: str) -> FieldError:
        """Build the FieldError. `prefix` is the path of the walked value; the message has the path from there."""
        path = self._path()
        place = child(prefix, path.removeprefix(".")) if self.has_field and path else prefix
        return FieldError(self.type, place or NO_PATH, self.value, self.detail(path))

    def _path(self) -> str:
        text = ""
        for step in reversed(self.steps):
            if isinstance(step, int):
                text += f"[{step}]"
            elif text or isinstance(step, MapKey):
                text += f".{step}"
            else:
                text = step
        return text


def body_fault(type_: FieldErrorType, value: Any, message: str) -> Fault:
    """Build the common form: `spec.nodes in body should ...`."""
    return Fault(type_, value, lambda path: f"{path} in body {message}")


def plain_fault(type_: FieldErrorType, value: Any, message: str) -> Fault:
    """Build a fault whose message does not repeat the path."""
    return Fault(type_, value, lambda path: message)


def range_fault(message: str) -> Fault:
    """Build a fault of a number's range: `Checked value must be of type integer ... in spec.nodes`."""
    return Fault(FieldErrorType.INVALID, "", lambda path: f"{message} in {path}", has_field=False)


def branch_fault(message: str) -> Fault:
    """Build a fault of anyOf and the like: `"spec.nodes" must validate ...`."""
    return Fault(FieldErrorType.INVALID, "", lambda path: f"{quote(path)} {message}", has_field=False)


def required_fault(name: str) -> Fault:
    """Build the fault of a missing field. It has the field's path, but belongs to the container."""
    return Fault(FieldErrorType.REQUIRED, None, lambda path: "", steps=[MapKey(name)], own_steps=1)


def add_step(step: Step, faults: list[Fault]) -> list[Fault]:
    """Append the step from a container to its child to the child's faults."""
    for fault in faults:
        fault.steps.append(step)
    return faults


def field_errors(faults: Iterable[Fault], prefix: str = "") -> list[FieldError]:
    """Build the FieldErrors without duplicates: several branches often find the same fault."""
    distinct: dict[str, FieldError] = {}
    for fault in faults:
        error = fault.error(prefix)
        distinct.setdefault(str(error), error)
    return list(distinct.values())
