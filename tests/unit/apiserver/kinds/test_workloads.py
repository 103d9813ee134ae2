"""Workloads: generations, generated selectors, columns."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.kinds.pod_template import PodTemplateStrategy

from .builders import CREATED, DEPLOYMENT, TEMPLATE, named, workload
from .pipeline import NOW, UID, cells, changed, made


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


def test_a_deployment_shows_how_far_it_is() -> None:
    status = {"replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 1}
    shown = cells("apps", "deployments", workload(replicas=3, status=status))
    assert shown == ["w", "2/3", 2, 1, "60m", "a,b", "registry/a:v1,registry/b:v1", "app=a"]


def test_the_other_workloads_show_their_counts() -> None:
    assert cells("apps", "replicasets", workload(replicas=2, status={"replicas": 1}))[:5] == ["w", 2, 1, 0, "60m"]
    assert cells("apps", "statefulsets", workload(replicas=2, status={"readyReplicas": 1}))[:3] == ["w", "1/2", "60m"]
    counted = {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3}
    assert cells("apps", "daemonsets", workload(status=counted))[:7] == ["w", 5, 4, 3, 0, 0, "<none>"]


@pytest.mark.parametrize(
    ("conditions", "state"),
    [
        ([], "Running"),
        ([{"type": "Complete", "status": "True"}], "Complete"),
        ([{"type": "Failed", "status": "True"}, {"type": "FailureTarget", "status": "True"}], "Failed"),
        ([{"type": "Suspended", "status": "True"}], "Suspended"),
        ([{"type": "Complete", "status": "False"}], "Running"),
    ],
)
def test_a_job_is_in_one_state(conditions: list[dict[str, str]], state: str) -> None:
    assert cells("batch", "jobs", workload(status={"conditions": conditions}))[1] == state


@pytest.mark.parametrize(
    ("spec", "shown"),
    [({"completions": 3}, "1/3"), ({"parallelism": 4}, "1/1 of 4"), ({"parallelism": 1}, "1/1")],
)
def test_a_job_counts_its_completions(spec: dict[str, int], shown: str) -> None:
    assert cells("batch", "jobs", workload(status={"succeeded": 1}, **spec))[2] == shown


def test_a_job_shows_its_duration() -> None:
    started = {"startTime": "2025-12-31T23:30:00Z"}
    assert cells("batch", "jobs", workload())[3] == ""
    assert cells("batch", "jobs", workload(status=started))[3] == "30m"
    assert cells("batch", "jobs", workload(status={**started, "completionTime": "2025-12-31T23:30:45Z"}))[3] == "45s"


def test_a_cron_job_shows_its_schedule() -> None:
    template = {"jobTemplate": {"spec": workload()["spec"]}}
    obj = named(
        spec={"schedule": "* * * * *", "suspend": False, **template},
        status={"active": [{}], "lastScheduleTime": "2025-12-31T23:59:00Z"},
    )
    assert cells("batch", "cronjobs", obj)[:7] == ["x", "* * * * *", "<none>", "False", 1, "60s", "60m"]


def test_a_controller_revision_shows_whose_it_is() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
    obj = {"metadata": {"name": "r", "creationTimestamp": CREATED, "ownerReferences": [owner]}, "revision": 3}
    assert cells("apps", "controllerrevisions", obj) == ["r", "statefulset.apps/db", 3, "60m"]


def test_a_pod_template_shows_its_containers() -> None:
    template = workload()["spec"]["template"]
    cells = PodTemplateStrategy().cells({"metadata": {"name": "t"}, "template": template}, NOW)
    assert cells == ["t", "a,b", "registry/a:v1,registry/b:v1", "app=a"]


def _once() -> dict[str, Any]:
    return {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}
