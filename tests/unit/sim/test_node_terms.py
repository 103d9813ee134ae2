"""Required node affinity, term by term."""

import pytest

from nodeyard.sim.node_terms import matches_terms

NODE = {"metadata": {"name": "n1", "labels": {"zone": "a", "cores": "8"}}}


def term(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("one", "holds"),
    [
        (term("zone", "In", "a", "b"), True),
        (term("zone", "In", "b"), False),
        (term("zone", "NotIn", "b"), True),
        (term("gone", "NotIn", "b"), True),
        (term("zone", "Exists"), True),
        (term("gone", "Exists"), False),
        (term("gone", "DoesNotExist"), True),
        (term("cores", "Gt", "4"), True),
        (term("cores", "Lt", "4"), False),
        (term("zone", "Gt", "4"), False),
        (term("gone", "Gt", "4"), False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}, False),
        ({}, False),
    ],
    ids=str,
)
def test_one_term(one, holds):
    assert matches_terms([one], NODE) is holds


def test_one_term_of_several_is_enough_but_all_of_its_expressions_must_hold():
    both = {
        "matchExpressions": [*term("zone", "In", "a")["matchExpressions"], *term("gone", "Exists")["matchExpressions"]]
    }
    assert not matches_terms([both], NODE)
    assert matches_terms([both, term("zone", "Exists")], NODE)
    assert not matches_terms([], NODE)
