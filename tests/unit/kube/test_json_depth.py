"""JSON that is nested too deeply is cut out, and nothing else changes."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.nested_json import nested

from nodeyard.kube.json_depth import MOST_LEVELS, is_cut, shallow

SCALARS = st.none() | st.booleans() | st.integers() | st.text()
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


def levels(value):
    found = 0
    while isinstance(value, dict):
        value, found = value["a"], found + 1
    return found


@given(JSON, st.booleans())
def test_shallow_values_are_unchanged(value, is_ascii):
    raw = json.dumps(value, ensure_ascii=is_ascii).encode()
    assert shallow(raw) == raw
    assert not is_cut(raw)


@given(JSON, JSON)
def test_only_what_is_deep_is_cut_out(before, after):
    raw = json.dumps({"before": before, "deep": "DEEP", "after": after}).replace('"DEEP"', nested(2_000)).encode()

    cut = shallow(raw)

    found = msgspec.json.decode(cut)
    assert (found["before"], found["after"]) == (before, after)
    assert levels(found["deep"]) == MOST_LEVELS - 1
    assert is_cut(cut)


@pytest.mark.parametrize("depth", [MOST_LEVELS, MOST_LEVELS + 1])
def test_so_many_levels_are_kept_and_no_more(depth):
    assert is_cut(shallow(nested(depth).encode())) == (depth > MOST_LEVELS)


def test_brackets_in_strings_are_text():
    raw = json.dumps(["[" * 2_000, '"' + "{" * 2_000, "\\", "]"]).encode()
    assert shallow(raw) == raw


def test_two_deep_values_are_both_cut_out():
    found = msgspec.json.decode(shallow(f'{{"b":{nested(3_000)},"c":{nested(900)},"d":2}}'.encode()))
    assert [levels(found["b"]), levels(found["c"]), found["d"]] == [MOST_LEVELS - 1, MOST_LEVELS - 1, 2]


@pytest.mark.parametrize("torn", [b'{"a', b'{"a":[', b"]]]", b'"\\'])
def test_invalid_json_is_left_to_the_decoder(torn):
    assert shallow(torn) == torn


def test_a_string_without_an_end_is_read_once_and_to_the_end():
    torn = b'["' + b"[" * (MOST_LEVELS + 1) + b'\\"' * 100_000
    assert shallow(torn) == torn
