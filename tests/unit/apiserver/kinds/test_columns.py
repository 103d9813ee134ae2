"""Columns of the other kinds; expected rows were compared with the real server's."""

from __future__ import annotations

from typing import Any

from nodeyard.apiserver.kinds.lease import LeaseStrategy

from .builders import CREATED, named, workload
from .pipeline import NOW, RESOURCES, cells


def test_every_kind_has_a_cell_for_each_column() -> None:
    samples: dict[str, dict[str, Any]] = {"events": named(involvedObject={}), "jobs": workload()}
    for (_, plural), resource in RESOURCES.items():
        row = resource.strategy.cells(samples.get(plural, named()), NOW)
        assert len(row) == len(resource.versions["v1"].columns), plural


def test_a_budget_shows_its_limits() -> None:
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


def test_data_is_counted() -> None:
    assert cells("", "configmaps", named(data={"a": ""}, binaryData={"b": ""}))[1] == 2
    assert cells("", "secrets", named(data={"a": ""}, type="Opaque"))[1:3] == ["Opaque", 1]


def test_a_lease_shows_its_holder() -> None:
    lease = {"metadata": {"name": "l", "creationTimestamp": CREATED}, "spec": {"holderIdentity": "me"}}
    assert LeaseStrategy().cells(lease, NOW) == ["l", "me", "60m"]
