"""Required node affinity as kube-scheduler reads it."""

import msgspec
import pytest

from nodeyard.kube.node_affinity import Affinity, NodeSelector, NodeSelectorTerm, node_matcher, parse_terms

from ...builders.node_terms import expression, named, selector, term

LABELS = {"zone": "a", "cores": "8", "odd": "08", "huge": "9223372036854775808", "blank": ""}


def matches(required, labels=LABELS, name="n1", node_selector=None):
    return node_matcher(node_selector or {}, required)(labels, name)


@pytest.mark.parametrize(
    ("one", "holds"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "In", "b"), False),
        (expression("gone", "In", "b"), False),
        (expression("blank", "In", ""), True),
        (expression("gone", "In", ""), False),
        (expression("zone", "NotIn", "b"), True),
        (expression("zone", "NotIn", "a"), False),
        (expression("gone", "NotIn", "b"), True),
        (expression("zone", "Exists"), True),
        (expression("gone", "Exists"), False),
        (expression("zone", "DoesNotExist"), False),
        (expression("gone", "DoesNotExist"), True),
        (expression("cores", "Gt", "7"), True),
        (expression("cores", "Gt", "8"), False),
        (expression("cores", "Lt", "9"), True),
        (expression("cores", "Lt", "8"), False),
        (expression("odd", "Gt", "7"), True),
        (expression("cores", "Gt", "007"), True),
        (expression("zone", "Gt", "4"), False),
        (expression("gone", "Gt", "4"), False),
        (expression("gone", "Lt", "4"), False),
        (expression("huge", "Gt", "4"), False),
    ],
    ids=str,
)
def test_one_expression(one, holds):
    assert matches(selector([one])) is holds


@pytest.mark.parametrize(("one", "holds"), [(named("In", "n1"), True), (named("NotIn", "n1"), False)], ids=str)
def test_the_name_of_the_node(one, holds):
    assert matches(selector(one)) is holds


def test_a_label_called_as_the_field_is_another_thing():
    by_label = selector([expression("metadata.name", "In", "n1")])
    assert not matches(by_label)
    assert matches(by_label, {"metadata.name": "n1"}, "n2")


def test_one_term_of_several_is_enough_but_all_of_its_expressions_must_hold():
    both = [expression("zone", "In", "a"), expression("gone", "Exists")]
    assert not matches(selector(both))
    assert matches(selector(both, [expression("zone", "Exists")]))


def test_expressions_and_fields_of_a_term_must_both_hold():
    one = term([expression("zone", "In", "a")], [expression("metadata.name", "In", "n2")])
    assert not matches(selector(one))
    assert matches(selector(one), name="n2")


def test_the_node_selector_holds_beside_every_term():
    required = selector([expression("cores", "Exists")], [expression("zone", "Exists")])
    assert matches(required, node_selector={"zone": "a"})
    assert not matches(required, node_selector={"zone": "b"})


def test_no_required_affinity_matches_every_node_but_an_empty_list_of_terms_matches_none():
    assert matches(None)
    assert not matches(None, node_selector={"zone": "b"})
    assert not matches(selector())


@pytest.mark.parametrize(
    "broken",
    [
        term([expression("zone", "Gt", "many")]),
        term([expression("zone", "Gt", "9223372036854775808")]),
        term([expression("zone", "Lt", "9" * 5000)]),
        term([expression("cores", "Gt")]),
        term([expression("cores", "Gt", "1", "2")]),
        term([expression("cores", "Gt", "-1")]),
        term([expression("zone", "NotIn")]),
        term([expression("zone", "Exists", "a")]),
        term([expression("gone", "NotIn", "not a value")]),
        term([expression("not a key", "DoesNotExist")]),
        term([expression("zone", "Near", "a")]),
        named("NotIn", "n2", "n3"),
        named("Exists"),
        term(fields=[expression("spec.unschedulable", "In", "true")]),
    ],
    ids=lambda each: str(each)[:80],
)
def test_a_term_that_the_scheduler_cannot_parse_matches_nothing_and_harms_no_other(broken):
    good = [expression("zone", "In", "a")]
    assert not matches(selector(broken))
    assert not matches(selector(term([*good, *broken.match_expressions], broken.match_fields)))
    assert matches(selector(broken, good))


def test_an_empty_term_matches_nothing():
    assert not matches(selector([]))


def test_a_field_that_nodes_do_not_have_reads_as_empty():
    assert matches(selector(term(fields=[expression("spec.podCIDR", "NotIn", "x")])))
    assert matches(selector(term(fields=[expression("spec.podCIDR", "In", "")])))
    assert not matches(selector(term(fields=[expression("spec.podCIDR", "NotIn", "")])))


def test_the_order_of_terms_is_kept():
    parsed = parse_terms(selector([expression("b", "Exists")], [], named("In", "n1"), [expression("a", "Exists")]))
    assert [[str(one) for one in (*each.labels, *each.fields)] for each in parsed] == [
        ["b"],
        ["metadata.name=n1"],
        ["a"],
    ]


def test_affinity_is_decoded_from_a_pod_and_null_is_nothing():
    affinity = msgspec.json.decode(
        b"""{"nodeAffinity": {
          "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {}}],
          "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "Exists", "values": null}], "matchFields": null}, {}]}},
         "podAffinity": {}}""",
        type=Affinity,
    )
    assert affinity.required_nodes == selector([expression("zone", "Exists")], NodeSelectorTerm())
    for nothing in (b"{}", b'{"nodeAffinity": null}', b'{"nodeAffinity": {}}'):
        assert msgspec.json.decode(nothing, type=Affinity).required_nodes is None
    assert msgspec.json.decode(b'{"nodeSelectorTerms": null}', type=NodeSelector) == selector()
