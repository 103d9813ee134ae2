"""Values in YAML bodies: Kubernetes' parser reads unquoted scalars, tags and merged maps in its own way."""

from __future__ import annotations

import json

import pytest

YAML = "application/yaml"
BASE_60 = b"9:" + b"59:" * 300_000 + b"59"

VALUES = {
    "12:30": "12:30",
    "1:30.5": "1:30.5",
    "1e3": 1000,
    "+.5": 0.5,
    "5.e3": 5000,
    "1e400": "1e400",
    "1_000": 1000,
    "0X1F": 31,
    "017": 15,
    "-0o17": -15,
    "0B11": 3,
    "08": 8,
    "0b2": "0b2",
    "9223372036854775807": 9223372036854775807,
    "y": True,
    "Off": False,
    "tRue": "tRue",
    "NULL": None,
    "2001-01-01": "2001-01-01",
    "=": "=",
    "<<": "<<",
    "!!str 1": "1",
    '!!int "1"': 1,
    "!!float 1": 1,
    "!!bool yes": True,
    "!!binary aGk=": "hi",
    "!!timestamp 2001-01-01": "2001-01-01",
    "!!set {a}": {"a": None},
    "!!omap [a: 1]": [{"a": 1}],
    "!!int [1]": [1],
    "!foo 1": "1",
    "!foo {a: 1}": {"a": 1},
    "{12:30: a}": {"12:30": "a"},
    "{1e3: a, .inf: b, n: c}": {"1000": "a", ".inf": "b", "false": "c"},
    "{a: 1, <<: {a: 2, b: 3}}": {"a": 2, "b": 3},
    "{<<: [{a: 1}, {a: 2, b: 2}], b: 3}": {"a": 1, "b": 3},
    '{"<<": {a: 1}}': {"<<": {"a": 1}},
}
REFUSED = (".inf", "-.INF", ".nan", "!!bool x", '!!int ""', "!!float x", "!!null x", "!!timestamp x", "!!binary .")
REFUSED_MAPS = ("{~: a}", "{[a]: b}", "{<<: x}")


@pytest.fixture
def post(http, gadgets, make_gadget, namespace):
    """Return a function that posts a Gadget with this value, as a dry run."""
    assert make_gadget("v1", "first").status == 201

    def send(value: bytes):
        head = f"apiVersion: {gadgets}/v1\nkind: Gadget\nmetadata: {{name: a}}\n".encode()
        path = f"/apis/{gadgets}/v1/namespaces/{namespace}/gadgets"
        return http.post(path, head + b"value: " + value + b"\n", content_type=YAML, query={"dryRun": "All"})

    return send


def test_values_are_those_of_kubernetes_parser(post):
    read = {text: post(text.encode()).json.get("value", "missing") for text in VALUES}

    assert json.dumps(read, sort_keys=True) == json.dumps(VALUES, sort_keys=True)


def test_values_that_json_has_not_or_that_do_not_fit_their_tag_are_refused(post):
    assert {text: post(text.encode()).status for text in (*REFUSED, *REFUSED_MAPS)} == dict.fromkeys(
        (*REFUSED, *REFUSED_MAPS), 400
    )


def test_long_numbers_of_base_60_are_text(post):
    assert post(BASE_60).json["value"] == BASE_60.decode()
