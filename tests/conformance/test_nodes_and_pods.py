"""Nodes, pods, leases and namespaces: defaults, allocation and controllers of the server."""

from __future__ import annotations

import pytest

from nodeyard.testing.session import STRATEGIC, TABLE

EMPTYING = 90.0
"""Each test leaves a namespace, and the real controller empties them one after another, five seconds late."""


def pod(name: str, **spec) -> dict:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "registry.example/app:1"}], **spec},
    }


@pytest.fixture
def node(http, fresh):
    name = fresh("node")
    http.post("/api/v1/nodes", {"metadata": {"name": name}})
    yield f"/api/v1/nodes/{name}"
    http.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def pods(namespace) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def test_a_new_node_is_tainted_until_it_is_ready(http, fresh):
    name = fresh("node")

    answer = http.post("/api/v1/nodes", {"metadata": {"name": name}})

    assert answer.json["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    http.delete(f"/api/v1/nodes/{name}")


@pytest.mark.parametrize(
    ("taints", "field"),
    [
        ([{"key": "a", "effect": "Nope"}], "spec.taints[0].effect"),
        ([{"key": "a b", "effect": "NoSchedule"}], "spec.taints[0].key"),
        ([{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoSchedule"}], "spec.taints[1]"),
        ([{"key": "a", "value": "x!", "effect": "NoSchedule"}], "spec.taints[0].value"),
    ],
    ids=["effect", "key", "duplicate", "value"],
)
def test_bad_taints_are_invalid(http, node, taints, field):
    answer = http.patch(node, {"spec": {"taints": taints}})

    assert answer.status == 422
    assert answer.causes[0]["field"].replace("metadata.taints", "spec.taints") == field


def test_node_status_is_written_apart(http, node):
    http.patch(node, {"status": {"capacity": {"cpu": "4"}}})
    through_status = http.patch(f"{node}/status", {"status": {"capacity": {"cpu": "4000m", "memory": "1024Mi"}}})

    assert through_status.json["status"]["capacity"] == {"cpu": "4", "memory": "1Gi"}


def test_node_conditions_merge_by_type(http, node):
    for kind in ("Ready", "DiskPressure"):
        http.patch(f"{node}/status", {"status": {"conditions": [{"type": kind, "status": "False"}]}}, STRATEGIC)

    assert {c["type"] for c in http.get(node).json["status"]["conditions"]} >= {"Ready", "DiskPressure"}


def test_a_cordoned_node_is_found_by_field(http, node):
    http.patch(node, {"spec": {"unschedulable": True}})

    found = http.get("/api/v1/nodes", query={"fieldSelector": "spec.unschedulable=true"}).json["items"]

    assert node.rsplit("/", 1)[1] in [item["metadata"]["name"] for item in found]


def test_nodes_print_status_roles_and_version(http, node):
    http.patch(node, {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}, "spec": {"unschedulable": True}})
    http.patch(
        f"{node}/status",
        {"status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": None}},
    )

    table = http.get(node, accept=TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Status",
        "Roles",
        "Age",
        "Version",
    ]
    assert table["rows"][0]["cells"][1:3] == ["Ready,SchedulingDisabled", "worker"]


def test_a_pod_gets_its_defaults(http, pods):
    answer = http.post(pods, pod("p"))

    spec = answer.json["spec"]
    assert answer.status == 201
    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["schedulerName"]) == (
        "Always",
        "ClusterFirst",
        "default-scheduler",
    )
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert (answer.json["status"]["phase"], answer.json["status"]["qosClass"]) == ("Pending", "BestEffort")


def test_a_pod_tolerates_a_lost_node_for_five_minutes(http, pods):
    tolerations = http.post(pods, pod("p")).json["spec"]["tolerations"]

    assert {(t["key"], t["effect"], t["tolerationSeconds"]) for t in tolerations} == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"metadata": {"name": "p"}, "spec": {}}, "spec.containers"),
        ({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}, "spec.containers[0].image"),
        (
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "C!", "image": "i"}]}},
            "spec.containers[0].name",
        ),
        (
            {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}] * 2}},
            "spec.containers[1].name",
        ),
        (pod("p", restartPolicy="Maybe"), "spec.restartPolicy"),
    ],
    ids=["no containers", "no image", "bad name", "duplicate", "restart policy"],
)
def test_a_faulty_pod_is_invalid(http, pods, body, field):
    answer = http.post(pods, body)

    assert answer.status == 422
    assert field in [cause["field"] for cause in answer.causes]


def test_most_of_a_pods_spec_cannot_change(http, pods):
    http.post(pods, pod("p"))

    refused = http.patch(f"{pods}/p", {"spec": {"hostNetwork": True}})
    allowed = http.patch(f"{pods}/p", {"spec": {"containers": [{"name": "c", "image": "other:2"}]}}, STRATEGIC)

    assert refused.status == 422
    assert refused.causes[0]["message"].startswith("Forbidden: pod updates may not change fields other than")
    assert allowed.status == 200


