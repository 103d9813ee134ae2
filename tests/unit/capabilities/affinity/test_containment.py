"""Containment of a pod in a class, in simple cases."""

import pytest

from nodeyard.capabilities.affinity.planning.containment import Inside, Outside, compile_class, contains

from ....builders.node_terms import expression, named, selector, term

ZONE = "topology.kubernetes.io/zone"
DC1 = {ZONE: "dc1"}


def zone(operator, *values):
    return expression(ZONE, operator, *values)


EITHER = ({}, selector([zone("In", "dc1")], [zone("In", "dc2")]))
SSD_OR_DC2 = ({}, selector([zone("In", "dc1"), expression("disk", "In", "ssd")], [zone("In", "dc2")]))

INSIDE = {
    "the selector of the class": (DC1, None, (DC1, None)),
    "and more than that": ({**DC1, "disk": "ssd"}, None, (DC1, None)),
    "an affinity that says the same": ({}, selector([zone("In", "dc1")]), (DC1, None)),
    "the selector, whatever the terms": (DC1, selector([expression("disk", "Exists")], [zone("Exists")]), (DC1, None)),
    "every term on its own": (
        {},
        selector([zone("In", "dc1")], [zone("In", "dc1", "dc2"), zone("NotIn", "dc2")]),
        (DC1, None),
    ),
    "a class that asks for nothing": ({}, None, ({}, None)),
    "one term of the class": (DC1, None, EITHER),
    "all terms of the class together": ({}, selector([zone("In", "dc1", "dc2")]), EITHER),
    "the class as it stands": (*SSD_OR_DC2, SSD_OR_DC2),
    "the label is there or it is not": (
        {},
        None,
        ({}, selector([expression("gpu", "Exists")], [expression("gpu", "DoesNotExist")])),
    ),
    "two halves that overlap": (
        {},
        selector([expression("cores", "Gt", "2")]),
        ({}, selector([expression("cores", "Lt", "9")], [expression("cores", "Gt", "7")])),
    ),
    "the only number between two": (
        {},
        selector([expression("cores", "Gt", "3"), expression("cores", "Lt", "5")]),
        ({}, selector([expression("cores", "Gt", "3"), expression("cores", "NotIn", "5")])),
    ),
    "zero is all there is below one": (
        {},
        selector([expression("cores", "Lt", "1")]),
        ({}, selector([expression("cores", "NotIn", "1"), expression("cores", "Exists")])),
    ),
    "the same node": ({}, selector(named("In", "n1")), ({}, selector(named("In", "n1"), named("In", "n2")))),
    "any node but one": ({}, selector(named("NotIn", "n1")), ({}, selector(named("NotIn", "n1")))),
    "every node is called something": ({}, None, ({}, selector(named("In", "n1"), named("NotIn", "n1")))),
}


@pytest.mark.parametrize(("node_selector", "required", "placement"), INSIDE.values(), ids=INSIDE)
def test_inside(node_selector, required, placement):
    assert contains(compile_class(*placement), node_selector, required) == Inside()


OUTSIDE = {
    "no selector at all": ({}, None, (DC1, None), {ZONE: None}),
    "another zone": ({ZONE: "dc2"}, None, (DC1, None), {ZONE: "dc2"}),
    "one zone too many": ({}, selector([zone("In", "dc1", "dc3")]), (DC1, None), {ZONE: "dc3"}),
    "the label with any value": ({}, selector([zone("Exists")]), (DC1, None), {ZONE: "other"}),
    "any other name than other": (
        {},
        selector([zone("Exists"), zone("NotIn", "other")]),
        (DC1, None),
        {ZONE: "other-2"},
    ),
    "one of two terms is open": (
        {},
        selector([zone("In", "dc1")], [expression("disk", "Exists")]),
        (DC1, None),
        {ZONE: None},
    ),
    "neither term": ({ZONE: "dc3"}, None, EITHER, {ZONE: "dc3"}),
    "the zone is right but the disk is open": (
        {},
        selector([zone("In", "dc1", "dc2")]),
        SSD_OR_DC2,
        {ZONE: "dc1", "disk": None},
    ),
    "a number spelled otherwise": (
        {},
        selector([expression("cores", "Gt", "3"), expression("cores", "Lt", "5")]),
        ({"cores": "4"}, None),
        {"cores": "04"},
    ),
    "a gap between two halves": (
        {},
        selector([expression("cores", "Gt", "2")]),
        ({}, selector([expression("cores", "Lt", "5")], [expression("cores", "Gt", "5")])),
        {"cores": "5"},
    ),
    "a number is not any text": ({}, selector([zone("Exists")]), ({}, selector([zone("Gt", "0")])), {ZONE: "other"}),
    "no label is not another value": (
        {},
        selector([zone("NotIn", "dc2")]),
        ({}, selector([zone("Exists"), zone("NotIn", "dc2")])),
        {ZONE: None},
    ),
}


