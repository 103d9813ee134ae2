"""Label selectors as text. The refusals are those a kube-apiserver v1.36 gave to the same text."""

import pytest

from nodeyard.kube.selectors import SelectorError, parse_labels

WEB = {"app": "web", "tier": "front", "size": "5", "blank": ""}

VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app=web",
        "app==web",
        " app = web , tier ",
        "app!=db",
        "absent!=db",
        "app in (web,db)",
        "app in(web)",
        "app notin (db)",
        "absent notin (db)",
        "app,tier",
        "!absent",
        "! absent",
        "size>4",
        "size<6",
        "blank=",
        "blank",
        "blank in ()",
        "blank in (,a)",
        "blank in (a,,b)",
        "blank in (a,)",
        "app in (in,notin,web)",
        "app=web,tier=front,size>1,!absent",
    ],
)
def test_a_selector_that_holds_matches(text):
    assert parse_labels(text).matches(WEB)


@pytest.mark.parametrize(
    "text",
    [
        "app=db",
        "app!=web",
        "app in (db)",
        "app notin (web,db)",
        "absent",
        "!app",
        "absent in ()",
        "absent=",
        "size>5",
        "size<5",
        "app>1",
        "absent<1",
        "app=web,tier=back",
        "app=web,!tier",
        "blank!=",
    ],
)
def test_a_selector_that_does_not_hold_does_not_match(text):
    assert not parse_labels(text).matches(WEB)


@pytest.mark.parametrize("keyword", ["in", "notin"])
def test_names_of_operators_are_also_keys_and_values(keyword):
    assert parse_labels(f"{keyword}={keyword}").matches({keyword: keyword})


def test_a_label_too_large_for_64_bits_is_no_number():
    assert not parse_labels("size>1").matches({"size": "9223372036854775808"})
    assert parse_labels("size>1").matches({"size": "9223372036854775807"})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=b,", "found '', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=!b", "unable to parse requirement: found '!', expected: identifier"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in ", "unable to parse requirement: found '' expected: '('"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a)", "unable to parse requirement: found ')', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a in (b) c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!!a", "unable to parse requirement: found '!', expected: identifier"),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b,,c=d", "found ',', expected: identifier after ','"),
        ("a <> b", "unable to parse requirement: found '>', expected: identifier"),
        ("a=)", "unable to parse requirement: found ')', expected: identifier"),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be "
            "an integer",
        ),
        ("a=-b", f'unable to parse requirement: values[0][a]: Invalid value: "-b": {VALUE_RULE}'),
        ("a>-1", f'unable to parse requirement: values[0][a]: Invalid value: "-1": {VALUE_RULE}'),
        ("Ä=b", f'unable to parse requirement: <nil>: Invalid value: "Ä": name part {KEY_RULE}'),
        ("/a=b", 'unable to parse requirement: <nil>: Invalid value: "/a": prefix part must be non-empty'),
        (
            "a/b/c=d",
            f'unable to parse requirement: <nil>: Invalid value: "a/b/c": a valid label key {KEY_RULE} with an '
            "optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
    ],
)
def test_an_invalid_selector_is_refused_with_the_message_of_the_server(text, message):
    with pytest.raises(SelectorError) as refused:
        parse_labels(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("", ""),
        ("b=2 , a==1", "a==1,b=2"),
        ("x notin (c,a,b)", "x notin (a,b,c)"),
        ("!a,b,c!=d,e>1,f<2", "!a,b,c!=d,e>1,f<2"),
        ("x in ()", "x in ()"),
    ],
)
def test_a_selector_prints_as_the_server_prints_it(text, rendered):
    assert str(parse_labels(text)) == rendered
    assert parse_labels(rendered) == parse_labels(text)


def test_only_the_empty_selector_is_empty():
    assert parse_labels("").empty
    assert not parse_labels("a").empty


def test_an_exact_value_can_be_read_for_an_index():
    selector = parse_labels("app=web,tier in (front),size in (1,2)")
    assert [selector.exact(label) for label in ("app", "tier", "size", "absent")] == ["web", "front", None, None]
