"""The three CRDs: complete, valid, and bounded for every field that a rule reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nodeyard.apiserver.crds.schema import definition_faults
from nodeyard.capabilities.pools.definition import DEFINITIONS, LATTICE_CLUSTER
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.capabilities.pools.validation import CLUSTER, NODE_CLASS, SERVICE
from nodeyard.kube.json import Object

EACH = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each.kind)


def walk(schema: Object, path: str = "") -> Iterator[tuple[str, Object]]:
    yield path, schema
    for name, below in schema.get("properties", {}).items():
        yield from walk(below, f"{path}.{name}" if path else name)
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from walk(schema["additionalProperties"], f"{path}.*")


def columns(definition) -> list[str]:
    return [column.name for column in definition.columns]


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
def test_it_is_found_by_a_short_name_and_shown_with_ready_and_age(definition):
    assert {"Ready", "Age"} <= set(columns(definition))
    assert len(definition.short_names) == 1
    assert definition.render()["spec"]["names"]["categories"] == ["nodeyard"]


def test_clusters_and_classes_are_of_the_cluster_and_services_of_a_namespace():
    assert {each.kind: (each.namespaced, each.short_names) for each in DEFINITIONS} == {
        "LatticeCluster": (False, ("lc",)),
        "LatticeNodeClass": (False, ("lnc",)),
        "LatticeService": (True, ("ls",)),
    }


def test_a_cluster_shows_how_it_is_at_a_glance():
    assert columns(LATTICE_CLUSTER)[:5] == ["Phase", "Version", "ControlPlane", "Workers", "Wanted"]


@pytest.mark.parametrize(
    ("definition", "overlay"),
    list(zip(DEFINITIONS, (CLUSTER, NODE_CLASS, SERVICE), strict=True)),
    ids=[each.kind for each in DEFINITIONS],
)
def test_every_check_is_about_a_field_that_there_is(definition, overlay):
    known = {path for path, _schema in walk(definition.schema())}

    assert set(overlay) - known == set()


@EACH
def test_every_list_map_and_text_that_can_be_written_is_bounded(definition):
    """The API server estimates rule costs from these bounds."""
    limits = {"array": "maxItems", "string": "maxLength"}
    unbounded = [
        path
        for path, schema in walk(definition.schema())
        if path.startswith("spec") and (limit := limits.get(schema.get("type", ""))) and limit not in schema
        if "enum" not in schema
    ]

    assert unbounded == []


def test_the_policies_say_that_machines_are_deleted():
    schema = dict(walk(LATTICE_CLUSTER.schema()))["spec.poolDeletionPolicy"]

    assert schema["enum"] == [policy.value for policy in DeletionPolicy]
    assert schema["description"].endswith("All policies delete the machines.")
