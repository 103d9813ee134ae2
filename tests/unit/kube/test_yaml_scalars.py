"""Scalars of YAML. What kube-apiserver makes of them is in tests/conformance/test_yaml.py."""

from __future__ import annotations

from contextlib import suppress

import pytest
import yaml

from nodeyard.kube.manifests import ManifestError, dump, load
from nodeyard.kube.yaml_scalars import resolve, tagged


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("00", 0),
        ("-08", -8.0),
        ("0_17", 15),
        ("-0b11", -3),
        ("18446744073709551615", 2**64 - 1),
        ("+18446744073709551615", float(2**64)),
        ("-9223372036854775808", -(2**63)),
        ("9" * 100_000, "9" * 100_000),
        ("1_000.5", 1000.5),
        (".1_0", 0.1),
        ("._5", "._5"),
        (".1__0", ".1__0"),
        ("1e-400", 0.0),
        ("0x", "0x"),
        ("0x1.8p1", "0x1.8p1"),
        ("_1", "_1"),
        (".", "."),
        ("-", "-"),
        ("infinity", "infinity"),
        ("٣", "٣"),
    ],
)
def test_numbers_are_told_from_texts(text, value):
    assert repr(resolve(text)) == repr(value)


@pytest.mark.parametrize("text", ["", "x", "1", "1.5", "yes", "2001-01-01", "aGk="])
@pytest.mark.parametrize("kind", ["null", "bool", "int", "float", "timestamp", "binary", "str", "unheard-of"])
def test_a_tag_that_does_not_fit_is_a_value_error(kind, text):
    with suppress(ValueError):
        tagged(f"tag:yaml.org,2002:{kind}", text)


@pytest.mark.parametrize("text", ["y", "N", "1e3", "08", "0o17", "+.5", "12:30", "2001-01-01", "", "~", "<<", ".inf"])
def test_texts_that_look_like_other_values_are_quoted(text):
    """By both parsers: other tools read YAML 1.1."""
    written = dump({text: text})

    assert load(written) == yaml.safe_load(written) == {text: text}


@pytest.mark.parametrize("text", ["!!bool x", '!!int ""', "!!timestamp x", "!!float ''", ".nan", "[.inf]", "&a .inf"])
def test_a_value_that_cannot_be_read_is_an_error_of_the_manifest(text):
    with pytest.raises(ManifestError):
        load(f"a: {text}")


def test_merging_many_maps_takes_linear_time():
    many = ", ".join(["*a", *(["*b"] * 20_000)])

    assert (
        len(
            load(f"a: &a {{{', '.join(f'k{each}: 1' for each in range(5000))}}}\nb: &b {{c: 1}}\nd: {{<<: [{many}]}}")[
                "d"
            ]
        )
        == 5001
    )
