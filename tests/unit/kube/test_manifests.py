"""YAML as Kubernetes reads it."""

from __future__ import annotations

import pytest

from nodeyard.kube.manifests import ManifestError, dump, load, load_all


def test_dates_stay_the_text_they_are():
    assert load("when: 2026-01-01") == {"when": "2026-01-01"}


def test_every_document_is_an_object_and_empty_ones_are_passed_over():
    assert list(load_all("---\na: 1\n---\n---\nb: 2\n")) == [{"a": 1}, {"b": 2}]


def test_a_list_is_taken_apart():
    assert list(load_all("kind: List\nitems: [{a: 1}, {b: 2}]")) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("text", ["a: [1, 2", "just text", "- a\n- b"], ids=["broken", "text", "list"])
def test_what_is_no_manifest_is_refused(text):
    with pytest.raises(ManifestError):
        list(load_all(text))


def test_what_is_dumped_can_be_loaded():
    value = {"a": [1, "2", None, True], "b": {"c": "2026-01-01"}}

    assert load(dump(value)) == value


@pytest.mark.parametrize("text", ["[" * 50_000, "{a: " * 50_000, "- " * 50_000, "? " * 50_000])
def test_what_is_nested_without_end_is_refused_and_the_process_lives(text):
    with pytest.raises(ManifestError):
        load(text)
