"""Rules of a whole resource: their place, their inputs, and ratcheting."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.cel import CompiledRules, compile_rules, rule_faults
from nodeyard.schema.compile import compile_schema

NAME_IS_Y = {"rule": "self.metadata.name == 'y'"}
LARGE = {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]}


def rules_of(openapi: dict[str, Any]) -> CompiledRules:
    rules, errors = compile_rules(compile_schema({"type": "object", **openapi}))
    assert errors == []
    return rules


def spec_of(**properties: Any) -> dict[str, Any]:
    return {"properties": {"spec": {"type": "object", "properties": properties}}}


def told(rules: CompiledRules, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    return [str(error) for error in rules.evaluate(obj, old)]


def test_a_schema_without_rules_compiles_to_nothing() -> None:
    rules = rules_of(spec_of(a={"type": "integer"}))

    assert not rules
    assert told(rules, {"spec": {"a": 1}}) == []


def test_a_rule_at_the_root_has_no_field() -> None:
    rules = rules_of({"x-kubernetes-validations": [NAME_IS_Y]})

    assert told(rules, {"metadata": {"name": "x"}}) == ["<nil>: Invalid value: failed rule: self.metadata.name == 'y'"]


def test_a_rule_at_the_root_that_fails_to_run_has_no_field() -> None:
    rules = rules_of(
        {
            "x-kubernetes-validations": [{"rule": "self.spec.a == 'y'"}],
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }
    )

    assert told(rules, {"metadata": {"name": "x"}}) == [
        "<nil>: Invalid value: \"object\": no such key: spec evaluating rule: self.spec.a == 'y'"
    ]


def test_a_rule_at_the_root_may_report_at_a_field() -> None:
    rules = rules_of(
        {
            "x-kubernetes-validations": [{"rule": "self.spec.a == 'y'", "fieldPath": ".spec.a"}],
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }
    )

    assert told(rules, {"spec": {"a": "z"}}) == ["spec.a: Invalid value: failed rule: self.spec.a == 'y'"]


def test_the_root_shows_its_kind_and_of_its_metadata_only_the_names() -> None:
    rules = rules_of({"x-kubernetes-validations": [{"rule": "self.kind == 'K' && self.apiVersion == 'g/v1'"}]})
    _, errors = compile_rules(
        compile_schema({"type": "object", "x-kubernetes-validations": [{"rule": "has(self.metadata.labels)"}]})
    )

    assert told(rules, {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}}) == []
    assert "undefined field 'labels'" in str(errors[0])


def test_values_hidden_by_dyn_stay_hidden() -> None:
    rules = rules_of({"x-kubernetes-validations": [{"rule": "has(dyn(self.metadata).labels)"}]})

    assert told(rules, {"metadata": {"name": "x", "labels": {"a": "b"}}}) != []


def test_an_old_violation_that_is_unchanged_is_a_warning() -> None:
    rules = rules_of(spec_of(a=LARGE, b={"type": "integer"}))
    warnings: list[str] = []

    errors = rules.evaluate({"spec": {"a": 1, "b": 2}}, {"spec": {"a": 1, "b": 1}}, warnings)

    assert errors == []
    assert warnings == ["spec.a: Invalid value: 1: failed rule: self > 5"]


def test_an_old_violation_that_changes_is_an_error() -> None:
    rules = rules_of(spec_of(a=LARGE))
    warnings: list[str] = []

    errors = rules.evaluate({"spec": {"a": 2}}, {"spec": {"a": 1}}, warnings)

    assert [str(error) for error in errors] == ["spec.a: Invalid value: 2: failed rule: self > 5"]
    assert warnings == []


def test_an_object_is_not_changed_by_validation() -> None:
    rules = rules_of(spec_of(a=LARGE, when={"type": "string", "format": "date-time"}, **{"x-y": {"type": "number"}}))
    obj = {"spec": {"a": 7, "when": "2025-01-01T00:00:00Z", "x-y": 1}}

    rules.evaluate(obj, obj)

    assert obj == {"spec": {"a": 7, "when": "2025-01-01T00:00:00Z", "x-y": 1}}


def test_a_list_of_hundreds_is_not_too_long_to_be_compared_with_itself() -> None:
    unique = {"rule": "self.all(x, self.exists_one(y, x.name == y.name))"}
    items = {"type": "object", "properties": {"name": {"type": "string"}}}
    rules = rules_of(spec_of(a={"type": "array", "items": items, "x-kubernetes-validations": [unique]}))
    names = [{"name": str(number)} for number in range(300)]

    assert told(rules, {"spec": {"a": names}}) == []
    assert len(told(rules, {"spec": {"a": [*names, {"name": "7"}]}})) == 1


def test_a_rule_over_budget_is_stopped_and_no_other_is_evaluated() -> None:
    endless = "self.all(x, self.all(y, self.all(z, self.all(w, x + y + z + w >= 0))))"
    lists = {"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": endless}]}
    rules = rules_of(spec_of(a=lists, b=LARGE))

    assert told(rules, {"spec": {"a": list(range(100)), "b": 1}}) == [
        "spec.a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further validation "
        f"rules will be run due to call cost exceeds limit for rule: {endless}"
    ]


def test_all_rules_of_an_object_share_a_budget() -> None:
    long = "lists.range(1000).all(x, lists.range(600).all(y, y >= 0))"
    items = {"type": "integer", "x-kubernetes-validations": [{"rule": long}]}
    rules = rules_of(spec_of(a={"type": "array", "items": items}))

    assert told(rules, {"spec": {"a": list(range(20))}})[-1].endswith(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )


@pytest.mark.parametrize("path", ["", "spec.versions[1].schema.openAPIV3Schema"])
def test_errors_say_where_in_the_definition_they_are(path: str) -> None:
    openapi = {"type": "object", "properties": {"a": {"type": "array", "items": {**LARGE}}}}
    openapi["properties"]["a"]["items"]["x-kubernetes-validations"] = [{"rule": "true"}, {"rule": "foo"}]

    _, errors = compile_rules(compile_schema(openapi), path)

    prefix = f"{path}." if path else ""
    assert [error.field for error in errors] == [f"{prefix}properties[a].items.x-kubernetes-validations[1].rule"]


def test_a_rule_that_does_not_compile_leaves_the_others_in_force() -> None:
    rules, errors = compile_rules(
        compile_schema({"type": "object", "x-kubernetes-validations": [{"rule": "foo"}, NAME_IS_Y]})
    )

    assert len(errors) == 1
    assert len(told(rules, {"metadata": {"name": "x"}})) == 1


def test_a_single_node_can_be_asked_about() -> None:
    faults = rule_faults("x")
    node = {"type": "object", "x-kubernetes-validations": [{"rule": "self.metadata.name != oldSelf.kind"}]}

    assert faults(node, "x", None) == []
    assert "undefined field 'metadata'" in str(faults(node, "x.properties[a]", None)[0])
    assert faults({**node, "x-kubernetes-embedded-resource": True}, "x.properties[a]", None) == []
    assert "uncorrelatable portion of the schema within x.items" in str(faults(node, "x", "x.items")[0])
