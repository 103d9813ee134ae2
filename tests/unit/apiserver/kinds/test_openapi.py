"""The built-in types as published for clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from nodeyard.apiserver.kinds.catalogue import resources
from nodeyard.apiserver.kinds.descriptions import FIELDS, KINDS
from nodeyard.apiserver.kinds.openapi import openapi_schema, openapi_schemas, reference
from nodeyard.apiserver.kinds.table import definitions

PREFIX = "#/components/schemas/"
GROUPS = sorted({resource.group for resource in resources()})


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for entry in value.values():
            yield from references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from references(entry)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_version_has_all_that_it_refers_to(group: str) -> None:
    schemas = openapi_schemas(group, "v1")
    missing = {ref for ref in references(schemas) if ref.removeprefix(PREFIX) not in schemas}
    assert missing == set()


def test_every_kind_says_which_it_is() -> None:
    for resource in resources():
        schema = openapi_schemas(resource.group, "v1")[resource.versions["v1"].openapi["$ref"].removeprefix(PREFIX)]
        gvk = {"group": resource.group, "version": "v1", "kind": resource.kind}
        assert schema["x-kubernetes-group-version-kind"] == [gvk]


def test_only_kinds_in_openapi_are_published() -> None:
    for name in definitions():
        assert not {"always", "go", "inlined", "pointers", "ref"} & openapi_schema(name).keys()


def test_a_reference_beside_other_facts_is_wrapped() -> None:
    spec = openapi_schema("io.k8s.api.core.v1.Node")["properties"]["spec"]
    assert spec["allOf"] == [reference("io.k8s.api.core.v1.NodeSpec")]
    assert spec["default"] == {}


def test_merge_keys_are_published() -> None:
    volumes = openapi_schema("io.k8s.api.core.v1.PodSpec")["properties"]["volumes"]
    assert volumes["x-kubernetes-patch-merge-key"] == "name"
    assert volumes["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert volumes["x-kubernetes-list-map-keys"] == ["name"]


def test_every_stored_kind_and_its_fields_are_described() -> None:
    for resource in resources():
        published = openapi_schema(resource.versions["v1"].openapi["$ref"].removeprefix(PREFIX))
        assert published["description"], resource.kind
        assert published["properties"]["metadata"]["description"], resource.kind


def test_descriptions_are_of_what_there_is() -> None:
    assert set(KINDS) | set(FIELDS) <= set(definitions())
    for name, fields in FIELDS.items():
        assert set(fields) <= set(definitions()[name]["properties"]), name
