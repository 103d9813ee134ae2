"""Field selectors. The refusals are those a kube-apiserver v1.36 gave to the same text."""

import pytest

from nodeyard.kube.selectors import FieldRequirement, SelectorError, parse_fields

FIELDS = {"metadata.name": "a,b=c\\d", "spec.nodeName": "n1"}


def test_every_requirement_must_hold():
    selector = parse_fields("spec.nodeName=n1,metadata.name!=x")
    assert selector.matches(FIELDS)
    assert not selector.matches({**FIELDS, "metadata.name": "x"})
    assert not selector.matches({**FIELDS, "spec.nodeName": "n2"})


def test_an_absent_field_is_empty():
    assert parse_fields("spec.nodeName=").matches({})
    assert not parse_fields("spec.nodeName!=").matches({})


def test_both_equal_signs_mean_the_same_and_empty_terms_are_passed_over():
    assert parse_fields("b!=2,,a==1,").requirements == (
        FieldRequirement("a", "=", "1"),
        FieldRequirement("b", "!=", "2"),
    )
    assert parse_fields(",=").empty


def test_separators_in_a_value_are_escaped():
    selector = parse_fields(r"metadata.name=a\,b\=c\\d")
    assert selector.matches(FIELDS)
    assert str(selector) == r"metadata.name=a\,b\=c\\d"


def test_an_exact_value_can_be_read_for_an_index():
    selector = parse_fields("metadata.name=x,spec.nodeName!=y")
    assert selector.exact("metadata.name") == "x"
    assert selector.exact("spec.nodeName") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
        ("a=1,metadata.name>a", "invalid selector: 'a=1,metadata.name>a'; can't understand 'metadata.name>a'"),
        (r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b"),
        ("metadata.name=x\\", "invalid field selector: invalid escape sequence: \\"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
    ],
)
def test_an_invalid_selector_is_refused_with_the_message_of_the_server(text, message):
    with pytest.raises(SelectorError) as refused:
        parse_fields(text)
    assert str(refused.value) == message
