"""Invalid node selectors, with the API server's messages."""

import pytest

from nodeyard.kube.node_affinity_errors import comparison_errors, node_selector_errors

from ...builders.node_terms import expression, named, selector, term

PATH = "spec.required"
EXPRESSION = f"{PATH}.nodeSelectorTerms[0].matchExpressions[0]"
FIELD = f"{PATH}.nodeSelectorTerms[0].matchFields[0]"


def errors(required):
    return [str(error) for error in node_selector_errors(required, PATH)]


@pytest.mark.parametrize(
    "good",
    [
        selector([expression("zone", "In", "a"), expression("cores", "Gt", "4")], []),
        selector(named("NotIn", "n1.example.com")),
        selector([expression("example.com/key", "Exists")]),
        selector([expression("cores", "Lt", "many")]),
    ],
    ids=str,
)
def test_terms_accepted_by_the_api_server_have_no_errors(good):
    assert errors(good) == []


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (
            expression("zone", "In"),
            f"{EXPRESSION}.values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
        (
            expression("zone", "Exists", "a"),
            f"{EXPRESSION}.values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        ),
        (
            expression("cores", "Gt", "1", "2"),
            f"{EXPRESSION}.values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
        ),
        (
            expression("zone", "Near", "a"),
            f'{EXPRESSION}.operator: Invalid value: "Near": not a valid selector operator',
        ),
    ],
    ids=str,
)
def test_an_operator_wants_its_number_of_values(one, said):
    assert errors(selector([one])) == [said]


def test_keys_and_values_are_those_of_labels():
    [key] = errors(selector([expression("a b", "Exists")]))
    assert key.startswith(f'{EXPRESSION}.key: Invalid value: "a b": name part must consist of alphanumeric')
    [value] = errors(selector([expression("zone", "In", "ok", "-1")]))
    assert value.startswith(f'{EXPRESSION}.values[1]: Invalid value: "-1": a valid label must be an empty string')


def test_fields_are_the_name_and_one_value_of_it():
    detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    assert errors(selector(named("In", "a", "b"))) == [f"{FIELD}.values: Required value: {detail}"]
    assert errors(selector(named("Gt", "1"))) == [
        f'{FIELD}.operator: Invalid value: "Gt": not a valid selector operator'
    ]
    assert errors(selector(term(fields=[expression("spec.podCIDR", "In", "x y")]))) == [
        f'{FIELD}.key: Invalid value: "spec.podCIDR": not a valid field selector key'
    ]
    [name] = errors(selector(named("In", "Upper")))
    assert name.startswith(f'{FIELD}.values[0]: Invalid value: "Upper": a lowercase RFC 1123 subdomain must consist')


def test_there_has_to_be_a_term():
    assert errors(selector()) == [
        f"{PATH}.nodeSelectorTerms: Required value: must have at least one node selector term"
    ]


def test_a_bound_that_is_no_number_is_a_separate_error():
    broken = selector(
        [], [expression("zone", "Exists"), expression("cores", "Gt", "many")], [expression("a", "Lt", "07")]
    )
    assert [str(error) for error in comparison_errors(broken, PATH)] == [
        f'{PATH}.nodeSelectorTerms[1].matchExpressions[1].values[0]: Invalid value: "many": '
        "for 'Gt', 'Lt' operators, the value must be an integer"
    ]
