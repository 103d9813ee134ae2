"""Rows of the other kinds; expected rows were compared with the real server's."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.apiserver.kinds.printer import Printer
from nodeyard.apiserver.resources import Strategy

from .builders import CREATED, service, workload
from .pipeline import NOW, RESOURCES


def cells(group: str, plural: str, obj: dict[str, Any]) -> list[Any]:
    strategy: Strategy = RESOURCES[group, plural].strategy
    return strategy.cells(obj, NOW)


def named(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "creationTimestamp": CREATED}, **fields}


def test_every_kind_has_a_cell_for_each_column() -> None:
    samples: dict[str, dict[str, Any]] = {"events": named(involvedObject={}), "jobs": workload()}
    for (_, plural), resource in RESOURCES.items():
        row = resource.strategy.cells(samples.get(plural, named()), NOW)
        assert len(row) == len(resource.versions["v1"].columns), plural


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


def test_a_job_shows_how_long_it_took_or_takes() -> None:
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


@pytest.mark.parametrize(
    ("obj", "external", "ports"),
    [
        (service(), "<none>", "80/TCP"),
        (
            service(type="NodePort", ports=[{"port": 80, "nodePort": 30080, "protocol": "UDP"}]),
            "<none>",
            "80:30080/UDP",
        ),
        (service(type="LoadBalancer"), "<pending>", "80/TCP"),
        (service(type="LoadBalancer", externalIPs=["1.1.1.1"]), "1.1.1.1", "80/TCP"),
        (
            service(type="LoadBalancer", status={"loadBalancer": {"ingress": [{"ip": "2.2.2.2"}, {"hostname": "h"}]}}),
            "2.2.2.2,h",
            "80/TCP",
        ),
        (service(type="ExternalName", externalName="a.b", ports=[]), "a.b", "<none>"),
    ],
    ids=["cluster", "node-port", "pending", "external-ips", "balanced", "name"],
)
def test_a_service_shows_how_it_is_reached(obj: dict[str, Any], external: str, ports: str) -> None:
    shown = cells("", "services", obj)
    assert (shown[3], shown[4]) == (external, ports)


def test_a_budget_shows_what_it_was_given() -> None:
    obj = named(spec={"maxUnavailable": 0}, status={"disruptionsAllowed": 2})
    assert cells("policy", "poddisruptionbudgets", obj) == ["x", "N/A", "0", 2, "60m"]


def test_a_binding_shows_role_and_subjects() -> None:
    subjects = [
        {"kind": "User", "name": "u"},
        {"kind": "User", "name": "v"},
        {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "d"},
    ]
    obj = named(roleRef={"kind": "Role", "name": "r"}, subjects=subjects)
    shown = cells("rbac.authorization.k8s.io", "rolebindings", obj)
    assert shown == ["x", "Role/r", "60m", "u, v", "g", "d/s"]


def test_roles_show_the_moment_they_were_created() -> None:
    assert cells("rbac.authorization.k8s.io", "roles", named()) == ["x", CREATED]


def test_policies_show_their_parameters() -> None:
    group = "admissionregistration.k8s.io"
    policy = named(spec={"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}})
    assert cells(group, "validatingadmissionpolicies", policy)[1:3] == [1, "v1/ConfigMap"]
    by_name = named(spec={"policyName": "p", "paramRef": {"name": "c"}})
    assert cells(group, "validatingadmissionpolicybindings", by_name)[1:3] == ["p", "*/c"]
    by_labels = named(spec={"policyName": "p", "paramRef": {"selector": {"matchLabels": {"a": "b"}}}})
    assert cells(group, "validatingadmissionpolicybindings", by_labels)[2] == "a=b"


def test_events_of_both_groups_make_the_same_row() -> None:
    core = named(
        involvedObject={"kind": "Pod", "name": "p", "fieldPath": "f"},
        reason="Started",
        message=" m ",
        type="Normal",
        firstTimestamp="2025-12-31T23:00:00Z",
        lastTimestamp="2025-12-31T23:50:00Z",
        count=4,
        source={"component": "kubelet", "host": "n1"},
    )
    new = named(
        regarding=core["involvedObject"],
        reason="Started",
        note=" m ",
        type="Normal",
        eventTime="2025-12-31T23:00:00.000000Z",
        series={"count": 4, "lastObservedTime": "2025-12-31T23:50:00.000000Z"},
        reportingController="kubelet",
        reportingInstance="n1",
    )
    row = ["10m", "Normal", "Started", "pod/p", "f", "kubelet, n1", "m", "60m", 4, "x"]
    assert cells("", "events", core) == row
    assert cells("events.k8s.io", "events", new) == row


def test_a_controller_revision_shows_whose_it_is() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True}
    obj = {"metadata": {"name": "r", "creationTimestamp": CREATED, "ownerReferences": [owner]}, "revision": 3}
    assert cells("apps", "controllerrevisions", obj) == ["r", "statefulset.apps/db", 3, "60m"]


def test_data_is_counted() -> None:
    assert cells("", "configmaps", named(data={"a": ""}, binaryData={"b": ""}))[1] == 2
    assert cells("", "secrets", named(data={"a": ""}, type="Opaque"))[1:3] == ["Opaque", 1]


def test_printers_are_values_that_can_be_shared() -> None:
    printers = {id(resource.strategy.printer) for resource in RESOURCES.values()}
    assert all(isinstance(resource.strategy.printer, Printer) for resource in RESOURCES.values())
    assert len(printers) < len(RESOURCES)
