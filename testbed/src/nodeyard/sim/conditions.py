"""Conditions on an object (the `where` of a stage), compiled to functions.

    {path: status.phase, is: Pending}
    {path: spec.replicas, default: 1, not: {count: machines}}
    {related: node, where: [{unmarked: failed}]}
    {any: [...]}  {all: [...]}  {none: [...]}

Comparisons: is, not, in, above, below, contains, exists. The right side is a value, {path: ...} or {count: ...}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from nodeyard.kube.json import Json, Object
from nodeyard.sim.paths import parse_path


class Subject(Protocol):
    """An object with its marks, its counts and the objects related to it."""

    @property
    def object(self) -> Object: ...

    def is_marked(self, mark: str) -> bool:
        """Return whether the object has a mark: something that only the simulation knows, such as `failed`."""

    def count(self, name: str) -> int:
        """Return the value of a count of the stage files for this object."""

    def related(self, relation: str) -> Subject | None:
        """Return the object that this one refers to."""


Condition = Callable[[Subject], bool]
Operand = Callable[[Subject], Json]


class ConditionError(ValueError):
    """A condition that cannot be compiled."""


def compile_conditions(specs: Sequence[Object]) -> Condition:
    """Compile conditions that must all hold."""
    conditions = [compile_condition(spec) for spec in specs]
    if len(conditions) == 1:
        return conditions[0]
    return lambda subject: all(condition(subject) for condition in conditions)


def compile_condition(spec: Object) -> Condition:
    if not isinstance(spec, dict):
        raise ConditionError(f"a condition is a mapping, not {spec!r}")
    for word, build in _GROUPS.items():
        if word in spec:
            return build(spec)
    return _comparison(spec)


def compile_operand(spec: Json) -> Operand:
    """Compile a literal, {path: ...} or {count: ...}."""
    if isinstance(spec, dict) and ("path" in spec or "count" in spec):
        operand, rest = _left(spec)
        if rest:
            raise ConditionError(f"unknown: {', '.join(sorted(rest))}")
        return operand
    return lambda subject: spec


def references(specs: Sequence[Object]) -> tuple[set[str], set[str]]:
    """Return the names of the relations and of the counts that conditions read."""
    relations: set[str] = set()
    counts: set[str] = set()
    for spec in specs:
        _collect(spec, relations, counts)
    return relations, counts


def _collect(spec: Json, relations: set[str], counts: set[str]) -> None:
    if isinstance(spec, list):
        for item in spec:
            _collect(item, relations, counts)
    elif isinstance(spec, dict):
        if isinstance(spec.get("related"), str):
            relations.add(spec["related"])
        if isinstance(spec.get("count"), str):
            counts.add(spec["count"])
        for value in spec.values():
            _collect(value, relations, counts)


# groups


def _any(spec: Object) -> Condition:
    conditions = _several(spec, "any")
    return lambda subject: any(condition(subject) for condition in conditions)


def _all(spec: Object) -> Condition:
    conditions = _several(spec, "all")
    return lambda subject: all(condition(subject) for condition in conditions)


def _none(spec: Object) -> Condition:
    conditions = _several(spec, "none")
    return lambda subject: not any(condition(subject) for condition in conditions)


def _several(spec: Object, word: str) -> list[Condition]:
    _only(spec, word)
    return [compile_condition(item) for item in spec[word]]


def _related(spec: Object) -> Condition:
    _only(spec, "related", "where")
    relation: str = spec["related"]
    condition = compile_conditions(spec.get("where") or ())

    def holds(subject: Subject) -> bool:
        other = subject.related(relation)
        return other is not None and condition(other)

    return holds


def _marked(spec: Object) -> Condition:
    _only(spec, "marked")
    mark: str = spec["marked"]
    return lambda subject: subject.is_marked(mark)


def _unmarked(spec: Object) -> Condition:
    _only(spec, "unmarked")
    mark: str = spec["unmarked"]
    return lambda subject: not subject.is_marked(mark)


_GROUPS: dict[str, Callable[[Object], Condition]] = {
    "any": _any,
    "all": _all,
    "none": _none,
    "related": _related,
    "marked": _marked,
    "unmarked": _unmarked,
}


# comparisons


def _comparison(spec: Object) -> Condition:
    left, rest = _left(spec)
    if len(rest) != 1:
        raise ConditionError(f"one of {', '.join(COMPARISONS)} is needed, found {', '.join(sorted(rest)) or 'none'}")
    ((word, value),) = rest.items()
    compare = COMPARISONS.get(word)
    if compare is None:
        raise ConditionError(f'"{word}" is none of {", ".join(COMPARISONS)}')
    right = compile_operand(value)
    return lambda subject: compare(left(subject), right(subject))


def _left(spec: Object) -> tuple[Operand, Object]:
    rest = dict(spec)
    if "count" in rest:
        name: str = rest.pop("count")
        return (lambda subject: subject.count(name)), rest
    if "path" not in rest:
        raise ConditionError(f"a condition begins with path, count, {' or '.join(_GROUPS)}: {spec!r}")
    try:
        path = parse_path(rest.pop("path"))
    except ValueError as error:
        raise ConditionError(str(error)) from None
    if "default" not in rest:
        return (lambda subject: path.get(subject.object)), rest
    default = rest.pop("default")

    def read(subject: Subject) -> Json:
        value = path.get(subject.object)
        return default if value is None else value

    return read, rest


def _contains(left: Any, right: Any) -> bool:
    return isinstance(left, (list, dict, str)) and right in left


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "is": lambda left, right: bool(left == right),
    "not": lambda left, right: bool(left != right),
    "in": lambda left, right: left in right,
    "above": lambda left, right: (left or 0) > right,
    "below": lambda left, right: (left or 0) < right,
    "contains": _contains,
    "exists": lambda left, right: (left is not None) == right,
}


def _only(spec: Object, *words: str) -> None:
    if strange := sorted(set(spec) - set(words)):
        raise ConditionError(f"{words[0]} cannot be combined with {', '.join(strange)}")
