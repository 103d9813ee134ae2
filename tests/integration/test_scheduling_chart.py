"""The node selector that nodeyard-scheduling renders into a chart, by the real helm."""

from __future__ import annotations

import re

import pytest
from tests.builders.charts import SELECTOR, RenderError, chart_of, read, render

UNSET = {
    "no _scheduling": {},
    "null": {"_scheduling": None},
    "empty": {"_scheduling": {}},
    "a null selector": {"_scheduling": {"nodeSelector": None}},
    "an empty selector": {"_scheduling": {"affinityClass": "any", "nodeSelector": {}}},
    "an empty selector of the chart's own": {"own": {}},
    "an empty string of the chart's own": {"own": ""},
}
SPELLINGS = ["true", "no", "y", "01", "1e3", "0x1f", "0o7", "1_000", "1.5", "2024-01-01", "null", "", "dc1"]


def scheduling(**selector):
    return {"affinityClass": "dc1", "nodeSelector": selector}


@pytest.fixture
def chart(tmp_path):
    def make(template=SELECTOR):
        return chart_of(tmp_path / "probe", template)

    return make


@pytest.mark.parametrize("values", UNSET.values(), ids=UNSET)
def test_without_a_selector_nothing_is_rendered_and_no_line_left_blank(chart, values):
    text = render(chart(), values)

    assert text == "---\n# Source: probe/templates/object.yaml\nspec:\n  first: 1\n  last: 1\n"


def test_the_class_selector_is_rendered_where_the_chart_asks_for_it(chart):
    text = render(chart(), {"_scheduling": scheduling(zone="dc1")})

    assert read(text)["spec"] == {"first": 1, "nodeSelector": {"zone": "dc1"}, "last": 1}
    assert not [line for line in text.splitlines() if not line.strip()]


def test_the_charts_own_selector_is_rendered_without_a_class(chart):
    assert read(render(chart(), {"own": {"disk": "ssd"}}))["spec"]["nodeSelector"] == {"disk": "ssd"}


def test_selectors_are_merged_under_one_key_and_the_class_wins(chart):
    values = {"own": {"disk": "ssd", "zone": "dc2"}, "_scheduling": scheduling(zone="dc1", gpu="true")}

    merged = read(render(chart(), values))["spec"]["nodeSelector"]

    assert merged == {"disk": "ssd", "zone": "dc1", "gpu": "true"}


def test_the_class_wins_with_an_empty_value_too(chart):
    values = {"own": {"spot": "true"}, "_scheduling": scheduling(spot="")}

    assert read(render(chart(), values))["spec"]["nodeSelector"] == {"spot": ""}


@pytest.mark.parametrize("side", ["own", "class"])
def test_strings_that_look_like_other_types_stay_strings(chart, side):
    selector = {f"key-{number}": value for number, value in enumerate(SPELLINGS)}
    values = {"own": selector} if side == "own" else {"_scheduling": scheduling(**selector)}

    assert read(render(chart(), values))["spec"]["nodeSelector"] == selector


@pytest.mark.parametrize("call", [".", "$", "(list nil .)", "(list dict $)", "(list .Values.own $)"])
def test_both_ways_of_calling_give_the_same(chart, call):
    template = f'spec:\n  {{{{- include "cozy-lib.scheduling.nodeSelector" {call} | nindent 2 }}}}\n'

    assert read(render(chart(template), {"_scheduling": scheduling(zone="dc1")})) == {
        "spec": {"nodeSelector": {"zone": "dc1"}}
    }


def test_the_content_alone_fits_under_a_key_that_the_chart_writes(chart):
    template = 'nodeLabels:\n  {{- include "cozy-lib.scheduling.nodeSelectorMap" (list .Values.own $) | nindent 2 }}\n'
    values = {"own": {"disk": "ssd"}, "_scheduling": scheduling(zone="dc1")}

    assert read(render(chart(template), values)) == {"nodeLabels": {"disk": "ssd", "zone": "dc1"}}


@pytest.mark.parametrize("values", [{}, {"_scheduling": scheduling(zone="dc1")}], ids=["unset", "set"])
def test_it_works_inside_range_and_with(chart, values):
    template = """\
    {{- range $name, $pool := .Values.pools }}
    {{ $name }}:
      {{- with $pool }}
      size: {{ .size }}
      {{- with include "cozy-lib.scheduling.nodeSelector" (list .nodeSelector $) }}
      {{- . | nindent 2 }}
      {{- end }}
      {{- end }}
    {{- end }}
    """
    pools = {"a": {"size": 1, "nodeSelector": {"disk": "ssd"}}, "b": {"size": 2}}

    rendered = read(render(chart(template), {"pools": pools, **values}))

    placed = (values.get("_scheduling") or {}).get("nodeSelector", {})
    assert rendered["a"] == {"size": 1, "nodeSelector": {"disk": "ssd", **placed}}
    assert rendered["b"] == {"size": 2, **({"nodeSelector": placed} if placed else {})}


