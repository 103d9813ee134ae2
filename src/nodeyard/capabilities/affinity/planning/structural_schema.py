"""Convert the JSON schema of an application into a structural schema that a CustomResourceDefinition accepts.

Definitions are written for charts, in JSON schema; a CRD supports less of it. `schema_keywords` rewrites what a CRD can
say otherwise. The rest is left out and reported. The CRD never rejects what the chart accepts: without a keyword the
API server checks less, and undeclared fields are preserved unless the schema forbids them.

`DefaultChecker` checks that a default is valid under its own schema: the API server rejects a CRD with an invalid one.
Users write the schemas, and a check blocks the event loop. Patterns are matched with RE2, as in the API server, because
Python's `re` can backtrack without end. Defaults that would take long otherwise are not checked and left out.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Final

import msgspec

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.schema_keywords import (
    BRANCHES,
    INT_OR_STRING,
    PRESERVE,
    SILENT,
    UnsupportedError,
    convert_keyword,
    plain,
    restriction,
    type_of,
)
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import LABEL_VALUE_MAX
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


MAX_DEPTH: Final = 48
MAX_LENGTH: Final = 256 * 1024
_CLASS: Final[Object] = {
    "type": "string",
    "maxLength": LABEL_VALUE_MAX,
    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$",
}
_CLASS_DESCRIPTION: Final = "AffinityClass of the application. The tenant's default if omitted; none if empty."
# Keywords that are converted by their own methods.
_STRUCTURE: Final = frozenset({"type", "nullable", "properties", "additionalProperties", "items", "default"})
_TEXTS: Final = ("description", "title")
_KNOWN: Final = SILENT | _STRUCTURE | {*_TEXTS, *BRANCHES, INT_OR_STRING, PRESERVE}


class SchemaError(ValueError):
    """The text is not the schema of an object."""


def structural(text: str) -> tuple[Object, tuple[str, ...]]:
    """Return the structural schema of a spec, and the keywords left out, as `oneOf of spec.storage`."""
    given = _parse(text)
    conversion = _Conversion()
    properties = given.get("properties")
    if isinstance(properties, dict):
        given = {**given, "properties": conversion.without_reserved(properties)}
    if isinstance(given.get("required"), list):
        given = {**given, "required": [each for each in given["required"] if not _is_reserved(each)]}
    schema = conversion.root({**given, "type": "object"})
    return schema, tuple(conversion.left_out)


def _parse(text: str) -> Object:
    if len(text) > MAX_LENGTH:
        raise SchemaError(f"it is {len(text)} characters long, of at most {MAX_LENGTH}")
    try:
        given = msgspec.json.decode(text) if text.strip() else {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise SchemaError(f"it is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise SchemaError(f"it is not a JSON object but {msgspec.json.encode(given)[:40].decode()}")
    kind = given.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise SchemaError(f"its type is {kind!r}: the spec of an application is an object")
    return given


def _is_reserved(name: Json) -> bool:
    return isinstance(name, str) and name.startswith(names.RESERVED_PREFIX)


class _Conversion:
    def __init__(self) -> None:
        self.left_out: list[str] = []
        self._checker = DefaultChecker()

    def without_reserved(self, properties: Object) -> Object:
        """Remove keys that are reserved for the platform."""
        for name in properties:
            if _is_reserved(name):
                self.left_out.append(f"properties[{name}] of spec")
        return {name: value for name, value in properties.items() if not _is_reserved(name)}

    def root(self, given: Object) -> Object:
        """Convert the spec itself: it preserves unknown fields, and its affinityClass is declared here."""
        properties = dict(given["properties"]) if isinstance(given.get("properties"), dict) else {}
        theirs = properties.get(names.CLASS_FIELD)
        if isinstance(theirs, dict):
            self.left_out += [f"{each} of spec.{names.CLASS_FIELD}" for each in ("default", "enum") if each in theirs]
        description = theirs.get("description") if isinstance(theirs, dict) else None
        properties[names.CLASS_FIELD] = {**_CLASS, "description": description or _CLASS_DESCRIPTION}
        if given.get("additionalProperties") not in (None, True):
            self._leave_out("additionalProperties", "spec")
        if given.get("default") is not None:
            # A default of the whole spec could set keys that are reserved for the platform.
            self._leave_out("default", "spec")
        open_ended = {**given, "properties": properties, "additionalProperties": True, "default": None}
        node = self.node(open_ended, "spec", 0)
        node.setdefault("description", "Values for the chart, and the AffinityClass.")
        return node

    def node(self, given: Json, path: str, depth: int) -> Object:
        if given is True or given == {}:
            return {PRESERVE: True}
        if not isinstance(given, dict) or depth > MAX_DEPTH:
            self.left_out.append(f"the schema of {path}")
            return {PRESERVE: True}
        node: Object = {word: given[word] for word in _TEXTS if isinstance(given.get(word), str) and given[word]}
        node |= self._convert_type(given, path)
        if node.get("type") == "object":
            node |= self._convert_object(given, path, depth)
        elif node.get("type") == "array":
            node["items"] = self.node(given.get("items", True), f"{path}[]", depth + 1)
        elif "type" not in node and INT_OR_STRING not in node:
            node[PRESERVE] = True
        self._convert_values(node, given, path)
        self._convert_default(node, given, path)
        return node

    def _convert_type(self, given: Object, path: str) -> Object:
        try:
            found = type_of(given)
        except UnsupportedError:
            self._leave_out("type", path)
            return {}
        is_nullable = given.get("nullable") is True or found.get("nullable") is True
        typed = {name: value for name, value in found.items() if name != "nullable"}
        return {**typed, "nullable": True} if is_nullable and path != "spec" else typed

    def _convert_object(self, given: Object, path: str, depth: int) -> Object:
        properties, additional = given.get("properties"), given.get("additionalProperties", True)
        made: Object = {}
        if isinstance(properties, dict) and properties:
            made["properties"] = {
                name: self.node(below, f"{path}.{name}", depth + 1) for name, below in properties.items()
            }
        if isinstance(additional, dict) and not made:
            return {"additionalProperties": self.node(additional, f"{path}.*", depth + 1)}
        if isinstance(additional, dict):
            self._leave_out("additionalProperties", path)
        # A key that only patternProperties declares must not be pruned.
        is_closed = additional is False and not given.get("patternProperties") and given.get(PRESERVE) is not True
        return made if is_closed else {**made, PRESERVE: True}

    def _convert_values(self, node: Object, given: Object, path: str) -> None:
        """Convert the keywords about values, then the branches, which depend on them."""
        for keyword in (each for each in given if each not in _KNOWN):
            try:
                node |= convert_keyword(keyword, given[keyword], given)
            except UnsupportedError:
                self._leave_out(keyword, path)
        for keyword in (each for each in BRANCHES if each in given):
            if INT_OR_STRING in node and keyword == "anyOf":
                continue
            try:
                node |= restriction(keyword, given[keyword], node)
            except (UnsupportedError, RecursionError):
                self._leave_out(keyword, path)

    def _convert_default(self, node: Object, given: Object, path: str) -> None:
        value = plain(given.get("default"))
        if value is None:
            return
        if self._checker.accepts(node, value):
            node["default"] = value
        else:
            self._leave_out("default", path)

    def _leave_out(self, keyword: str, path: str) -> None:
        self.left_out.append(f"{keyword} of {path}")
