"""Templates: JSON in which strings may contain `${...}` and some mappings are replaced by a computed value.

    ${object.metadata.name}          a path; a string of one expression keeps the value's type
    ${object.status.startTime|now}   the first that exists
    {$each: object.spec.containers, as: c, value: {name: "${c.name}"}}     one value per item
    {$if: [conditions], then: x, else: y}                                   without else: omitted
    {$call: node, name: "${object.metadata.name}"}                          a template function

Roots: object, now, now_micro, related.NAME, count.NAME, and the names defined by `as`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from nodeyard.kube.json import Json, Object
from nodeyard.kube.timestamps import format_rfc3339, format_rfc3339_micro
from nodeyard.sim.conditions import Subject, compile_conditions
from nodeyard.sim.paths import Path, parse_path

_HOLE = re.compile(r"\$\{([^}]*)\}")


class TemplateError(ValueError):
    """An invalid template, or an unknown name in one."""


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()

Function = Callable[..., Json]


@dataclass(frozen=True, slots=True)
class Scope:
    """The values that a template is rendered with."""

    subject: Subject
    now: datetime
    functions: Mapping[str, Function] = field(default_factory=dict)
    names: Mapping[str, Json] = field(default_factory=dict)

    def root(self, name: str) -> Json:
        if name in self.names:
            return self.names[name]
        if name == "object":
            return self.subject.object
        if name == "now":
            return format_rfc3339(self.now)
        if name == "now_micro":
            return format_rfc3339_micro(self.now)
        raise TemplateError(f'"{name}" is not one of object, now, now_micro, related, count')

    def look_up(self, path: Path) -> Json:
        if path.head == "related":
            other = self.subject.related(str(path.steps[1]))
            return path.tail.tail.get(other.object) if other is not None else None
        if path.head == "count":
            return self.subject.count(str(path.steps[1]))
        return path.tail.get(self.root(path.head))


Template = Callable[[Scope], Json]


def compile_template(spec: Json) -> Template:
    if isinstance(spec, str):
        return _string(spec)
    if isinstance(spec, list):
        return _list(spec)
    if isinstance(spec, dict):
        for word, build in _SPECIAL.items():
            if word in spec:
                return build(spec)
        return _mapping(spec)
    return lambda scope: spec


def _mapping(spec: Object) -> Template:
    members = {key: compile_template(value) for key, value in spec.items()}

    def render(scope: Scope) -> Json:
        rendered = {key: member(scope) for key, member in members.items()}
        return {key: value for key, value in rendered.items() if value is not ABSENT}

    return render


def _list(spec: list[Json]) -> Template:
    items = [compile_template(item) for item in spec]
    return lambda scope: [value for item in items if (value := item(scope)) is not ABSENT]


def _string(text: str) -> Template:
    if "${" not in text:
        return lambda scope: text
    whole = _HOLE.fullmatch(text)
    if whole:
        return _expression(whole[1])
    parts: list[Template] = []
    position = 0
    for hole in _HOLE.finditer(text):
        parts.append(_constant(text[position : hole.start()]))
        parts.append(_expression(hole[1]))
        position = hole.end()
    parts.append(_constant(text[position:]))
    return lambda scope: "".join(_text(part(scope)) for part in parts)


def _constant(text: str) -> Template:
    return lambda scope: text


def _text(value: Json) -> str:
    return "" if value is None else str(value)


def _expression(text: str) -> Template:
    """Compile paths separated by `|`: the first that exists, else null."""
    try:
        paths = [parse_path(part.strip()) for part in text.split("|")]
    except ValueError as error:
        raise TemplateError(str(error)) from None

    def look_up(scope: Scope) -> Json:
        for path in paths:
            value = scope.look_up(path)
            if value is not None:
                return value
        return None

    return look_up


def _each(spec: Object) -> Template:
    _only(spec, "$each", "as", "value")
    items = _expression(spec["$each"])
    name: str = spec.get("as", "item")
    value = compile_template(spec["value"])

    def render(scope: Scope) -> Json:
        found = items(scope) or ()
        rendered = [value(replace(scope, names={**scope.names, name: item})) for item in found]
        return [item for item in rendered if item is not ABSENT]

    return render


def _if(spec: Object) -> Template:
    _only(spec, "$if", "then", "else")
    condition = compile_conditions(spec["$if"])
    then = compile_template(spec["then"])
    otherwise: Template = compile_template(spec["else"]) if "else" in spec else lambda scope: ABSENT
    return lambda scope: (then if condition(scope.subject) else otherwise)(scope)


def _call(spec: Object) -> Template:
    name: str = spec["$call"]
    arguments = {key: compile_template(value) for key, value in spec.items() if key != "$call"}

    def call(scope: Scope) -> Json:
        function = scope.functions.get(name)
        if function is None:
            raise TemplateError(f'no function "{name}"; known: {", ".join(sorted(scope.functions)) or "none"}')
        return function(**{key: argument(scope) for key, argument in arguments.items()})

    return call


_SPECIAL: dict[str, Callable[[Object], Template]] = {"$each": _each, "$if": _if, "$call": _call}


def _only(spec: Mapping[str, Any], *words: str) -> None:
    if strange := sorted(set(spec) - set(words)):
        raise TemplateError(f"{words[0]} cannot be combined with {', '.join(strange)}")
