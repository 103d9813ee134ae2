"""Whether a default is a value that its own schema accepts: one that it refuses would make the server refuse the whole.

Schemas are what users write, and the process stands still while one is judged. Python's `re` can take for ever over a
pattern, so none gets there: RE2 searches, as in the server. What would take long in any other way is not judged.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Final

import msgspec

from nodeyard.capabilities.affinity.planning.restrictions import BRANCHES
from nodeyard.kube.json import Json, Object

MOST_SEARCHES: Final = 64
"""Of patterns in texts, within one schema: RE2 compiles each anew."""
LONGEST_TEXT: Final = 4096
"""That is searched."""
MOST_WORK: Final = 10_000_000
"""Characters of a default times those of what it is judged by: a list may be compared with every choice for each."""


class Judge:
    """Of the defaults of one schema."""

    def __init__(self) -> None:
        self._searches: set[tuple[str, str]] = set()

    def accepts(self, node: Object, value: Json) -> bool:
        """False also where it cannot be told."""
        # With CEL around it: not where nobody defines applications.
        from nodeyard.schema.definition.defaults import default_faults

        relevant = _relevant(node, [value])
        if _length(relevant) * _length(value) > MOST_WORK:
            return False
        try:
            faults = default_faults({**relevant, "default": value}, "")
        except OverflowError:
            # A number that is larger than any that the server knows.
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
    """What these values are judged by, patterns and cases that depend on one apart.

    Defaults further down have been judged for themselves.
    """
    made = {
        word: said
        for word, said in node.items()
        if word not in ("pattern", "default") and not (word in BRANCHES and _names_pattern(said))
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


def _names_pattern(said: Json) -> bool:
    if isinstance(said, dict):
        return "pattern" in said or any(map(_names_pattern, said.values()))
    return isinstance(said, list) and any(map(_names_pattern, said))


def _length(value: Json) -> int:
    return len(msgspec.json.encode(value))


@lru_cache(maxsize=1024)
def _found(pattern: str, text: str) -> bool:
    from nodeyard.schema.cel.errors import EvaluationError
    from nodeyard.schema.cel.patterns import re2_finds

    try:
        return re2_finds(pattern, text)
    except EvaluationError:
        return False
