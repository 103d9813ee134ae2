"""The affinity that nodeyard-scheduling renders: the terms of the class and of the chart combined."""

from __future__ import annotations

import re

import pytest
from tests.builders.charts import PREFERRED, REQUIRED, RenderError, chart_of, preferred, read, render, required, term

TEMPLATE = """\
first: 1
{{- with include "cozy-lib.scheduling.affinity" (list .Values.own $) }}
{{- . | nindent 0 }}
{{- end }}
{{- with include "cozy-lib.scheduling.nodeAffinity" (list (.Values.own).nodeAffinity $) }}
{{- . | nindent 0 }}
{{- end }}
last: 1
"""
ANTI = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]}}
DC1, DC2, SSD, HDD = term(zone=["dc1"]), term(zone=["dc2"]), term(disk=["ssd"]), term(disk=["hdd"])


@pytest.fixture
def rendered(tmp_path):
    """The rendered nodeAffinity; both helpers must agree on it."""

    def make(own=None, of_class=None):
        values = {"own": {"nodeAffinity": own}, "_scheduling": {"nodeAffinity": of_class}}
        document = read(render(chart_of(tmp_path / "probe", TEMPLATE), values))
        assert document.get("affinity", {}).get("nodeAffinity") == document.get("nodeAffinity")
        return document.get("nodeAffinity")

    return make


def both(one, other):
    return required({"matchExpressions": one["matchExpressions"] + other["matchExpressions"]})


def terms(affinity):
    return affinity[REQUIRED]["nodeSelectorTerms"]


@pytest.mark.parametrize(
    "values", [{}, {"own": {}}, {"own": {"nodeAffinity": {}}, "_scheduling": {"nodeAffinity": {}}}]
)
def test_without_affinity_nothing_is_rendered_and_no_line_left_blank(tmp_path, values):
    text = render(chart_of(tmp_path / "probe", TEMPLATE), values)

    assert text == "---\n# Source: probe/templates/object.yaml\nfirst: 1\nlast: 1\n"


def test_the_class_alone_is_rendered_as_it_is(rendered):
    assert rendered(of_class=required(DC1, DC2)) == required(DC1, DC2)


def test_the_chart_alone_is_rendered_as_it_is(rendered):
    assert rendered(own=required(SSD)) == required(SSD)


def test_something_empty_that_is_required_counts_as_unset(rendered):
    assert rendered(own={REQUIRED: {}}, of_class=required(DC1)) == required(DC1)


def test_every_term_of_one_is_joined_with_every_term_of_the_other(rendered):
    joined = rendered(own=required(SSD, HDD), of_class=required(DC1, DC2))

    assert terms(joined) == [
        {"matchExpressions": one["matchExpressions"] + other["matchExpressions"]}
        for one in (SSD, HDD)
        for other in (DC1, DC2)
    ]


def test_fields_are_joined_beside_expressions(rendered):
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]}

    assert terms(rendered(own=required(named), of_class=required(DC1))) == [named | DC1]


def test_a_requirement_of_both_stands_once(rendered):
    assert terms(rendered(own=required(DC1), of_class=required(DC1))) == [DC1]


def test_an_empty_term_does_not_become_its_partner(rendered):
    assert rendered(own=required({}, SSD), of_class=required(DC1)) == both(SSD, DC1)


@pytest.mark.parametrize("nothing", [{}, {"matchExpressions": []}, {"matchFields": None}])
def test_where_one_side_fits_no_node_both_together_fit_none(rendered, nothing):
    assert terms(rendered(own=required(nothing), of_class=required(DC1, DC2))) == [{}]


def test_preferred_terms_of_both_are_kept_and_change_nothing_required(rendered):
    joined = rendered(own=preferred(50, SSD), of_class=required(DC1) | preferred(1, HDD))

    assert joined == required(DC1) | {
        PREFERRED: [{"weight": 50, "preference": SSD}, {"weight": 1, "preference": HDD}],
    }


def test_a_preference_of_the_chart_alone_stays(rendered):
    assert rendered(own=preferred(50, SSD)) == preferred(50, SSD)


