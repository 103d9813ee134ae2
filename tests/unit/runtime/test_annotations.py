"""Annotations of a root object, as a struct or a dict."""

import pytest
from tests.builders import labels

from nodeyard.kube.objects import Node, ObjectMeta
from nodeyard.runtime.annotations import approvals, is_paused, ref_of, root_ref

FORMS = ["struct", "dict"]


def root(form, **annotations):
    given = {f"nodeyard.dev/{key}": value for key, value in annotations.items()}
    if form == "dict":
        return {"metadata": {"name": "r", "namespace": "s", "uid": "u", "annotations": given or None}}
    return Node(metadata=ObjectMeta(name="r", namespace="s", uid="u", annotations=given))


@pytest.mark.parametrize("form", FORMS)
def test_only_true_pauses(form):
    assert is_paused(root(form, paused="true"))
    assert not is_paused(root(form, paused="false"))
    assert not is_paused(root(form))


@pytest.mark.parametrize("form", FORMS)
def test_approvals_of_all_roots_are_combined(form):
    roots = [root(form, approve="a1, b2"), root(form, approve="c3"), root(form)]
    assert approvals(roots) == {"a1", "b2", "c3"}


@pytest.mark.parametrize("form", FORMS)
def test_a_root_becomes_a_reference(form):
    ref = ref_of(root(form), "v1", "Node")
    assert (ref.api_version, ref.kind, ref.namespace, ref.name, ref.uid) == ("v1", "Node", "s", "r", "u")


def test_a_root_that_says_its_kind_is_of_that_kind():
    typed = {"apiVersion": "apps.example.dev/v1", "kind": "Widget", **root("dict")}

    ref = root_ref(labels.LABELS, typed)

    assert (ref.api_version, ref.kind, ref.name) == ("apps.example.dev/v1", "Widget", "r")
