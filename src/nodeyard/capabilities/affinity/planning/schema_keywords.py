"""Convert the keywords of a JSON schema to their form in a CRD.

    const: a                 enum: [a]
    exclusiveMinimum: 5      minimum: 5, exclusiveMinimum: true
    type: [object, null]     type: object, nullable: true
    type: [integer, string]  x-kubernetes-int-or-string: true

In a CRD, allOf, anyOf, oneOf and not may only restrict fields that are declared outside of them. A branch without one
of its keywords could reject what the chart accepts, so a branch is converted whole or not at all.

Numbers are written as the API server returns them, so that live and desired CRDs can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from nodeyard.kube.json import Json, Object
from nodeyard.schema.patterns import PatternError, compile_pattern

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean"})
SILENT: Final = frozenset(
    {"$schema", "$id", "id", "$comment", "example", "examples", "readOnly", "writeOnly", "deprecated", "externalDocs"}
)
"""Keywords that restrict nothing and are dropped."""
_MAX_COUNT: Final = 2**63 - 1
_LONGEST_PATTERN: Final = 4096


class UnsupportedError(ValueError):
    """A CRD cannot express the keyword or its value."""


def type_of(given: Object) -> Object:
    """Convert the types of a value; empty if any type is allowed."""
    types = given.get("type")
    if given.get(INT_OR_STRING) is True or _is_int_or_string(given.get("anyOf")):
        return {INT_OR_STRING: True}
    if types is None:
        return _infer_type(given)
    listed = types if isinstance(types, list) else [types]
    rest = [each for each in listed if each != "null"]
    nullable: Object = {"nullable": True} if len(rest) < len(listed) else {}
    if len(rest) == 1 and isinstance(rest[0], str) and rest[0] in TYPES:
        return {"type": rest[0], **nullable}
    if sorted(map(str, rest)) == ["integer", "string"]:
        return {INT_OR_STRING: True, **nullable}
    raise UnsupportedError("type")


def _infer_type(given: Object) -> Object:
    """Infer the type of a schema that names none."""
    if isinstance(given.get("properties"), dict) or isinstance(given.get("additionalProperties"), dict):
        return {"type": "object"}
    return {"type": "array"} if isinstance(given.get("items"), dict) else {}


def _is_int_or_string(branches: Json) -> bool:
    if not isinstance(branches, list) or len(branches) != 2:
        return False
    return {"type": "integer"} in branches and {"type": "string"} in branches


def convert_keyword(keyword: str, value: Json, given: Object) -> Object:
    """Convert a keyword; raise UnsupportedError if a CRD cannot express it."""
    convert = _CONVERTERS.get(keyword)
    if convert is None:
        raise UnsupportedError(keyword)
    return convert(keyword, value, given)


def plain(value: Json) -> Json:
    """Return a JSON value with whole numbers as integers, as the API server stores them."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return int(value) if is_whole else value


def _text(keyword: str, value: Json, _given: Object) -> Object:
    if not isinstance(value, str):
        raise UnsupportedError(keyword)
    return {keyword: value} if value else {}


def _pattern(keyword: str, value: Json, given: Object) -> Object:
    found = _text(keyword, value, given)
    if len(value) > _LONGEST_PATTERN:
        raise UnsupportedError(keyword)
    try:
        compile_pattern(value)
    except PatternError as error:
        raise UnsupportedError(keyword) from error
    return found


def _count(keyword: str, value: Json, _given: Object) -> Object:
    value = plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_COUNT:
        raise UnsupportedError(keyword)
    return {keyword: value}


def _number(keyword: str, value: Json, _given: Object) -> Object:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 2**63:
        raise UnsupportedError(keyword)
    if keyword == "multipleOf" and value <= 0:
        raise UnsupportedError(keyword)
    return {keyword: plain(float(value))}


def _exclusive(keyword: str, value: Json, given: Object) -> Object:
    """Convert a flag beside the limit, or, since draft 6, the limit itself."""
    limit = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[keyword]
    if value is False:
        return {}
    if value is True and limit in given:
        return {keyword: True}
    if value is True or limit in given:
        raise UnsupportedError(keyword)
    return {**_number(limit, value, given), keyword: True}


def _enum(keyword: str, value: Json, _given: Object) -> Object:
    if not isinstance(value, list) or not value:
        raise UnsupportedError(keyword)
    distinct = {msgspec.json.encode(each, order="deterministic"): each for each in map(plain, value)}
    return {keyword: list(distinct.values())}


def _const(keyword: str, value: Json, given: Object) -> Object:
    if "enum" in given:
        raise UnsupportedError(keyword)
    return {"enum": [plain(value)]}


def _required(keyword: str, value: Json, _given: Object) -> Object:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UnsupportedError(keyword)
    return {keyword: list(dict.fromkeys(value))} if value else {}


_CONVERTERS: Final[Mapping[str, Callable[[str, Any, Object], Object]]] = {
    "format": _text,
    "pattern": _pattern,
    "enum": _enum,
    "const": _const,
    "required": _required,
    "exclusiveMinimum": _exclusive,
    "exclusiveMaximum": _exclusive,
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _number),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        _count,
    ),
}


# allOf, anyOf, oneOf, not

LISTS: Final = ("allOf", "anyOf", "oneOf")
BRANCHES: Final = (*LISTS, "not")
_WORDS: Final = SILENT | {"title", "description"}


def restriction(keyword: str, value: Json, declared: Object) -> Object:
    """Convert such a keyword against the declared schema; raise UnsupportedError if a CRD cannot express it."""
    if keyword == "not":
        return {keyword: _branch(value, declared)}
    if not isinstance(value, list) or not value:
        raise UnsupportedError(keyword)
    return {keyword: [_branch(each, declared) for each in value]}


def _branch(given: Json, declared: Object) -> Object:
    if not isinstance(given, dict):
        raise UnsupportedError("a branch")
    result: Object = {}
    for keyword, value in given.items():
        if keyword in _WORDS or (keyword == "type" and value == declared.get("type")):
            continue
        result |= _convert_in_branch(keyword, value, given, declared)
    return result


def _convert_in_branch(keyword: str, value: Any, given: Object, declared: Object) -> Object:
    if keyword == "properties":
        return {keyword: _branch_properties(value, declared)} if value else {}
    if keyword == "items":
        if not isinstance(declared.get("items"), dict):
            raise UnsupportedError(keyword)
        return {keyword: _branch(value, declared["items"])}
    if keyword in BRANCHES:
        return restriction(keyword, value, declared)
    return convert_keyword(keyword, value, given)


def _branch_properties(value: Any, declared: Object) -> Object:
    known = declared.get("properties") or {}
    if not isinstance(value, dict) or not set(value) <= set(known) - {"metadata"}:
        raise UnsupportedError("properties")
    return {name: _branch(below, known[name]) for name, below in value.items()}