def test_the_rest_of_the_charts_affinity_is_kept(tmp_path):
    values = {"own": ANTI | {"nodeAffinity": required(SSD)}, "_scheduling": {"nodeAffinity": required(DC1)}}

    affinity = read(render(chart_of(tmp_path / "probe", TEMPLATE), values))["affinity"]

    assert affinity == ANTI | {"nodeAffinity": both(SSD, DC1)}


def test_other_affinity_is_kept_without_any_class(tmp_path):
    document = read(render(chart_of(tmp_path / "probe", TEMPLATE), {"own": ANTI}))

    assert document == {"first": 1, "affinity": ANTI, "last": 1}


def test_a_misspelt_field_of_the_chart_reaches_the_api_server(rendered):
    assert rendered(own={"requiredDuringScheduling": {}}, of_class=required(DC1)) == required(DC1) | {
        "requiredDuringScheduling": {}
    }


@pytest.mark.parametrize("call", ["$", "(list .Values.own $)"])
def test_the_content_alone_fits_under_a_key_that_the_chart_writes(tmp_path, call):
    template = f"""\
    placement:
      {{{{- include "cozy-lib.scheduling.affinityMap" {call} | nindent 2 }}}}
    nodes:
      {{{{- include "cozy-lib.scheduling.nodeAffinityMap" {call} | nindent 2 }}}}
    """
    values = {"own": {}, "_scheduling": {"nodeAffinity": required(DC1)}}

    document = read(render(chart_of(tmp_path / "probe", template), values))

    assert document == {"placement": {"nodeAffinity": required(DC1)}, "nodes": required(DC1)}


@pytest.mark.parametrize("value", ["true", "01", "1e3"])
def test_values_that_look_like_other_types_stay_strings(rendered, value):
    assert terms(rendered(of_class=required(term(rack=[value])))) == [term(rack=[value])]


WHERE = f"{REQUIRED}.nodeSelectorTerms"
OWN, OF_CLASS = "the chart's own nodeAffinity", "_scheduling.nodeAffinity"
REFUSED = {
    "a boolean": (
        {"of_class": required(term(gpu=[True]))},
        f'{OF_CLASS}.{WHERE}[0].matchExpressions[0]: the value of "gpu" must be a string, not the boolean true; '
        "put it in quotes",
    ),
    "a number in the second term": (
        {"own": required(SSD, {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": [8]}]})},
        f'{OWN}.{WHERE}[1].matchExpressions[0]: the value of "cores" must be a string, not the number 8; '
        "put it in quotes",
    ),
    "a boolean in a preference": (
        {"own": preferred(1, term(gpu=[True]))},
        f'{OWN}.{PREFERRED}[0].preference.matchExpressions[0]: the value of "gpu" must be a string, '
        "not the boolean true; put it in quotes",
    ),
    "no terms": (
        {"own": {REQUIRED: {"nodeSelectorTerms": []}}},
        f"{OWN}.{WHERE} must have at least one term; without any, leave out what is required altogether",
    ),
    "a map for terms": (
        {"own": {REQUIRED: {"nodeSelectorTerms": {"zone": "dc1"}}}},
        f'{OWN}.{WHERE} must be a list, not the map {{"zone":"dc1"}}',
    ),
    "a string for a term": (
        {"of_class": {REQUIRED: {"nodeSelectorTerms": ["dc1"]}}},
        f'{OF_CLASS}.{WHERE}[0] must be a map, not the string "dc1"',
    ),
    "a list for what is required": ({"own": {REQUIRED: [DC1]}}, f"{OWN}.{REQUIRED} must be a map, not the list"),
    "a string for the class's": ({"of_class": "dc1"}, f'{OF_CLASS} must be a map, not the string "dc1"'),
    "a list for the chart's": ({"own": [DC1]}, f"{OWN} must be a map, not the list"),
}


@pytest.mark.parametrize(("sides", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_affinity_is_refused_by_place_and_kind(rendered, sides, message):
    with pytest.raises(RenderError, match=re.escape(f": {message}")):
        rendered(**sides)