def test_two_uses_in_one_chart_do_not_colour_each_other(chart):
    template = """\
    first:
      {{- include "cozy-lib.scheduling.nodeSelector" (list .Values.own $) | nindent 2 }}
    second:
      {{- include "cozy-lib.scheduling.nodeSelector" $ | nindent 2 }}
    own: {{ .Values.own | toJson }}
    """
    values = {"own": {"disk": "ssd", "zone": "dc2"}, "_scheduling": scheduling(zone="dc1")}

    rendered = read(render(chart(template), values))

    assert rendered["first"]["nodeSelector"] == {"disk": "ssd", "zone": "dc1"}
    assert rendered["second"]["nodeSelector"] == {"zone": "dc1"}
    assert rendered["own"] == {"disk": "ssd", "zone": "dc2"}


REFUSED = {
    "a boolean of the class": (
        {"_scheduling": scheduling(gpu=True)},
        '_scheduling.nodeSelector: the value of "gpu" must be a string, not the boolean true; put it in quotes',
    ),
    "a number of the class": (
        {"_scheduling": scheduling(rack=7)},
        '_scheduling.nodeSelector: the value of "rack" must be a string, not the number 7; put it in quotes',
    ),
    "a list of the class": (
        {"_scheduling": scheduling(zone=["dc1", "dc2"])},
        '_scheduling.nodeSelector: the value of "zone" must be a string, not the list ["dc1","dc2"]',
    ),
    "a boolean of the chart": (
        {"own": {"gpu": False}},
        'the chart\'s own nodeSelector: the value of "gpu" must be a string, not the boolean false; put it in quotes',
    ),
    "a boolean that the class would replace": (
        {"own": {"gpu": True}, "_scheduling": scheduling(gpu="true")},
        'the chart\'s own nodeSelector: the value of "gpu" must be a string, not the boolean true; put it in quotes',
    ),
    "a string for a selector of the chart": (
        {"own": "disk=ssd"},
        'the chart\'s own nodeSelector must be a map, not the string "disk=ssd"',
    ),
    "a list for a selector of the chart": ({"own": []}, "the chart's own nodeSelector must be a map, not the list []"),
    "a string for _scheduling": ({"_scheduling": "dc1"}, '_scheduling must be a map, not the string "dc1"'),
    "an empty string for _scheduling": ({"_scheduling": ""}, '_scheduling must be a map, not the string ""'),
    "a list for _scheduling": ({"_scheduling": []}, "_scheduling must be a map, not the list []"),
    "a string for the selector of the class": (
        {"_scheduling": {"nodeSelector": "zone=dc1"}},
        '_scheduling.nodeSelector must be a map, not the string "zone=dc1"',
    ),
}


@pytest.mark.parametrize(("values", "message"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_selector_is_refused_by_name_and_kind(chart, values, message):
    with pytest.raises(RenderError, match=re.escape(f": {message}\n")):
        render(chart(), values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("(list .Values.own)", "give $ or (list OWN $) for nodeSelector, not a list of length 1"),
        ("(list dict $ 2)", "give $ or (list OWN $) for nodeSelector, not a list of length 3"),
        ('"dc1"', "nodeSelector was asked for with a string instead of the root context"),
        ("(dict)", "nodeSelector was asked for with a map instead of the root context"),
        ("(list dict nil)", "nodeSelector was asked for with a null instead of the root context"),
    ],
)
def test_a_wrong_call_gets_an_error_with_the_right_one(chart, call, message):
    template = f'spec:\n  {{{{- include "cozy-lib.scheduling.nodeSelector" {call} | nindent 2 }}}}\n'

    with pytest.raises(RenderError, match=re.escape(message)):
        render(chart(template))


def test_the_dot_of_a_range_is_refused_with_the_remedy(chart):
    template = '{{- range list "a" }}\n{{ include "cozy-lib.scheduling.nodeSelector" . }}\n{{- end }}\n'

    with pytest.raises(RenderError, match=r"inside range and with, give \$ and not the dot"):
        render(chart(template))


def test_a_further_release_gets_the_class_as_it_came(chart):
    template = 'values:\n  size: 1\n  {{- with include "cozy-lib.scheduling.values" $ }}{{ . | nindent 2 }}{{ end }}\n'
    given = scheduling(zone="dc1")

    assert read(render(chart(template), {"_scheduling": given})) == {"values": {"size": 1, "_scheduling": given}}


def test_a_further_release_gets_nothing_without_a_class(chart):
    template = 'values:\n  size: 1\n  {{- with include "cozy-lib.scheduling.values" $ }}{{ . | nindent 2 }}{{ end }}\n'

    assert read(render(chart(template), {"_scheduling": None})) == {"values": {"size": 1}}
