"""Paths into an object: `status.conditions[type=Ready].status`.

A step is a key (`spec`, or quoted in brackets where it has dots: `labels["topology.kubernetes.io/zone"]`), an index
(`[0]`), or a selector of the list item whose field has a value (`[type=Ready]`). A missing field and null are None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from nodeyard.kube.json import Json

_STEP = re.compile(
    r"""(?:^|\.)(?P<key>[A-Za-z_][A-Za-z0-9_-]*)"""
    r"""|\["(?P<quoted>[^"]+)"\]"""
    r"""|\[(?P<index>\d+)\]"""
    r"""|\[(?P<field>[A-Za-z][A-Za-z0-9]*)=(?P<value>[^\]]+)\]"""
)


@dataclass(frozen=True, slots=True)
class ItemSelector:
    field: str
    value: str


Step = str | int | ItemSelector


@dataclass(frozen=True, slots=True)
class Path:
    text: str
    steps: tuple[Step, ...]

    def get(self, value: Json) -> Json:
        for step in self.steps:
            if value is None:
                return None
            value = _take(value, step)
        return value

    @property
    def head(self) -> str:
        """Return the first key."""
        first = self.steps[0]
        return first if isinstance(first, str) else ""

    @property
    def tail(self) -> Path:
        return Path(self.text, self.steps[1:])


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """Parse a path; raise ValueError with the invalid part."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (match["key"] and bool(steps) != text.startswith(".", position)):
            raise ValueError(f'"{text}" is not a path: unexpected "{text[position:]}"')
        steps.append(_step(match))
        position = match.end()
    if not steps:
        raise ValueError("a path must not be empty")
    return Path(text, tuple(steps))


def _step(match: re.Match[str]) -> Step:
    if match["index"]:
        return int(match["index"])
    if match["field"]:
        return ItemSelector(match["field"], match["value"])
    return match["key"] or match["quoted"]


def _take(value: Json, step: Step) -> Json:
    if isinstance(step, str):
        return value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return None
    if isinstance(step, int):
        return value[step] if step < len(value) else None
    return next((item for item in value if isinstance(item, dict) and item.get(step.field) == step.value), None)
