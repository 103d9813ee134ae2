"""Decoding of objects: pruning, nulls, defaults and metadata, as the real server does."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from nodeyard.apiserver.crds.defaults import default
from nodeyard.apiserver.kinds.go_struct import decode
from nodeyard.kube.json import Json, Object
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.embedded import CoercionError
from nodeyard.schema.model import Schema
from nodeyard.schema.prune import prune
from nodeyard.schema.validate import validate

RECORDED = Path(__file__).parent / "recorded"
OBJECTS = [
    pytest.param(case["name"], case["schema"], attempt, id=f"{case['name']}-{position}")
    for case in json.loads((RECORDED / "reading.json").read_text())
    for position, attempt in enumerate(case["tries"])
]
METADATA = json.loads((RECORDED / "metadata.json").read_text())


def read_metadata(metadata: Json) -> tuple[Object, list[str]]:
    decoded = decode("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", metadata)
    return decoded.object, decoded.unknown


def read(schema: Schema, obj: Object) -> tuple[Object, list[str]]:
    before = copy.deepcopy(obj)
    pruned, unknown = prune(schema, obj, read_metadata)
    read_object = default(schema, pruned)
    assert obj == before, "the object given was changed"
    return read_object, unknown


@pytest.mark.parametrize(("name", "openapi", "attempt"), OBJECTS)
def test_an_object_is_decoded_as_recorded(name: str, openapi: Any, attempt: Any) -> None:
    holder = {"type": "object", "properties": {"v": openapi}}
    schema = compile_schema(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {name: holder}}}}
    )
    given = {"v": attempt["value"]} if "value" in attempt else {}
    obj = {"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}, "spec": {name: given}}
    if "fault" in attempt:
        with pytest.raises(CoercionError) as refused:
            read(schema, obj)
        assert str(refused.value) == attempt["fault"]
        return

    result, unknown = read(schema, obj)

    assert unknown == attempt["unknown"]
    faults = [f"{fault.type.reason} {fault}" for fault in validate(schema, result)]
    assert faults == attempt.get("causes", [])
    if not faults:
        assert result["spec"][name] == ({"v": attempt["result"]} if "result" in attempt else {})


@pytest.mark.parametrize("case", METADATA, ids=lambda case: json.dumps(case["metadata"])[:60])
def test_metadata_is_decoded_as_recorded(case: Any) -> None:
    schema = compile_schema({"type": "object"})
    obj = {"apiVersion": "a.b/v1", "kind": "K", "metadata": case["metadata"]}
    if "fault" in case:
        with pytest.raises(CoercionError) as refused:
            read(schema, obj)
        assert str(refused.value) == case["fault"]
        return

    result, unknown = read(schema, obj)

    assert (result["metadata"], unknown) == (case["result"], case["unknown"])


def test_without_a_decoder_metadata_is_unchanged() -> None:
    obj = {"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x", "foo": 1}}

    pruned, unknown = prune(compile_schema({"type": "object"}), obj)

    assert pruned is obj
    assert unknown == []
