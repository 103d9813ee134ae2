"""Every JSON schema gives a valid CRD, and no spec can set the placement."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeyard.apiserver.crds.validation import faults
from nodeyard.capabilities.affinity.planning.application_plan import release_values, scheduling
from nodeyard.capabilities.affinity.planning.definitions import crd_of
from nodeyard.capabilities.affinity.planning.structural_schema import structural

from ..builders.applications import affinity_class, definition
from ..builders.schemas import JSON, schemas


@settings(deadline=None, max_examples=300)
@given(schemas())
def test_a_structural_schema_is_accepted_by_the_server(schema):
    made, _left_out = structural(json.dumps(schema))
    crd = crd_of(definition(), made)
    assert faults({**crd, "status": {"storedVersions": ["v1alpha1"]}}) == []


@settings(deadline=None)
@given(schemas())
def test_a_schema_that_is_structural_already_is_left_as_it_is(schema):
    made, _left_out = structural(json.dumps(schema))
    again, left_out = structural(json.dumps(made))
    assert (again, left_out) == (made, ())


@pytest.mark.parametrize("node_selector", [{}, {"zone": "dc1"}], ids=["without-labels", "with-labels"])
@given(
    spec=st.dictionaries(st.sampled_from(["_scheduling", "_cluster", "_x", "affinityClass", "size"]) | st.text(), JSON)
)
def test_no_spec_can_set_values_of_the_platform(node_selector, spec):
    dc1 = affinity_class("dc1", node_selector)
    values = release_values({"spec": spec}, dc1)
    assert values.pop("_scheduling") == scheduling(dc1)
    assert values == {key: value for key, value in spec.items() if not key.startswith("_")}
    assert "_scheduling" not in release_values({"spec": spec}, None)
