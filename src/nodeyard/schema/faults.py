"""A fault found while walking a value, before it is known where in the object that value stands.

Checks know the value, not its path: building the path of every field would cost more than all the checks together. A
fault starts at the value itself and every container on the way up adds its step; only then is it put into words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from nodeyard.kube.fields import FieldError, FieldErrorType, child
from nodeyard.kube.gotext import quote

# What the server calls the place of a fault that has none.
NOWHERE = "<nil>"


class Entry(str):
    """The key of a map (additionalProperties), as opposed to the name of a property."""

    __slots__ = ()


Step = str | int


@dataclass(slots=True)
class Fault:
    type: FieldErrorType
    value: Any
    detail: Callable[[str], str]
    """The words, given the path."""
    is_placed: bool = True
    """Whether the server says at which field; of some faults it names the path in the words alone."""
    steps: list[Step] = field(default_factory=list)
    """From the value up to the root."""
    inner: int = 0
    """How many of `steps` lie within the value that is judged: those taken in a branch of anyOf and the like."""

    def error(self, prefix: str) -> FieldError:
        """`prefix` is where the walked value stands; the words count from that value."""
        path = self._path()
        place = child(prefix, path.removeprefix(".")) if self.is_placed and path else prefix
        return FieldError(self.type, place or NOWHERE, self.value, self.detail(path))

    def _path(self) -> str:
        text = ""
        for step in reversed(self.steps):
            if isinstance(step, int):
                text += f"[{step}]"
            elif text or isinstance(step, Entry):
                text += f".{step}"
            else:
                text = step
        return text


def judged(type_: FieldErrorType, value: Any, words: str) -> Fault:
    """The common form: `spec.nodes in body should ...`."""
    return Fault(type_, value, lambda path: f"{path} in body {words}")


def stated(type_: FieldErrorType, value: Any, words: str) -> Fault:
    """A fault whose words do not repeat the path."""
    return Fault(type_, value, lambda path: words)


def unplaced(words: str) -> Fault:
    """A fault of a number's range: `Checked value must be of type integer ... in spec.nodes`."""
    return Fault(FieldErrorType.INVALID, "", lambda path: f"{words} in {path}", is_placed=False)


def of_branches(words: str) -> Fault:
    """A fault of anyOf and the like: `"spec.nodes" must validate ...`."""
    return Fault(FieldErrorType.INVALID, "", lambda path: f"{quote(path)} {words}", is_placed=False)


def missing(name: str) -> Fault:
    """The field that is not there has a path, but it is its container that is judged."""
    return Fault(FieldErrorType.REQUIRED, None, lambda path: "", steps=[Entry(name)], inner=1)


def beneath(step: Step, faults: list[Fault]) -> list[Fault]:
    """The faults of a child, as its container sees them."""
    for fault in faults:
        fault.steps.append(step)
    return faults


def errors(faults: Iterable[Fault], prefix: str = "") -> list[FieldError]:
    """In words and each once: several branches often find the same."""
    distinct: dict[str, FieldError] = {}
    for fault in faults:
        error = fault.error(prefix)
        distinct.setdefault(str(error), error)
    return list(distinct.values())
