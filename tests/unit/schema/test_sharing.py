"""Defaulting and pruning share unchanged parts and never change their input."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.crds.defaults import default
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.prune import prune, prune_value

SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "default": 3},
                    "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "template": {
                        "type": "object",
                        "default": {},
                        "properties": {"b": {"type": "string", "default": "x"}},
                    },
                },
            }
        },
    }
)


def resource(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}


def test_an_unchanged_object_is_returned_itself() -> None:
    obj = resource(size=1, items=[{"a": "x"}], labels={"k": "v"}, template={"b": "y"})

    assert prune(SCHEMA, obj) == (obj, [])
    assert prune(SCHEMA, obj)[0] is obj
    assert default(SCHEMA, obj) is obj


def test_pruning_one_item_shares_the_others() -> None:
    obj = resource(items=[{"a": "x"}, {"a": "y", "zz": 1}], labels={"k": "v"})

    pruned, unknown = prune(SCHEMA, obj)

    assert unknown == ["spec.items[1].zz"]
    assert pruned["spec"]["items"][0] is obj["spec"]["items"][0]
    assert pruned["spec"]["labels"] is obj["spec"]["labels"]
    assert obj["spec"]["items"][1] == {"a": "y", "zz": 1}


def test_a_default_is_added_beside_shared_values() -> None:
    obj = resource(items=[{"a": "x"}], template={})

    filled = default(SCHEMA, obj)

    assert filled["spec"] == {"items": [{"a": "x"}], "template": {"b": "x"}, "size": 3}
    assert filled["spec"]["items"] is obj["spec"]["items"]
    assert obj["spec"] == {"items": [{"a": "x"}], "template": {}}


def test_dropping_a_null_shares_the_rest() -> None:
    obj = resource(size=1, labels=None, template={"b": "y"})

    filled = default(SCHEMA, obj)

    assert filled["spec"] == {"size": 1, "template": {"b": "y"}}
    assert filled["spec"]["template"] is obj["spec"]["template"]


def test_metadata_of_a_built_in_type_is_pruned() -> None:
    metadata = {"type": "object", "properties": {"name": {"type": "string"}, "resourceVersion": {"type": "string"}}}
    schema = compile_schema({"type": "object", "properties": {"kind": {"type": "string"}, "metadata": metadata}})

    assert prune(schema, {"kind": "K", "metadata": {"name": "x", "foo": 1}}) == (
        {"kind": "K", "metadata": {"name": "x"}},
        ["metadata.foo"],
    )


def test_a_part_of_an_object_can_be_pruned_alone() -> None:
    schema = SCHEMA.properties["spec"]

    assert prune_value(schema, {"size": 1, "zz": 2}) == {"size": 1}
    assert prune_value(schema, "text") == "text"
