"""Generating CustomResourceDefinitions from types."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from nodeyard.apiserver.crds.schema import definition_faults
from nodeyard.kube.objects import Condition, NullableStruct, ObjectMeta, PlainStruct, Slice, StringMap
from nodeyard.schema.crd import Column, Definition, MissingDescriptionError


class Size(StrEnum):
    SMALL = "Small"
    LARGE = "Large"


class Part(PlainStruct, frozen=True):
    weight: Annotated[int, Meta(description="How heavy it is.", extra_json_schema={"minimum": 1})] = 1


class Spec(NullableStruct, frozen=True):
    size: Annotated[Size, Meta(description="How large.")] = Size.SMALL
    labels: Annotated[StringMap, Meta(description="Labels.")] = {}
    parts: Annotated[Slice[Part], Meta(description="Its parts.")] = ()
    free: Annotated[Any, Meta(description="Anything.")] = None
    share: Annotated[float | None, Meta(description="A share.")] = None
    odd_name: Annotated[bool, Meta(description="Oddly named.")] = msgspec.field(default=False, name="odd-name")
    port: Annotated[int | str | None, Meta(description="A number or a name.")] = None


class Status(NullableStruct, frozen=True):
    conditions: Annotated[Slice[Condition], Meta(description="How it is.")] = ()


class Widget(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[Spec, Meta(description="What is wanted.")] = Spec()
    status: Annotated[Status, Meta(description="What is.")] = Status()


class Silent(PlainStruct, frozen=True):
    thing: int = 0


class Mute(PlainStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[Silent, Meta(description="What is wanted.")] = Silent()


def widget(**more) -> Definition:
    return Definition(
        type=Widget,
        group="example.com",
        version="v1",
        kind="Widget",
        plural="widgets",
        description="A widget.",
        namespaced=True,
        short_names=("wd",),
        columns=(Column("Size", ".spec.size"),),
        **more,
    )


def spec_of(definition: Definition) -> dict:
    return definition.schema()["properties"]["spec"]["properties"]


def test_fields_have_their_wire_names_types_and_descriptions():
    assert spec_of(widget()) == {
        "size": {"description": "How large.", "type": "string", "enum": ["Small", "Large"]},
        "labels": {"description": "Labels.", "type": "object", "additionalProperties": {"type": "string"}},
        "parts": {
            "description": "Its parts.",
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"weight": {"description": "How heavy it is.", "type": "integer", "minimum": 1}},
            },
        },
        "free": {"description": "Anything.", "type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "share": {"description": "A share.", "type": "number"},
        "odd-name": {"description": "Oddly named.", "type": "boolean"},
        "port": {"description": "A number or a name.", "x-kubernetes-int-or-string": True},
    }


def test_conditions_have_types_limits_and_descriptions():
    conditions = widget().schema()["properties"]["status"]["properties"]["conditions"]

    assert conditions["items"]["required"] == ["type", "status", "lastTransitionTime", "reason", "message"]
    assert all("description" in each for each in conditions["items"]["properties"].values())


def test_an_overlay_adds_constraints_to_the_schema():
    rule = {"rule": "self.size() < 9", "message": "too many"}
    overlay = {
        "spec": {"required": ["size"]},
        "spec.parts": {"maxItems": 5, "x-kubernetes-validations": [rule]},
        "spec.parts[].weight": {"maximum": 9},
        "spec.labels.*": {"maxLength": 63},
    }

    schema = widget(overlay=overlay).schema()["properties"]["spec"]

    assert schema["required"] == ["size"]
    assert schema["properties"]["parts"]["maxItems"] == 5
    assert schema["properties"]["parts"]["x-kubernetes-validations"] == [rule]
    assert schema["properties"]["parts"]["items"]["properties"]["weight"]["maximum"] == 9
    assert schema["properties"]["labels"]["additionalProperties"] == {"type": "string", "maxLength": 63}


def test_the_schema_is_structural():
    assert definition_faults(widget().schema(), "schema", has_status=True) == []


def test_a_definition_has_names_columns_and_subresources():
    spec = widget(scale=(".spec.replicas", ".status.replicas")).render()["spec"]

    assert spec["names"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "categories": ["nodeyard"],
    }
    version = spec["versions"][0]
    assert version["subresources"] == {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
    }
    size, held = version["additionalPrinterColumns"]
    assert size == {"name": "Size", "type": "string", "jsonPath": ".spec.size"}
    assert held["jsonPath"] == '.status.conditions[?(@.type=="Held")].status'


def test_a_field_without_a_description_is_an_error():
    definition = Definition(Mute, "example.com", "v1", "Mute", "mutes", "Mute.", False, (), ())

    with pytest.raises(MissingDescriptionError, match=r"Silent\.thing has no description"):
        definition.schema()
