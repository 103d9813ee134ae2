"""Convert allOf, anyOf, oneOf and not: in a CRD they may only restrict fields that are declared outside of them.

A branch without one of its keywords could reject what the chart accepts, so a branch is converted whole or not at all.
"""

from __future__ import annotations

from typing import Any, Final

from nodeyard.capabilities.affinity.planning.keywords import SILENT, UnsupportedError, convert_keyword
from nodeyard.kube.json import Json, Object

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
        result |= _convert(keyword, value, given, declared)
    return result


def _convert(keyword: str, value: Any, given: Object, declared: Object) -> Object:
    if keyword == "properties":
        return {keyword: _properties(value, declared)} if value else {}
    if keyword == "items":
        if not isinstance(declared.get("items"), dict):
            raise UnsupportedError(keyword)
        return {keyword: _branch(value, declared["items"])}
    if keyword in BRANCHES:
        return restriction(keyword, value, declared)
    return convert_keyword(keyword, value, given)


def _properties(value: Any, declared: Object) -> Object:
    known = declared.get("properties") or {}
    if not isinstance(value, dict) or not set(value) <= set(known) - {"metadata"}:
        raise UnsupportedError("properties")
    return {name: _branch(below, known[name]) for name, below in value.items()}
