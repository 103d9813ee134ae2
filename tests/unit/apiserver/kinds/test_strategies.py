"""What is particular to a kind beyond defaults and validation."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.errors import ApiError

from .pipeline import NOW, RESOURCES, UID, create, update

Object = dict[str, Any]
TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
DEPLOYMENT = {"metadata": {"name": "x"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}
POD = {"metadata": {"name": "x"}, "spec": TEMPLATE["spec"]}


def made(group: str, plural: str, body: Object) -> Object:
    return create(RESOURCES[group, plural], "default", body)


def changed(group: str, plural: str, old: Object, *, is_status: bool = False, **fields: Any) -> Object:
    return update(RESOURCES[group, plural], old, {**old, **fields}, is_status=is_status)


# generation


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


def test_a_deployment_counts_changes_of_its_annotations() -> None:
    old = made("apps", "deployments", DEPLOYMENT)
    noted = changed("apps", "deployments", old, metadata={**old["metadata"], "annotations": {"a": "b"}})
    assert noted["metadata"]["generation"] == 2


def test_a_daemon_set_counts_its_templates_apart() -> None:
    key = "deprecated.daemonset.template.generation"
    old = made("apps", "daemonsets", DEPLOYMENT)
    assert old["metadata"]["annotations"] == {key: "1"}
    template = {**TEMPLATE, "spec": {"containers": [{"name": "a", "image": "c"}]}}
    new = changed("apps", "daemonsets", old, spec={**old["spec"], "template": template})
    assert new["metadata"]["annotations"] == {key: "2"}
    same = changed("apps", "daemonsets", new, spec={**new["spec"], "minReadySeconds": 5})
    assert same["metadata"]["annotations"] == {key: "2"}


# status


def test_a_creator_does_not_set_status() -> None:
    deployment = made("apps", "deployments", {**DEPLOYMENT, "status": {"replicas": 3}})
    assert deployment["status"] == {}
    assert made("", "pods", {**POD, "status": {"phase": "Running"}})["status"]["phase"] == "Pending"


def test_a_node_is_registered_with_its_status() -> None:
    node = made("", "nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}})
    assert node["status"]["capacity"] == node["status"]["allocatable"] == {"cpu": "4"}


def test_an_update_leaves_status_and_a_status_write_leaves_spec() -> None:
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


def test_what_an_endpoint_resets_is_not_owned_by_who_writes_it() -> None:
    deployments = RESOURCES["apps", "deployments"].strategy
    assert deployments.reset_fields("") == (("status",),)
    assert deployments.reset_fields("status") == (("spec",), ("metadata", "labels"))
    assert RESOURCES["", "configmaps"].strategy.reset_fields("") == ()


def test_a_kubelet_that_forgets_what_it_observed_does_not_erase_it() -> None:
    pod = made("", "pods", POD)
    ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
    seen = {**pod, "status": {**pod["status"], "observedGeneration": 1, "conditions": [ready]}}
    forgetful = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    status = changed("", "pods", seen, is_status=True, status=forgetful)["status"]
    assert (status["observedGeneration"], status["qosClass"]) == (1, "BestEffort")
    assert status["conditions"][0]["observedGeneration"] == 1


# pods


def test_a_pod_gets_its_priority_from_the_class_it_names() -> None:
    assert made("", "pods", POD)["spec"]["priority"] == 0
    critical = made("", "pods", {**POD, "spec": {**POD["spec"], "priorityClassName": "system-node-critical"}})
    assert critical["spec"]["priority"] == 2_000_001_000


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priorityClassName": "nope"}, "no PriorityClass with name nope was found"),
        ({"priority": 7}, "the integer value of priority (7) must not be provided in pod spec"),
        ({"preemptionPolicy": "Never"}, "the string value of PreemptionPolicy (Never) must not be provided"),
    ],
)
def test_a_priority_of_ones_own_is_forbidden(spec: Object, words: str) -> None:
    with pytest.raises(ApiError) as refusal:
        made("", "pods", {**POD, "spec": {**POD["spec"], **spec}})
    assert refusal.value.code == 403
    assert words in refusal.value.message


@pytest.mark.parametrize(
    ("spec", "phase", "asked", "seconds"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 5, 5),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", 0, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Running", -1, 1),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Succeeded", None, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 30}, "Failed", 60, 0),
    ],
    ids=["unassigned", "its own", "asked for", "at once", "negative", "succeeded", "failed"],
)
def test_a_pod_is_given_time_only_while_a_node_runs_it(
    spec: Object, phase: str, asked: int | None, seconds: int
) -> None:
    assert RESOURCES["", "pods"].strategy.grace_period({"spec": spec, "status": {"phase": phase}}, asked) == seconds


def test_a_pod_whose_name_is_no_host_name_is_warned_about() -> None:
    strategy = RESOURCES["", "pods"].strategy
    assert strategy.warnings({"metadata": {"name": "web"}}, None) == []
    (warning,) = strategy.warnings({"metadata": {"name": "web.1"}}, None)
    assert warning.startswith("metadata.name: this is used in the Pod's hostname")
    assert strategy.warnings({"metadata": {"name": "web.1"}}, {}) == []


# jobs, services, namespaces


def test_a_job_selects_its_own_pods() -> None:
    job = made("batch", "jobs", {"metadata": {"name": "x"}, "spec": {"template": _once()}})
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert (labels["job-name"], labels["controller-uid"]) == ("x", UID)
    assert job["metadata"]["labels"] == labels


def test_a_job_with_a_selector_of_its_own_is_left_alone() -> None:
    spec = {"manualSelector": True, "selector": {"matchLabels": {"app": "a"}}, "template": _once()}
    job = made("batch", "jobs", {"metadata": {"name": "x"}, "spec": spec})
    assert job["spec"]["template"]["metadata"]["labels"] == {"app": "a"}


def _once() -> Object:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}


def test_a_service_keeps_the_address_it_was_given() -> None:
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
    service = made("", "services", body)
    assert service["spec"]["clusterIP"].startswith("10.")
    assert 30000 <= service["spec"]["ports"][0]["nodePort"] < 32768
    again = update(RESOURCES["", "services"], service, body)
    assert again["spec"] == service["spec"]


def test_deleting_a_namespace_only_begins_it() -> None:
    strategy = RESOURCES["", "namespaces"].strategy
    namespace = made("", "namespaces", {"metadata": {"name": "x"}})
    assert strategy.holds(namespace)
    leaving = strategy.prepare_delete(namespace, NOW)
    assert leaving is not None
    assert leaving["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert leaving["status"] == {"phase": "Terminating"}
    assert strategy.prepare_delete({**leaving, "spec": {}}, NOW) is None


def test_a_namespace_that_is_left_cannot_become_active_again() -> None:
    strategy = RESOURCES["", "namespaces"].strategy
    leaving = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Active"}}
    assert [str(error) for error in strategy.validate_status(leaving, leaving)] == [
        "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    ]


# field selectors


def test_pods_are_found_by_where_and_how_they_run() -> None:
    pod = made("", "pods", {**POD, "spec": {**POD["spec"], "nodeName": "n", "hostNetwork": True}})
    found = RESOURCES["", "pods"].strategy.selectable(
        {**pod, "status": {"phase": "Running", "podIPs": [{"ip": "1.1.1.1"}]}}
    )
    assert found == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "true",
        "status.phase": "Running",
        "status.podIP": "1.1.1.1",
        "status.nominatedNodeName": "",
    }


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
