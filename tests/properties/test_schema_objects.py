"""Properties of defaulting, pruning and validation for any schema and object."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeyard.apiserver.crds.defaults import default
from nodeyard.apiserver.crds.schema import definition_faults
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.prune import prune
from nodeyard.schema.validate import validate

NAMES = st.sampled_from("abcde")
TEXT = st.text(alphabet="abc xyz-_é", max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)

STRINGS = st.fixed_dictionaries({"type": st.just("string")}, optional={"maxLength": st.integers(3, 9)})
INTEGERS = st.fixed_dictionaries({"type": st.just("integer")}, optional={"minimum": st.integers(-5, 5)})
SCALARS = STRINGS | INTEGERS | st.just({"type": "boolean"}) | st.just({"type": "string", "enum": ["a", "b"]})


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    properties = draw(st.dictionaries(NAMES, inner, min_size=1, max_size=4))
    needed = draw(st.lists(st.sampled_from(sorted(properties)), unique=True, max_size=2))
    return {"type": "object", "properties": properties, "required": needed}


@st.composite
def _with_extras(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    """Generate a schema, perhaps nullable or with a default."""
    openapi = dict(draw(inner))
    if draw(st.booleans()):
        openapi["default"] = draw(valid_values(openapi))
    if draw(st.booleans()):
        openapi["nullable"] = True
    return openapi


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = inner.map(lambda items: {"type": "array", "items": items})
    maps = inner.map(lambda entry: {"type": "object", "additionalProperties": entry})
    return _with_extras(_objects(inner) | lists | maps)


SCHEMAS = st.recursive(_with_extras(SCALARS), _containers, max_leaves=8)


def valid_values(openapi: Any) -> st.SearchStrategy[Any]:
    """Generate values that the schema accepts, without unknown fields."""
    match openapi:
        case {"enum": choices}:
            return st.sampled_from(choices)
        case {"type": "string"}:
            return st.text(alphabet="abcé", max_size=openapi.get("maxLength", 6))
        case {"type": "integer"}:
            return st.integers(openapi.get("minimum", -9), 99)
        case {"type": "boolean"}:
            return st.booleans()
        case {"type": "array"}:
            return st.lists(valid_values(openapi["items"]), max_size=3)
        case {"additionalProperties": entry}:
            return st.dictionaries(NAMES, valid_values(entry), max_size=3)
        case _:
            needed = openapi["required"]
            fields = {name: valid_values(child) for name, child in openapi["properties"].items()}
            return st.fixed_dictionaries(
                {name: fields[name] for name in needed},
                optional={name: field for name, field in fields.items() if name not in needed},
            )


def root(spec: Any) -> Any:
    return {"type": "object", "properties": {"spec": spec}}


def resource(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}


@st.composite
def schemas_with_valid_values(draw: st.DrawFn) -> Any:
    openapi = draw(SCHEMAS)
    return openapi, draw(valid_values(openapi))


@given(SCHEMAS)
def test_generated_schemas_are_valid(openapi: Any) -> None:
    assert definition_faults(root(openapi), "x") == []


@given(SCHEMAS, JSON)
def test_defaulting_is_idempotent(openapi: Any, value: Any) -> None:
    schema = compile_schema(root(openapi))
    once = default(schema, resource(value))

    assert default(schema, once) is once


@given(SCHEMAS, JSON)
def test_pruning_is_idempotent(openapi: Any, value: Any) -> None:
    schema = compile_schema(root(openapi))
    once, _ = prune(schema, resource(value))
    again, unknown = prune(schema, once)

    assert unknown == []
    assert again is once


@given(SCHEMAS, JSON)
def test_input_is_never_changed(openapi: Any, value: Any) -> None:
    schema = compile_schema(root(openapi))
    obj = resource(value)
    before = copy.deepcopy(obj)

    validate(schema, default(schema, prune(schema, obj)[0]))

    assert obj == before


@given(schemas_with_valid_values())
def test_a_valid_value_has_no_fault_and_no_unknown_field(case: Any) -> None:
    openapi, value = case
    schema = compile_schema(root(openapi))
    obj, unknown = prune(schema, resource(value))

    assert unknown == []
    assert validate(schema, default(schema, obj)) == []


@given(SCHEMAS, JSON)
def test_an_update_without_a_change_is_valid_for_any_stored_object(openapi: Any, value: Any) -> None:
    schema = compile_schema(root(openapi))
    obj = default(schema, prune(schema, resource(value))[0])

    assert validate(schema, obj, copy.deepcopy(obj)) == []
