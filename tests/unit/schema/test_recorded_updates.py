"""Updates: ratcheting, and validation of status, as the real server does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeyard.apiserver.crds.defaults import default
from nodeyard.kube.fields import FieldError
from nodeyard.kube.json import Object
from nodeyard.schema.compile import compile_schema
from nodeyard.schema.model import Schema
from nodeyard.schema.prune import prune
from nodeyard.schema.validate import validate, validate_status

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> list[Any]:
    return [
        pytest.param(case["name"], case["schema"], attempt, id=f"{case['name']}-{position}")
        for case in json.loads((RECORDED / f"{name}.json").read_text())
        for position, attempt in enumerate(case["tries"])
    ]


def causes(faults: list[FieldError]) -> list[str]:
    return [f"{fault.type.reason} {fault}" for fault in faults]


def read(schema: Schema, **content: Any) -> Object:
    obj = {"apiVersion": "a.b/v1", "kind": "K", "metadata": {"name": "x"}, **content}
    return default(schema, prune(schema, obj)[0])


@pytest.mark.parametrize(("name", "openapi", "attempt"), recorded("updates"))
def test_an_update_gets_the_recorded_causes(name: str, openapi: Any, attempt: Any) -> None:
    spec = {"type": "object", "properties": {"other": {"type": "string"}, name: openapi}}
    schema = compile_schema({"type": "object", "properties": {"spec": spec}})
    new = read(schema, spec={"other": attempt["beside"], name: attempt["new"]})
    old = read(schema, spec={"other": "a", name: attempt["old"]})

    assert causes(validate(schema, new, old)) == attempt["causes"]


@pytest.mark.parametrize(("name", "openapi", "attempt"), recorded("status"))
def test_a_status_gets_the_recorded_causes(name: str, openapi: Any, attempt: Any) -> None:
    status = {"type": "object", "properties": {name: openapi}}
    schema = compile_schema({"type": "object", "properties": {"status": status}})
    new = read(schema, status={name: attempt["value"]})

    assert causes(validate_status(schema, new, read(schema))) == attempt["causes"]


def test_an_unchanged_status_is_tolerated() -> None:
    schema = compile_schema(
        {
            "type": "object",
            "properties": {
                "status": {
                    "type": "object",
                    "properties": {"phase": {"type": "string", "maxLength": 1}, "note": {"type": "string"}},
                }
            },
        }
    )
    old = read(schema, status={"phase": "long"})

    assert validate_status(schema, read(schema, status={"phase": "long", "note": "new"}), old) == []
    assert len(validate_status(schema, read(schema, status={"phase": "longer"}), old)) == 1
