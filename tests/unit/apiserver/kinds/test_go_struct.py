"""Decoding of a value like into a Go struct; Go's error messages are in the recorded cases."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.apiserver.kinds.go_struct import MalformedError, decode, zero
from nodeyard.apiserver.kinds.table import definition_of, definitions
from nodeyard.kube.json import Json

from ....conformance.cases.built_in_kinds import CASES

CORE = "io.k8s.api.core.v1."
NODE = CORE + "Node"
LEASE = "io.k8s.api.coordination.v1.Lease"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
FIELD_NAMES = st.sampled_from(["metadata", "spec", "status", "taints", "labels", "conditions", "capacity", "other"])
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELD_NAMES, inner, max_size=4), max_leaves=12
)


def decoded(definition: str, value: Json) -> Any:
    return decode(definition, value).object


def test_empty_optional_fields_are_not_written() -> None:
    node = decoded(NODE, {"metadata": {"name": "n", "labels": {}}, "spec": {"unschedulable": False, "taints": []}})
    assert node["metadata"] == {"name": "n"}
    assert node["spec"] == {}


def test_a_pointers_zero_is_a_value() -> None:
    lease = decoded(LEASE, {"metadata": {}, "spec": {"leaseTransitions": 0, "holderIdentity": ""}})
    assert lease["spec"] == {"leaseTransitions": 0, "holderIdentity": ""}


def test_fields_without_omitempty_are_always_written() -> None:
    status = decoded(NODE, {"metadata": {"name": "n"}})["status"]
    assert status["daemonEndpoints"] == {"kubeletEndpoint": {"Port": 0}}
    assert status["nodeInfo"]["kubeletVersion"] == ""
    assert decoded("io.k8s.api.rbac.v1.Role", {"metadata": {}})["rules"] is None
    assert zero("io.k8s.api.apps.v1.StatefulSetStatus") == {"availableReplicas": 0, "replicas": 0}


def test_null_is_as_good_as_nothing() -> None:
    node = decoded(NODE, {"metadata": {"name": "n", "labels": None, "creationTimestamp": None}, "spec": None})
    assert node["metadata"] == {"name": "n"}
    assert node["spec"] == {}


def test_null_within_a_list_or_map_is_a_zero() -> None:
    assert decoded(CORE + "ConfigMap", {"metadata": {}, "data": {"a": None}})["data"] == {"a": ""}
    pod = decoded(CORE + "Pod", {"metadata": {}, "spec": {"containers": [{"name": "a", "command": [None, "x"]}]}})
    assert pod["spec"]["containers"][0]["command"] == ["", "x"]


def test_quantities_and_times_get_one_form() -> None:
    status = decoded(NODE, {"metadata": {}, "status": {"capacity": {"memory": "1024Mi", "pods": 110, "cpu": "100u"}}})
    assert status["status"]["capacity"] == {"memory": "1Gi", "pods": "110", "cpu": "1m"}
    taint = {"key": "a", "effect": "NoExecute", "timeAdded": "2024-01-01T00:00:00.5+02:00"}
    assert decoded(CORE + "Taint", taint)["timeAdded"] == "2023-12-31T22:00:00Z"


def test_unknown_fields_are_dropped_and_named_where_they_stood() -> None:
    body = {"metadata": {"x": 1}, "spec": {"taints": [{"key": "a", "effect": "NoExecute", "y": 2}]}, "z": 3}
    outcome = decode(NODE, body)
    assert outcome.unknown == ["metadata.x", "spec.taints[0].y", "z"]
    assert outcome.object["spec"]["taints"] == [{"key": "a", "effect": "NoExecute"}]


def test_arguments_are_not_changed() -> None:
    body: dict[str, Any] = {"metadata": {"name": "n", "labels": {}}, "status": {"capacity": {"memory": "1024Mi"}}}
    decode(NODE, body)
    assert body == {"metadata": {"name": "n", "labels": {}}, "status": {"capacity": {"memory": "1024Mi"}}}


@pytest.mark.parametrize("case", [case for case in CASES if case.reply.object], ids=lambda case: case.id)
def test_objects_of_the_real_server_are_read_unchanged(case: Any) -> None:
    obj = case.reply.object
    group, _, version = obj["apiVersion"].rpartition("/")
    definition = definition_of(group, version, obj["kind"])
    assert definition is not None
    if "MOMENT" in str(obj):
        obj = json.loads(json.dumps(obj).replace("MOMENT", "2020-01-01T00:00:00Z"))
    once = decode(definition, obj)
    assert once.unknown == []
    assert decode(definition, once.object).object is once.object


def test_a_recursive_type_is_read_to_any_depth() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(30):
        schema = {"type": "object", "properties": {"a": schema}, "items": {"type": "string", "zoo": 1}}
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    outcome = decode(name, schema)
    assert outcome.unknown == []
    assert outcome.object["items"] == {"type": "string"}


@given(st.sampled_from(sorted(definitions())), ANY_JSON)
def test_any_value_is_either_read_or_refused(definition: str, value: Json) -> None:
    with suppress(MalformedError):
        once = decode(definition, value)
        assert decode(definition, once.object).object == once.object
