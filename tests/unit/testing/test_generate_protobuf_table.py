"""Deriving the table of messages from `.proto` files and definitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeyard.apiserver.kinds.protobuf import Field, Messages
from nodeyard.testing.generate_protobuf_table import derive, go_protos, render

CORE = "io.k8s.api.core.v1."


def derived(properties: dict[str, list[str]], **messages: str) -> dict[str, list[Field]]:
    """Derive the table from definitions with these properties and from these messages, by short names."""
    definitions: dict[str, Any] = {
        CORE + name: {"properties": {field: {} for field in fields}} if fields else {}
        for name, fields in properties.items()
    }
    found = derive(definitions, lambda _: messages)
    return {name.removeprefix(CORE): list(rows) for name, rows in found.items()}


def test_fields_come_by_number_with_shape_and_type() -> None:
    thing = """
  // A comment.
  optional string name = 3;

  repeated int32 counts = 1;
  map<string, bytes> files = 2;
"""

    found = derived({"Thing": ["name", "counts", "files"]}, Thing=thing)

    assert found["Thing"] == [
        Field(1, "counts", "list", "int32"),
        Field(2, "files", "map", "bytes"),
        Field(3, "name", "one", "string"),
    ]


def test_messages_are_called_by_their_definition() -> None:
    thing = (
        "  optional Other near = 1;\n"
        "  map<string, .k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON> far = 2;\n"
    )
    definitions: dict[str, Any] = {f"{CORE}Thing": {"properties": {"near": {}, "far": {}}}}

    found = derive(definitions, lambda _: {"Thing": thing, "Other": "", "JSON": ""})

    assert [row.type for row in found[f"{CORE}Thing"]] == [
        f"{CORE}Other",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    ]


def test_names_are_those_of_the_json_form() -> None:
    thing = "  optional string uID = 1;\n  optional string xKubernetesListType = 2;\n  optional string ref = 3;\n"

    found = derived({"Thing": ["uid", "x-kubernetes-list-type", "$ref"]}, Thing=thing)

    assert [row.name for row in found["Thing"]] == ["uid", "x-kubernetes-list-type", "$ref"]


def test_an_embedded_struct_belongs_to_its_parent() -> None:
    found = derived(
        {"Volume": ["name", "hostPath"]},
        Volume="  optional string name = 1;\n  optional VolumeSource volumeSource = 2;\n",
        VolumeSource="  optional string HostPath = 1;\n",
    )

    assert found["Volume"][1] == Field(2, "", "inline", f"{CORE}VolumeSource")
    assert found["VolumeSource"] == [Field(1, "hostPath", "one", "string")]


def test_a_type_with_a_json_form_of_its_own_keeps_its_fields() -> None:
    found = derived({"Time": [], "Raw": []}, Time="  optional int64 seconds = 1;\n", Raw="  optional bytes raw = 1;\n")

    assert found["Time"] == [Field(1, "seconds", "one", "int64")]
    assert found["Raw"] == [Field(1, "raw", "one", "json")]


def test_an_unknown_member_stops_the_derivation() -> None:
    with pytest.raises(ValueError, match="'oneof x' is not a field"):
        derived({"Thing": ["a"]}, Thing="  oneof x\n")


def test_a_field_that_the_definition_lacks_stops_the_derivation() -> None:
    with pytest.raises(ValueError, match="Thing has no field b"):
        derived({"Thing": ["a"]}, Thing="  optional string b = 1;\n")


def test_files_are_found_by_the_definitions_name(tmp_path: Path) -> None:
    file = tmp_path / "core" / "v1" / "generated.proto"
    file.parent.mkdir(parents=True)
    file.write_text("message A {\n  optional string a = 1;\n}\n\nmessage B {\n}\n")

    assert go_protos({"api": tmp_path})(f"{CORE}A") == {"A": "  optional string a = 1;\n", "B": ""}


def test_the_table_has_a_line_for_each_message() -> None:
    rows = {f"{CORE}A": (Field(1, "a", "one", "string"),), f"{CORE}B": ()}

    text = render(rows, "v1.36.4")

    assert text.splitlines()[1] == f'"{CORE}A":[[1,"a","one","string"]],'
    assert msgspec.json.decode(text, type=Messages) == Messages("v1.36.4", rows)
