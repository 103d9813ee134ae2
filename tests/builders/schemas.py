"""Random JSON schemas: valid ones, and ones with arbitrary keywords and values."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-4, 4) | st.text(max_size=3),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.text(max_size=3), below, max_size=2),
    max_leaves=4,
)
FIELDS = st.sampled_from(["a", "b", "metadata", "kind", "apiVersion", "affinityClass", "_x", "", "a.b/c"])
_TYPE = st.sampled_from(["object", "array", "string", "integer", "number", "boolean"])
_TYPES = _TYPE | st.lists(_TYPE | st.just("null"), max_size=3) | st.sampled_from(["null", "date", 7])
_COUNT = st.integers(-1, 5) | st.sampled_from([1.0, 1.5, "1", True, 2**70])
_NUMBER = st.integers(-5, 5) | st.floats(-2, 2) | st.sampled_from(["1", None, 2**70])
_PATTERN = st.sampled_from(["^a+$", "(", "(?=a)", "a{1,2000}", "[[:alpha:]]", "\\d", "", 3])
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_WORDS = ("title", "description", "format", "$id", "$ref", "$schema", "$comment", "id")
_FLAGS = (
    "nullable",
    "uniqueItems",
    "readOnly",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "additionalItems",
)


def schemas(depth: int = 3) -> st.SearchStrategy[Any]:
    """Generate schemas of objects, as a CRD may have them."""
    return _objects(depth).map(lambda node: {**node, "type": "object"})


def _node(depth: int) -> st.SearchStrategy[Any]:
    scalars = _mixed(st.fixed_dictionaries({"type": _TYPES}, optional={"default": JSON, "enum": _ENUM}), depth)
    if depth == 0:
        return scalars | st.booleans()
    return scalars | _objects(depth) | _arrays(depth) | st.sampled_from([{"x-kubernetes-int-or-string": True}, 7])


def _objects(depth: int) -> st.SearchStrategy[Any]:
    below = _node(depth - 1)
    sound = st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(FIELDS, below, max_size=3),
            "required": st.lists(FIELDS, max_size=2),
            "default": st.just({}) | JSON,
        },
    )
    return _mixed(sound, depth)


def _arrays(depth: int) -> st.SearchStrategy[Any]:
    items = {"items": _node(depth - 1), "default": st.just([]) | JSON}
    return _mixed(st.fixed_dictionaries({"type": st.just("array")}, optional=items), depth)


def _mixed(sound: st.SearchStrategy[Any], depth: int) -> st.SearchStrategy[Any]:
    """Generate a valid node with a few more keywords, which may not fit its type."""
    choices = {**_plain(), **(_structure(depth) if depth else {})}
    keyword = st.sampled_from(sorted(choices))
    extra = st.lists(keyword.flatmap(lambda each: st.tuples(st.just(each), choices[each])), max_size=3).map(dict)
    return st.builds(lambda node, more: {**node, **more}, sound, extra)


_ENUM = st.lists(JSON, max_size=3)


def _plain() -> dict[str, st.SearchStrategy[Any]]:
    return {
        "type": _TYPES,
        "enum": _ENUM,
        "const": JSON,
        "default": JSON,
        "pattern": _PATTERN,
        "required": st.lists(FIELDS | st.just(3), max_size=3),
        "exclusiveMinimum": _NUMBER | st.booleans(),
        "exclusiveMaximum": _NUMBER | st.booleans(),
        "x-kubernetes-list-type": st.sampled_from(["set", "map", "atomic", "odd"]),
        "x-kubernetes-list-map-keys": st.lists(FIELDS, max_size=2),
        "x-kubernetes-map-type": st.sampled_from(["atomic", "granular", "odd"]),
        "x-kubernetes-validations": st.just([{"rule": "self.a == 1"}]),
        "format": st.sampled_from(["date-time", "int32", "ipv4", "odd", "duration", "byte", 3]),
        **dict.fromkeys(_COUNTS, _COUNT),
        **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
        **dict.fromkeys(_WORDS, st.text(max_size=3)),
        **dict.fromkeys(_FLAGS, st.booleans()),
    }


def _structure(depth: int) -> dict[str, st.SearchStrategy[Any]]:
    below = _node(depth - 1)
    branch = _restriction(depth - 1) | below
    branches = st.lists(branch, max_size=2)
    return {
        "additionalProperties": below,
        "patternProperties": st.dictionaries(st.just("^x"), below, max_size=1),
        "definitions": st.dictionaries(FIELDS, below, max_size=1),
        "dependencies": st.dictionaries(FIELDS, below, max_size=1),
        "items": below | st.lists(below, max_size=2),
        "not": branch,
        "if": below,
        **dict.fromkeys(("allOf", "anyOf", "oneOf"), branches),
    }


def _restriction(depth: int) -> st.SearchStrategy[Any]:
    """Generate a branch of allOf, anyOf or oneOf that mostly restricts."""
    optional: dict[str, st.SearchStrategy[Any]] = {
        "required": st.lists(FIELDS, max_size=2),
        "minLength": st.integers(0, 3),
        "maximum": st.integers(0, 3),
        "description": st.just("d"),
        "type": _TYPE,
    }
    if depth:
        inner = _restriction(depth - 1)
        optional["properties"] = st.dictionaries(FIELDS, inner, max_size=2)
        optional["items"] = inner
        optional["anyOf"] = st.lists(inner, max_size=2)
    return st.fixed_dictionaries({}, optional=optional)
