"""The table of built-in types, and the schemas compiled from it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nodeyard.apiserver.kinds.compiler import schema
from nodeyard.apiserver.kinds.table import PATH, definition_of, definitions, go_type, struct_name
from nodeyard.schema.model import UNSET

CORE = "io.k8s.api.core.v1."
SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def at(definition: str, *path: str) -> Any:
    """The schema at a path; `*` goes into a list or map."""
    found = schema(definition)
    for name in path:
        found = (found.items or found.additional) if name == "*" else found.properties[name]  # type: ignore[assignment]
    return found


def test_the_table_is_small_sorted_and_has_one_definition_a_line() -> None:
    text = PATH.read_text()
    names = [line.split('"')[1] for line in text.splitlines()[1:-1]]
    assert len(text) < 400_000
    assert names == sorted(names) == list(definitions())


def test_the_table_has_no_sentences() -> None:
    """A field may be called `description`; nothing is described."""
    for name, facts in definitions().items():
        assert "description" not in facts, name
        assert not any("description" in prop for prop in facts.get("properties", {}).values()), name


def test_every_definition_compiles() -> None:
    for name in definitions():
        assert schema(name) is schema(name)


def test_lists_know_how_they_merge() -> None:
    taints = at(CORE + "Node", "spec", "taints")
    assert (taints.list_type, taints.patch_strategy) == ("atomic", "")
    conditions = at(CORE + "Node", "status", "conditions")
    assert (conditions.list_type, conditions.list_map_keys) == ("map", ("type",))
    assert (conditions.patch_strategy, conditions.patch_merge_key) == ("merge", "type")
    assert at(CORE + "PodSpec", "volumes").patch_strategy == "merge,retainKeys"
    assert at("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "finalizers").list_type == "set"


def test_structs_and_maps_know_how_they_merge() -> None:
    deployment = "io.k8s.api.apps.v1.Deployment"
    assert at(deployment, "spec", "strategy").patch_strategy == "retainKeys"
    assert at(deployment, "spec", "selector").map_type == "atomic"
    assert at(CORE + "PodSpec", "nodeSelector").map_type == "atomic"
    assert at(CORE + "PodSpec", "nodeSelector", "*").type == "string"


def test_only_keys_of_lists_keep_a_default() -> None:
    port = at(CORE + "Pod", "spec", "containers", "*", "ports", "*")
    assert port.properties["protocol"].default == "TCP"
    assert port.properties["hostPort"].default is UNSET
    assert at(CORE + "Pod", "spec").default is UNSET


def test_values_with_a_form_of_their_own_are_marked() -> None:
    assert at(CORE + "Node", "status", "capacity", "*").format == "quantity"
    assert at(CORE + "HTTPGetAction", "port").int_or_string
    assert at(CORE + "Secret", "data", "*").format == "byte"
    assert at(CORE + "Node", "metadata", "creationTimestamp").format == "date-time"
    assert at("io.k8s.api.apps.v1.ControllerRevision", "data").preserve_unknown


def test_a_recursive_type_leads_back_to_itself() -> None:
    props = schema(SCHEMA)
    assert props.properties["not"] is props
    assert props.properties["properties"].additional is props


@pytest.mark.parametrize(
    ("group", "kind", "definition"),
    [
        ("", "Node", CORE + "Node"),
        ("policy", "Eviction", "io.k8s.api.policy.v1.Eviction"),
        ("autoscaling", "Scale", "io.k8s.api.autoscaling.v1.Scale"),
        ("", "DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"),
        ("authorization.k8s.io", "SelfSubjectAccessReview", "io.k8s.api.authorization.v1.SelfSubjectAccessReview"),
        ("example.com", "Node", None),
    ],
)
def test_a_kind_is_found_by_group_and_name(group: str, kind: str, definition: str | None) -> None:
    assert definition_of(group, "v1", kind) == definition


def test_go_types_are_printed_as_in_go() -> None:
    props = definitions()[CORE + "PodSpec"]["properties"]
    assert go_type(props["containers"]) == "[]v1.Container"
    assert go_type(props["nodeSelector"]) == "map[string]string"
    assert go_type(props["terminationGracePeriodSeconds"]) == "int64"
    assert go_type(definitions()[CORE + "Secret"]["properties"]["data"]) == "map[string][]uint8"
    assert definitions()[CORE + "Taint"]["go"]["effect"] == "v1.TaintEffect"
    assert struct_name(CORE + "Taint") == "Taint"


def test_the_table_is_plain_json() -> None:
    assert json.loads(PATH.read_text())["kubernetes"].startswith("v1.")
