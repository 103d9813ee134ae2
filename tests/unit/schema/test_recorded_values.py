"""Creates: the real server's causes, with its messages and in its order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeyard.apiserver.crds.defaults import default
from nodeyard.kube.fields import FieldError
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.prune import prune
from nodeyard.schema.validate import validate

RECORDED = Path(__file__).parent / "recorded"
VALUES = [
    pytest.param(case["name"], case["schema"], attempt, id=f"{case['name']}-{position}")
    for case in json.loads((RECORDED / "values.json").read_text())
    for position, attempt in enumerate(case["tries"])
]
ROOTS = [
    pytest.param(f"Rootcase{place}", case["schema"], attempt, id=f"{case['name']}-{position}")
    for place, case in enumerate(json.loads((RECORDED / "roots.json").read_text()))
    for position, attempt in enumerate(case["tries"])
]


def causes(faults: list[FieldError]) -> list[str]:
    return [f"{fault.type.reason} {fault}" for fault in faults]


@pytest.mark.parametrize(("name", "openapi", "attempt"), VALUES)
def test_a_value_gets_the_recorded_causes(name: str, openapi: Any, attempt: Any) -> None:
    spec = {"type": "object", "properties": {name: openapi}}
    schema = compile_schema({"type": "object", "properties": {"spec": spec}})
    obj = {"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}, "spec": {name: attempt["value"]}}

    found = causes(validate(schema, default(schema, prune(schema, obj)[0])))

    assert (sorted(found) if attempt.get("any_order") else found) == attempt["causes"]


@pytest.mark.parametrize(("kind", "openapi", "attempt"), ROOTS)
def test_a_whole_object_gets_the_recorded_causes(kind: str, openapi: Any, attempt: Any) -> None:
    schema = compile_schema(openapi)
    obj = {"apiVersion": "a.b/v1", "kind": kind, "metadata": {"name": "x"}, **attempt["object"]}

    assert causes(validate(schema, default(schema, prune(schema, obj)[0]))) == attempt["causes"]
