"""Label selectors as objects: matchLabels and matchExpressions."""

import pytest

from nodeyard.kube.selectors import SelectorError, from_labels, from_object, object_errors


def expression(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def test_no_selector_selects_nothing():
    selector = from_object(None)
    assert not selector.matches({})
    assert not selector.empty
    assert str(selector) == ""


def test_an_empty_selector_selects_everything():
    selector = from_object({})
    assert selector.matches({"a": "b"})
    assert selector.empty


def test_labels_and_expressions_must_all_hold():
    selector = from_object(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                expression("tier", "In", "front", "back"),
                expression("zone", "NotIn", "z"),
                expression("owner", "Exists"),
                expression("gone", "DoesNotExist"),
            ],
        }
    )
    labels = {"app": "web", "tier": "back", "owner": "x"}
    assert selector.matches(labels)
    assert not selector.matches({**labels, "zone": "z"})
    assert not selector.matches({**labels, "gone": ""})
    assert not selector.matches({**labels, "app": "db"})
    assert str(selector) == "app=web,!gone,owner,tier in (back,front),zone notin (z)"


def test_a_plain_map_selects_by_equality():
    assert from_labels({"a": "b"}).matches({"a": "b", "c": "d"})
    assert not from_labels({"a": "b"}).matches({"a": "c"})


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (expression("a", "Foo"), '"Foo" is not a valid label selector operator'),
        (
            expression("a", "In"),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            expression("a", "Exists", "b"),
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
        ),
    ],
)
def test_an_invalid_expression_is_refused(broken, message):
    with pytest.raises(SelectorError) as refused:
        from_object({"matchExpressions": [broken]})
    assert str(refused.value) == message


def test_validation_names_every_wrong_field():
    spec = {
        "matchLabels": {"/x": "y"},
        "matchExpressions": [expression("a", "Foo"), expression("b", "In"), expression("", "Exists", "z")],
    }
    errors = [str(error).partition(": must consist")[0] for error in object_errors(spec, "spec.selector")]
    assert errors[:4] == [
        'spec.selector.matchLabels: Invalid value: "/x": prefix part must be non-empty',
        'spec.selector.matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator',
        "spec.selector.matchExpressions[1].values: Required value: must be specified when `operator` is 'In' or "
        "'NotIn'",
        "spec.selector.matchExpressions[2].values: Forbidden: may not be specified when `operator` is 'Exists' or "
        "'DoesNotExist'",
    ]
    assert errors[4] == 'spec.selector.matchExpressions[2].key: Invalid value: "": name part must be non-empty'
    assert len(errors) == 6


def test_a_valid_or_absent_selector_has_no_errors():
    assert object_errors(None, "spec.selector") == []
    assert object_errors({"matchLabels": {"a": ""}}, "spec.selector") == []
