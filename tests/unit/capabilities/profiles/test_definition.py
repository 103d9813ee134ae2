"""The CRDs: complete, valid, without a default that would defeat inheritance, and open where others' fields may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from tests.builders.profile_admission import samples

from nodeyard.apiserver.crds.schema import definition_faults
from nodeyard.capabilities.profiles import validation
from nodeyard.capabilities.profiles.definition import AGENT, COMPUTE, DEFINITIONS, NODE, ROLE
from nodeyard.kube.json import Object

EACH = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)
UPSTREAM = pytest.mark.parametrize("definition", [ROLE, NODE, COMPUTE, AGENT], ids=lambda each: each.kind)
DEFINED = {each.kind: each for each in DEFINITIONS}
SAMPLES = [sample for sample in samples() if sample["kind"] in DEFINED]


def walk(schema: Object, path: str = "") -> Iterator[tuple[str, Object]]:
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from walk(below, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}.*")


def part(definition: Any, path: str) -> Object:
    return dict(walk(definition.schema()))[path]


@EACH
def test_it_is_a_definition_that_a_server_takes(definition):
    assert definition_faults(definition.schema(), "schema", has_status=True) == []


@EACH
def test_every_field_is_described(definition):
    silent = [
        path
        for path, schema in walk(definition.schema())
        if "description" not in schema and not path.endswith(("[]", ".*", "metadata"))
    ]

    assert silent == []


@EACH
def test_no_field_has_a_server_side_default(definition):
    assert [path for path, schema in walk(definition.schema()) if "default" in schema] == []


@EACH
def test_it_is_found_by_one_short_name_and_shown_with_ready_and_age(definition):
    assert {"Ready", "Age"} <= {column.name for column in definition.columns}
    assert len(definition.short_names) == 1
    assert definition.render()["spec"]["names"]["categories"] == ["nodeyard"]


@EACH
def test_conditions_are_merged_by_their_type(definition):
    conditions = part(definition, "status.conditions")

    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_all_are_of_a_namespace_but_for_the_services_that_people_declare():
    assert {each.name: (each.namespaced, each.version) for each in DEFINITIONS} == {
        "openstackdataplaneroles.dataplane.openstack.org": (True, "v1beta1"),
        "openstackdataplanenodes.dataplane.openstack.org": (True, "v1beta1"),
        "computeprofiles.nova.openstack.org": (True, "v1beta1"),
        "networkprofiles.neutron.openstack.org": (True, "v1beta1"),
        "telemetryprofiles.telemetry.openstack.org": (True, "v1beta1"),
        "novaexternalcomputes.nova.openstack.org": (True, "v1beta1"),
        "ovnmetadataagents.neutron.openstack.org": (True, "v1beta1"),
        "profileservices.nodeyard.dev": (False, "v1alpha1"),
    }


@UPSTREAM
@pytest.mark.parametrize("path", ["spec", "status", "status.conditions[]"])
def test_kinds_that_others_had_keep_fields_that_we_do_not_know(definition, path):
    assert part(definition, path)["x-kubernetes-preserve-unknown-fields"] is True


def test_a_share_may_be_a_number():
    assert part(DEFINITIONS[2], "spec.maxUnavailable")["x-kubernetes-int-or-string"] is True


@pytest.mark.parametrize(
    ("overlay", "definition"),
    [
        (validation.ROLE, DEFINITIONS[0]),
        (validation.NODE, DEFINITIONS[1]),
        (validation.COMPUTE_PROFILE, DEFINITIONS[2]),
        (validation.NETWORK_PROFILE, DEFINITIONS[3]),
        (validation.TELEMETRY_PROFILE, DEFINITIONS[4]),
        (validation.COMPUTE, DEFINITIONS[5]),
        (validation.AGENT, DEFINITIONS[6]),
        (validation.SERVICE, DEFINITIONS[7]),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
def test_every_check_is_on_a_field_that_exists(overlay, definition):
    assert set(overlay) <= {path for path, _schema in walk(definition.schema())}


@EACH
def test_fields_used_in_rules_are_bounded(definition):
    unbounded = [
        path
        for path, schema in walk(definition.schema())
        if "x-kubernetes-validations" in schema
        and (schema.get("type") == "string" or schema.get("x-kubernetes-int-or-string"))
        and "maxLength" not in schema
    ]

    assert unbounded == []


# the examples


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda each: f"{each['kind']}-{each['metadata']['name']}")
def test_a_sample_has_all_fields_of_its_type_and_no_others(sample):
    definition = DEFINED[sample["kind"]]

    read = msgspec.convert(sample, definition.type)

    assert sample["apiVersion"] == f"{definition.group}/{definition.version}"
    assert read.metadata.name == sample["metadata"]["name"]
    assert set(sample) <= {"apiVersion", "kind", "metadata", "spec"}
    assert set(sample.get("spec", {})) <= set(part(definition, "spec")["properties"])


def test_the_example_and_its_page_show_every_kind_that_people_write():
    assert {sample["kind"] for sample in SAMPLES} == set(DEFINED) - {COMPUTE.kind, AGENT.kind}


def test_no_sample_lost_its_configuration_to_the_indentation():
    configs = [
        value for sample in SAMPLES for field, value in sample.get("spec", {}).items() if field.endswith("Config")
    ]

    assert len(configs) == 4
    assert all(config.startswith("[") and config.endswith("\n") for config in configs)
