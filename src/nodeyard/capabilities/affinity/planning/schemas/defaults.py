"""Check that a default is valid under its own schema: the API server rejects a CRD with an invalid default.

Users write the schemas, and a check blocks the event loop. Patterns are matched with RE2, as in the API server, because
Python's `re` can backtrack without end. Defaults that would take long otherwise are not checked and left out.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Final

import msgspec

from nodeyard.capabilities.affinity.planning.schemas.keywords import BRANCHES
from nodeyard.kube.json import Json, Object
from nodeyard.schema.default_values import default_faults
from nodeyard.schema.patterns import PatternError, compile_pattern

MOST_SEARCHES: Final = 64
"""Maximum number of pattern searches in one schema: RE2 compiles each pattern again."""
LONGEST_TEXT: Final = 4096
"""Maximum length of a string that is searched."""
MOST_WORK: Final = 10_000_000
"""Maximum product of the sizes of default and schema: each item of a list may be compared with every enum value."""


class DefaultChecker:
    """Checks the defaults of one schema."""

    def __init__(self) -> None:
        self._searches: set[tuple[str, str]] = set()

    def accepts(self, node: Object, value: Json) -> bool:
        """Return whether the default is valid; False also if it cannot be checked."""
        relevant = _relevant(node, [value])
        if _length(relevant) * _length(value) > MOST_WORK:
            return False
        try:
            faults = default_faults({**relevant, "default": value}, "")
        except OverflowError:
            # The number is larger than the API server supports.
            return False
        return not faults and self._is_matched(node, value)

    def _is_matched(self, node: Object, value: Json) -> bool:
        if any(word in node and _names_pattern(node[word]) for word in BRANCHES):
            return False
        if isinstance(value, str):
            return "pattern" not in node or self._is_found(node["pattern"], value)
        if isinstance(value, list):
            return all(self._is_matched(node.get("items", {}), each) for each in value)
        if isinstance(value, dict):
            fields, others = node.get("properties", {}), node.get("additionalProperties", {})
            return all(self._is_matched(fields.get(name, others), each) for name, each in value.items())
        return True

    def _is_found(self, pattern: str, text: str) -> bool:
        self._searches.add((pattern, text))
        if len(self._searches) > MOST_SEARCHES or len(text) > LONGEST_TEXT:
            return False
        return _found(pattern, text)


def _relevant(node: Object, values: list[Json]) -> Object:
    """Return the part of the schema that applies to these values, without patterns and branches that contain one.

    Nested defaults have been checked on their own.
    """
    made = {
        word: value
        for word, value in node.items()
        if word not in ("pattern", "default") and not (word in BRANCHES and _names_pattern(value))
    }
    members: dict[str, list[Json]] = {}
    for value in values:
        for name, member in value.items() if isinstance(value, dict) else ():
            members.setdefault(name, []).append(member)
    if "properties" in made:
        fields = made["properties"]
        made["properties"] = {name: _relevant(fields[name], found) for name, found in members.items() if name in fields}
    if "additionalProperties" in made:
        made["additionalProperties"] = _relevant(made["additionalProperties"], list(chain(*members.values())))
    if "items" in made:
        made["items"] = _relevant(made["items"], list(chain(*(each for each in values if isinstance(each, list)))))
    return made


def _names_pattern(value: Json) -> bool:
    if isinstance(value, dict):
        return "pattern" in value or any(map(_names_pattern, value.values()))
    return isinstance(value, list) and any(map(_names_pattern, value))


def _length(value: Json) -> int:
    return len(msgspec.json.encode(value))


@lru_cache(maxsize=1024)
def _found(pattern: str, text: str) -> bool:
    try:
        return compile_pattern(pattern).matches(text)
    except PatternError:
        return False
