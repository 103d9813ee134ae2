"""Strategies: generations, status, field labels."""

from __future__ import annotations

import pytest

from .builders import DEPLOYMENT, POD
from .pipeline import RESOURCES, changed, made


@pytest.mark.parametrize(
    ("group", "plural"),
    [
        ("", "nodes"), ("", "namespaces"), ("", "secrets"), ("", "services"), ("coordination.k8s.io", "leases"),
        ("rbac.authorization.k8s.io", "roles"), ("", "events"),
    ],
)  # fmt: skip
def test_some_kinds_count_no_generations(group: str, plural: str) -> None:
    assert not RESOURCES[group, plural].strategy.uses_generation


def test_a_change_of_spec_is_a_new_generation_and_a_change_of_labels_is_not() -> None:
    old = made("apps", "deployments", DEPLOYMENT)
    assert old["metadata"]["generation"] == 1
    scaled = changed("apps", "deployments", old, spec={**old["spec"], "replicas": 3})
    assert scaled["metadata"]["generation"] == 2
    labelled = changed("apps", "deployments", old, metadata={**old["metadata"], "labels": {"a": "b"}})
    assert labelled["metadata"]["generation"] == 1


def test_a_creator_does_not_set_status() -> None:
    deployment = made("apps", "deployments", {**DEPLOYMENT, "status": {"replicas": 3}})
    assert deployment["status"] == {}
    assert made("", "pods", {**POD, "status": {"phase": "Running"}})["status"]["phase"] == "Pending"


def test_an_update_keeps_status_and_a_status_update_keeps_spec() -> None:
    old = made("", "nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    cordoned = changed("", "nodes", old, spec={"unschedulable": True}, status={"capacity": {"cpu": "8"}})
    assert cordoned["spec"] == {"unschedulable": True}
    assert cordoned["status"]["capacity"] == {"cpu": "4"}
    grown = changed("", "nodes", old, is_status=True, spec={"unschedulable": True}, status={"capacity": {"cpu": "8"}})
    assert grown["spec"] == {}
    assert grown["status"]["capacity"] == {"cpu": "8"}


def test_a_status_write_may_change_a_nodes_labels_but_not_a_deployments() -> None:
    labels = {"labels": {"a": "b"}}
    node = made("", "nodes", {"metadata": {"name": "n"}})
    assert changed("", "nodes", node, is_status=True, metadata={**node["metadata"], **labels})["metadata"]["labels"]
    old = made("apps", "deployments", DEPLOYMENT)
    new = changed("apps", "deployments", old, is_status=True, metadata={**old["metadata"], **labels})
    assert "labels" not in new["metadata"]


def test_fields_that_an_endpoint_resets_are_not_owned_by_the_writer() -> None:
    deployments = RESOURCES["apps", "deployments"].strategy
    assert deployments.reset_fields("") == (("status",),)
    assert deployments.reset_fields("status") == (("spec",), ("metadata", "labels"))
    assert RESOURCES["", "configmaps"].strategy.reset_fields("") == ()


@pytest.mark.parametrize(
    ("group", "plural", "words"),
    [
        ("", "nodes", "field label not supported: x"),
        ("", "configmaps", '"x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("batch", "jobs", 'field label "x" not supported for Job'),
    ],
)
def test_an_unknown_field_label_is_refused_in_the_kinds_own_words(group: str, plural: str, words: str) -> None:
    assert RESOURCES[group, plural].strategy.unknown_field_label("x") == words


def test_every_selectable_field_is_announced() -> None:
    for resource in RESOURCES.values():
        sample = {"metadata": {"name": "x"}}
        assert set(resource.strategy.selectable(sample)) == resource.strategy.field_labels()


def test_events_of_both_groups_are_found_by_what_they_are_about() -> None:
    core = RESOURCES["", "events"].strategy.selectable({"involvedObject": {"name": "p"}, "source": {"component": "c"}})
    assert (core["involvedObject.name"], core["source"]) == ("p", "c")
    new = RESOURCES["events.k8s.io", "events"].strategy.selectable({"regarding": {"name": "p"}})
    assert new["regarding.name"] == "p"
