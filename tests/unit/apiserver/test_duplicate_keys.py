"""Fields given more than once."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.duplicate_keys import duplicate_fields


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ('{"spec":{"a":1,"a":2,"a":3}}', ["spec.a"]),
        (
            '{"spec":{"a":{"b":1,"b":2},"c":[{"d":1,"d":2},[{"e":1,"e":1}]],"a":{"b":3,"z":1,"z":2}},"spec":{}}',
            ["spec.a.b", "spec.c[0].d", "spec.c[1][0].e", "spec.a", "spec.a.z", "spec"],
        ),
        ('{"s":{"a.b":{"c":1,"c":2},"":{"":1,"":2},"é":{"\\u00e9":1,"é":2}}}', ["s.a.b.c", "s..", "s.é.é"]),
        ('{"kind":"A","kind":"A"}', ["kind"]),
    ],
)
def test_they_are_named_in_the_order_of_the_document(raw: str, paths: list[str]) -> None:
    assert duplicate_fields(raw.encode()) == paths


@pytest.mark.parametrize("raw", ['{"a":[{"b":1},{"b":1}]}', '{\n  "a" : 1.50,\n  "b" : "\\u003c"\n}', "[]", '"a"'])
def test_no_duplicates_are_found_in_unique_keys(raw: str) -> None:
    assert duplicate_fields(raw.encode()) == []


def test_a_document_that_is_read_already_is_not_read_again() -> None:
    assert duplicate_fields(b'{"a":1}', {"a": 1}) == []
    assert duplicate_fields(b'{"a":0,"a":1}', {"a": 1}) == ["a"]


def test_a_number_that_grows_when_rewritten_does_not_hide_a_duplicate() -> None:
    assert duplicate_fields(b'{"a":1e3,"b":1,"b":1}') == ["b"]


def test_a_hundred_are_enough() -> None:
    raw = "{" + ",".join(f'"k{number}":1,"k{number}":2' for number in range(103)) + "}"

    assert duplicate_fields(raw.encode()) == [f"k{number}" for number in range(100)]
