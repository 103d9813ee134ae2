"""YAML as Kubernetes reads it."""

from __future__ import annotations

import pytest

from nodeyard.kube.manifests import ManifestError, dump, load, load_all, load_first


def test_dates_stay_the_text_they_are():
    assert load("when: 2026-01-01") == {"when": "2026-01-01"}


def test_every_document_is_an_object_and_empty_ones_are_passed_over():
    assert list(load_all("---\na: 1\n---\n---\nb: 2\n")) == [{"a": 1}, {"b": 2}]


def test_a_list_is_split_into_its_items():
    assert list(load_all("kind: List\nitems: [{a: 1}, {b: 2}]")) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("text", ["a: [1, 2", "just text", "- a\n- b"], ids=["broken", "text", "list"])
def test_invalid_manifests_are_refused(text):
    with pytest.raises(ManifestError):
        list(load_all(text))


def test_dumped_manifests_can_be_loaded():
    value = {"a": [1, "2", None, True], "b": {"c": "2026-01-01"}}

    assert load(dump(value)) == value


@pytest.mark.parametrize("text", ["[" * 50_000, "{a: " * 50_000, "- " * 50_000, "? " * 50_000])
def test_endless_nesting_is_refused_and_the_process_survives(text):
    with pytest.raises(ManifestError):
        load(text)


@pytest.mark.parametrize(
    "text",
    [
        "a: {b: [1, 0x1f, 017, 1_000, 1:30, 1.5, .inf, yes, Off, ~, null, text, '1', 2026-01-01]}",
        'a: |\n  some\n  text\nb: >-\n  folded\n  text\nc: "\\u00e9"\nd:\n- - 1\n  - x: {}\n- []\n',
        "a: 1\nb: {c: 1, c: 2, d: 3, c: 4}\na:\n  - e: 1\n    e: 2\n",
        "8080: a\nyes: b\n",
        "- <<: {a: 1}\n  b: 2\n",
        "? [a]\n: 1\n",
        "a: !!str 1\n",
        "a: 1\nb: [\n",
    ],
    ids=["scalars", "texts", "repeated", "keys", "merged", "complex", "tagged", "broken"],
)
def test_a_document_reads_the_same_with_and_without_an_anchor(text):
    """A document with an anchor is composed of nodes instead of built from the parser's events."""
    plain, anchored = f"x: 0\ny:\n{indented(text)}", f"x: &x 0\ny:\n{indented(text)}"

    assert outcome(plain) == outcome(anchored)


def indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def outcome(text: str) -> tuple:
    try:
        return repr(load_first(text)), ""
    except ManifestError as error:
        return (), type(error.__cause__)