@pytest.mark.parametrize(("node_selector", "required", "placement", "escape"), OUTSIDE.values(), ids=OUTSIDE)
def test_outside_with_a_node_to_show_for_it(node_selector, required, placement, escape):
    containment = contains(compile_class(*placement), node_selector, required)
    assert isinstance(containment, Outside)
    assert containment.counterexample.labels == escape
    assert containment.counterexample.node_name is None


def test_a_label_called_as_the_name_field_is_another_key():
    by_label = compile_class({"metadata.name": "n1"}, None)
    assert isinstance(contains(by_label, {}, selector(named("In", "n1"))), Outside)
    by_name = compile_class({}, selector(named("In", "n1")))
    containment = contains(by_name, {"metadata.name": "n1"}, None)
    assert isinstance(containment, Outside)
    assert (dict(containment.counterexample.labels), containment.counterexample.node_name) == ({}, "other")


MISSING = {
    "the only label": ((DC1, None), {}, None, (ZONE, "dc1")),
    "the first by name": (({"gpu": "true", "arch": "arm64"}, None), {}, None, ("arch", "arm64")),
    "the one that the pod does not have": (
        ({"gpu": "true", "arch": "arm64"}, None),
        {"arch": "arm64"},
        None,
        ("gpu", "true"),
    ),
    "not one that an affinity has": (
        ({"gpu": "true", "arch": "arm64"}, None),
        {},
        selector([expression("arch", "In", "arm64")]),
        ("gpu", "true"),
    ),
    "none where the terms are at fault": ((DC1, selector([expression("disk", "In", "ssd")])), DC1, None, None),
}


@pytest.mark.parametrize(("placement", "node_selector", "required", "missing"), MISSING.values(), ids=MISSING)
def test_the_label_of_the_class_that_a_pod_is_missing(placement, node_selector, required, missing):
    containment = contains(compile_class(*placement), node_selector, required)
    assert isinstance(containment, Outside)
    assert containment.missing == missing


NOWHERE = {
    "selector and term disagree": (DC1, selector([zone("In", "dc2")])),
    "terms that contradict themselves": ({}, selector([zone("DoesNotExist"), zone("In", "dc1")])),
    "nothing is below zero": ({}, selector([expression("cores", "Lt", "0")])),
    "nothing is above the largest number": ({}, selector([expression("cores", "Gt", "9223372036854775807")])),
    "two names": ({}, selector(term(fields=[*named("In", "a").match_fields, *named("In", "b").match_fields]))),
    "an empty term": ({}, selector([])),
    "no term": ({}, selector()),
    "a term that no scheduler can parse": ({}, selector([expression("cores", "Gt", "many")])),
}


@pytest.mark.parametrize(("node_selector", "required"), NOWHERE.values(), ids=NOWHERE)
def test_a_pod_that_cannot_be_scheduled_is_contained_in_every_class(node_selector, required):
    for placement in ((DC1, None), EITHER, ({}, None), ({}, selector())):
        assert contains(compile_class(*placement), node_selector, required) == Inside(is_vacuous=True)


def test_an_unsatisfiable_term_does_not_affect_the_others():
    required = selector([zone("In", "dc1"), zone("In", "dc2")], [zone("In", "dc1")])
    assert contains(compile_class(DC1, None), {}, required) == Inside()


@pytest.mark.parametrize("terms", [selector(), selector([]), selector([zone("In", "dc2")])], ids=str)
def test_no_pod_that_can_run_is_in_a_class_without_nodes(terms):
    containment = contains(compile_class(DC1, terms), DC1, None)
    assert isinstance(containment, Outside)
    assert (dict(containment.counterexample.labels), containment.missing) == ({}, None)
