"""For any terms of chart and class, the rendered affinity matches exactly the nodes that both match."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeyard.kube.node_affinity import NodeAffinity, node_matcher

from ..builders.charts import chart_of, read, render, required

KEYS, VALUES = ("a", "b"), ("1", "2", "x")
NODES = [
    ({key: value for key, value in zip(KEYS, values, strict=True) if value}, name)
    for name in ("n1", "n2")
    for values in itertools.product((None, *VALUES), repeat=len(KEYS))
]

# Every pair is a root context of its own, so that one run of helm renders them all.
TEMPLATE = """\
joined:
  {{- range .Values.pairs }}
  - {{ include "cozy-lib.scheduling.nodeAffinityMap" (list .own (dict "Values" .)) | fromYaml | toJson }}
  {{- end }}
"""


def expression(operator, values):
    return st.fixed_dictionaries({"key": st.sampled_from(KEYS), "operator": st.just(operator), "values": values})


sets = st.lists(st.sampled_from(VALUES), min_size=1, max_size=2, unique=True)
nothing = st.just([])
bound = st.sampled_from([["1"], ["2"]])
expressions = st.one_of(
    expression("In", sets),
    expression("NotIn", sets),
    expression("Exists", nothing),
    expression("DoesNotExist", nothing),
    expression("Gt", bound),
    expression("Lt", bound),
)
fields = st.sampled_from(["n1", "n2"]).map(lambda name: {"key": "metadata.name", "operator": "In", "values": [name]})
terms = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(expressions, max_size=2),
        "matchFields": st.lists(fields, max_size=1),
    },
)
affinities = st.one_of(st.just({}), st.lists(terms, min_size=1, max_size=3).map(lambda drawn: required(*drawn)))
pairs = st.lists(st.tuples(affinities, affinities), min_size=20, max_size=40)


def fitting(affinity):
    """Return the positions of the nodes that fit."""
    matches = node_matcher({}, msgspec.convert(affinity, NodeAffinity).required)
    return {place for place, (labels, name) in enumerate(NODES) if matches(labels, name)}


@pytest.fixture(scope="module")
def chart(tmp_path_factory):
    return chart_of(tmp_path_factory.mktemp("charts") / "probe", TEMPLATE)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(pairs)
def test_both_affinities_are_in_force(chart, drawn):
    values = [{"own": own, "_scheduling": {"nodeAffinity": of_class}} for own, of_class in drawn]

    joined = read(render(chart, {"pairs": values}))["joined"]

    for (own, of_class), both in zip(drawn, joined, strict=True):
        assert fitting(both) == fitting(own) & fitting(of_class), (own, of_class, both)
