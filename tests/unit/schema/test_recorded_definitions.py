"""CRDs: the causes with which the real server refuses them on create."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nodeyard.apiserver.crds.schema import definition_faults
from nodeyard.kube.fields import FieldError, invalid
from nodeyard.kube.json import Object

CASES = json.loads((Path(__file__).parent / "recorded" / "definitions.json").read_text())
PATH = "spec.validation.openAPIV3Schema"
RULE = {"rule": "self != oldSelf"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_definition_gets_the_recorded_causes(case: Any) -> None:
    faults = definition_faults(case["schema"], PATH, has_status=case.get("has_status", False))

    found = [f"{fault.type.reason} {fault}" for fault in faults]
    assert (sorted(found) if case.get("any_order") else found) == case["causes"]


class Rules:
    """A CEL compiler that keeps its calls and refuses every rule."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None]] = []

    def __call__(self, node: Object, path: str, unmatched: str | None) -> list[FieldError]:
        self.calls.append((path, unmatched))
        return [invalid(f"{path}.x-kubernetes-validations[0].rule", node["x-kubernetes-validations"][0], "no")]


def definition(**fields: Object) -> Object:
    return {"type": "object", "properties": fields}


def test_rules_are_compiled_at_every_node_that_has_some() -> None:
    rules = Rules()
    item = {"type": "object", "properties": {"k": {"type": "string"}}, "x-kubernetes-validations": [RULE]}
    spec = {"type": "object", "properties": {"l": {"type": "array", "items": item}}}

    faults = definition_faults({**definition(spec=spec), "x-kubernetes-validations": [RULE]}, "x", rule_faults=rules)

    inner = "x.properties[spec].properties[l]"
    assert rules.calls == [(f"{inner}.items", inner), ("x", None)]
    assert [fault.field for fault in faults] == [
        f"{inner}.items.x-kubernetes-validations[0].rule",
        "x.x-kubernetes-validations[0].rule",
    ]


def test_items_of_a_list_with_keys_can_be_matched() -> None:
    rules = Rules()
    item = {
        "type": "object",
        "properties": {"k": {"type": "string"}},
        "required": ["k"],
        "x-kubernetes-validations": [RULE],
    }
    keyed = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}

    definition_faults(definition(spec=keyed), "x", rule_faults=rules)

    assert rules.calls == [("x.properties[spec].items", None)]


def test_rules_are_not_compiled_at_invalid_nodes() -> None:
    rules = Rules()
    broken = {"type": "string", "x-kubernetes-list-type": "set", "x-kubernetes-validations": [RULE]}
    sound = {"type": "string", "x-kubernetes-validations": [RULE]}
    root = {**definition(a=broken, b=sound), "x-kubernetes-validations": [RULE]}

    definition_faults(root, "x", rule_faults=rules)

    assert [path for path, _ in rules.calls] == ["x.properties[b]"]


def test_no_rule_is_compiled_if_the_schema_is_not_structural() -> None:
    rules = Rules()

    definition_faults(
        definition(a={}, b={"type": "string", "x-kubernetes-validations": [RULE]}), "x", rule_faults=rules
    )

    assert rules.calls == []


def test_paths_start_at_the_schema() -> None:
    faults = definition_faults(definition(spec={}), "spec.versions[0].schema.openAPIV3Schema")

    assert str(faults[0]) == (
        "spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: "
        "must not be empty for specified object fields"
    )