def test_a_binding_puts_a_pod_on_a_node_once(http, pods, node):
    http.post(pods, pod("p"))
    name = node.rsplit("/", 1)[1]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": name},
    }

    first = http.post(f"{pods}/p/binding", binding)
    second = http.post(f"{pods}/p/binding", binding)

    assert first.status == 201
    bound = http.get(f"{pods}/p").json
    assert bound["spec"]["nodeName"] == name
    assert [(c["type"], c["status"]) for c in bound["status"]["conditions"]] == [("PodScheduled", "True")]
    assert (second.status, second.reason) == (409, "Conflict")
    http.delete(f"{pods}/p", {"gracePeriodSeconds": 0})


def test_pods_are_found_by_node_and_phase(http, pods, node):
    name = node.rsplit("/", 1)[1]
    http.post(pods, pod("here", nodeName=name))
    http.post(pods, pod("nowhere"))

    by_node = http.get(pods, query={"fieldSelector": f"spec.nodeName={name}"}).json["items"]
    by_phase = http.get(pods, query={"fieldSelector": "status.phase=Pending,spec.nodeName="}).json["items"]

    assert [item["metadata"]["name"] for item in by_node] == ["here"]
    assert [item["metadata"]["name"] for item in by_phase] == ["nowhere"]
    http.delete(f"{pods}/here", {"gracePeriodSeconds": 0})


def test_pods_print_ready_status_and_restarts(http, pods):
    http.post(pods, pod("p"))

    table = http.get(pods, accept=TABLE).json

    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"][:3] == ["p", "0/1", "Pending"]


def test_a_lease_keeps_microseconds(http, namespace):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.123456Z"}

    answer = http.post(leases, {"metadata": {"name": "l"}, "spec": spec})

    assert answer.json["spec"]["renewTime"] == "2026-01-01T00:00:00.123456Z"


def test_a_lease_with_no_duration_at_all_is_invalid(http, namespace):
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    answer = http.post(leases, {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0}})

    assert (answer.status, answer.causes[0]["field"]) == (422, "spec.leaseDurationSeconds")


def test_a_deployment_gets_defaults_and_keeps_its_selector(http, namespace):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    created = http.post(
        path, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}}
    )

    changed = http.patch(f"{path}/d", {"spec": {"selector": {"matchLabels": {"app": "y"}}}})

    assert created.json["spec"]["replicas"] == 1
    assert created.json["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert created.json["metadata"]["generation"] == 1
    assert changed.status == 422


def test_a_deployment_is_scaled_through_its_subresource(http, namespace):
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    http.post(
        path, {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template}}
    )

    scale = http.get(f"{path}/d/scale").json
    answer = http.put(f"{path}/d/scale", {**scale, "spec": {"replicas": 5}})

    assert scale["status"]["selector"] == "app=x"
    assert answer.json["spec"]["replicas"] == 5
    assert http.get(f"{path}/d").json["spec"]["replicas"] == 5


def test_a_namespace_is_labelled_with_its_name(http, namespace):
    answer = http.get(f"/api/v1/namespaces/{namespace}").json

    assert answer["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace
    assert (answer["spec"], answer["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})


def test_a_deleted_namespace_takes_its_objects_along(http, fresh, eventually):
    name = fresh("doomed")
    http.post("/api/v1/namespaces", {"metadata": {"name": name}})
    http.post(f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "a"}})
    http.post(f"/api/v1/namespaces/{name}/pods", pod("p"))

    marked = http.delete(f"/api/v1/namespaces/{name}")

    assert marked.json["status"]["phase"] == "Terminating"
    eventually(lambda: http.get(f"/api/v1/namespaces/{name}").status == 404, "the namespace is gone", EMPTYING)
    assert http.get(f"/api/v1/namespaces/{name}/configmaps/a").status == 404


def test_nothing_is_created_in_a_terminating_namespace(http, fresh, eventually):
    name = fresh("closing")
    http.post("/api/v1/namespaces", {"metadata": {"name": name}})
    held = {"metadata": {"name": "held", "finalizers": ["x.y/z"]}}
    http.post(f"/api/v1/namespaces/{name}/configmaps", held)
    http.delete(f"/api/v1/namespaces/{name}")

    answer = http.post(f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "late"}})

    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.causes[0]["reason"] == "NamespaceTerminating"
    http.patch(f"/api/v1/namespaces/{name}/configmaps/held", {"metadata": {"finalizers": None}})
    eventually(lambda: http.get(f"/api/v1/namespaces/{name}").status == 404, "the namespace is gone", EMPTYING)


@pytest.mark.parametrize("name", ["default", "kube-system"])
def test_namespaces_that_every_cluster_has_cannot_be_deleted(http, name):
    answer = http.delete(f"/api/v1/namespaces/{name}")

    assert (answer.status, answer.reason) == (403, "Forbidden")
