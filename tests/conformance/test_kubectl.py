"""kubectl's everyday verbs, without a special flag."""

from __future__ import annotations

import json

import pytest

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "registry.example/app:1", ports: [{containerPort: 80}]}]
"""

GIZMO = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.kubectl.example}
spec:
  group: kubectl.example
  scope: Namespaced
  names: {kind: Gizmo, plural: gizmos, shortNames: [gz]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
      additionalPrinterColumns: [{name: SIZE, type: integer, jsonPath: .spec.size}]
      schema:
        openAPIV3Schema:
          type: object
          description: A gizmo does one thing well.
          properties:
            spec:
              type: object
              description: What the gizmo should be.
              properties:
                size: {type: integer, minimum: 1, description: How large it is.}
                replicas: {type: integer}
            status:
              type: object
              properties:
                replicas: {type: integer}
                conditions:
                  type: array
                  items:
                    type: object
                    required: [type, status]
                    properties: {type: {type: string}, status: {type: string}}
"""


@pytest.fixture
def k(kubectl, namespace):
    """kubectl in the test's own namespace; returns what it printed."""
    return lambda *arguments, **options: kubectl("-n", namespace, *arguments, **options).stdout


@pytest.fixture(scope="session")
def gizmos(api) -> None:
    """The kind Gizmo."""
    from nodeyard.kube.manifests import load
    from nodeyard.testing.wait import until

    definition = load(GIZMO)
    api.rest.create(definition)
    until(lambda: api.rest.status("/apis/kubectl.example/v1/gizmos") == 200, "gizmos are served")
    until(lambda: api.rest.status("/apis/kubectl.example/v1") == 200, "clients are told of gizmos")


def test_create_and_get(k):
    assert k("create", "configmap", "a", "--from-literal=x=1") == "configmap/a created\n"

    assert k("get", "configmap", "a", "-o", "jsonpath={.data.x}") == "1"
    assert k("get", "cm", "a", "--no-headers").split()[:2] == ["a", "1"]


def test_get_shows_the_servers_columns(k):
    k("apply", "-f", "-", stdin=DEPLOYMENT)

    header, row = k("get", "deployments").splitlines()

    assert header.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row.split()[:4] == ["web", "0/2", "0", "0"]


def test_get_by_category(k):
    k("apply", "-f", "-", stdin=DEPLOYMENT)

    assert "deployment.apps/web" in k("get", "all", "-o", "name").splitlines()


def test_apply_creates_then_configures_then_leaves_alone(k):
    assert k("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    changed = DEPLOYMENT.replace("replicas: 2", "replicas: 3")
    assert k("apply", "-f", "-", stdin=changed) == "deployment.apps/web configured\n"
    assert k("apply", "-f", "-", stdin=changed) == "deployment.apps/web unchanged\n"
    assert k("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "3"


def test_apply_removes_fields_dropped_from_the_file(k):
    k("apply", "-f", "-", stdin=DEPLOYMENT)
    k("apply", "-f", "-", stdin=DEPLOYMENT.replace(", labels: {app: web}}\nspec:\n  replicas", "}\nspec:\n  replicas"))

    assert k("get", "deployment", "web", "-o", "jsonpath={.metadata.labels}") == ""


def test_apply_refuses_an_unknown_field(kubectl, namespace):
    bad = DEPLOYMENT.replace("replicas: 2", "replicaz: 2")

    done = kubectl("-n", namespace, "apply", "-f", "-", stdin=bad, check=False)

    assert done.returncode == 1
    assert 'unknown field "spec.replicaz"' in done.stderr


def test_apply_server_side(kubectl, namespace, k):
    assert k("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied\n"

    other = DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    done = kubectl(
        "-n", namespace, "apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other, check=False
    )

    assert done.returncode == 1
    assert 'conflict with "kubectl"' in done.stderr
    assert "serverside-applied" in k(
        "apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other
    )


def test_apply_changes_over_from_client_side_to_server_side(k):
    k("apply", "-f", "-", stdin=DEPLOYMENT)

    assert k("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web serverside-applied\n"


def test_diff_shows_what_would_change(kubectl, namespace, k):
    k("apply", "-f", "-", stdin=DEPLOYMENT)

    same = kubectl("-n", namespace, "diff", "-f", "-", stdin=DEPLOYMENT, check=False)
    other = kubectl(
        "-n", namespace, "diff", "-f", "-", stdin=DEPLOYMENT.replace("replicas: 2", "replicas: 4"), check=False
    )

    assert (same.returncode, same.stdout) == (0, "")
    assert other.returncode == 1
    assert "-  replicas: 2" in other.stdout
    assert "+  replicas: 4" in other.stdout


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        ("merge", '{"data":{"y":"2"}}'),
        ("json", '[{"op":"add","path":"/data/y","value":"2"}]'),
        ("strategic", '{"data":{"y":"2"}}'),
    ],
)
def test_patch(k, kind, patch):
    k("create", "configmap", "a", "--from-literal=x=1")

    assert k("patch", "configmap", "a", "--type", kind, "-p", patch) == "configmap/a patched\n"
    assert k("get", "configmap", "a", "-o", "jsonpath={.data.y}") == "2"


def test_label_and_annotate(k):
    k("create", "configmap", "a")

    assert k("label", "configmap", "a", "tier=web") == "configmap/a labeled\n"
    assert k("annotate", "configmap", "a", "note=hello") == "configmap/a annotated\n"
    assert k("get", "configmaps", "-l", "tier=web", "-o", "name") == "configmap/a\n"
    assert k("label", "configmap", "a", "tier-") == "configmap/a unlabeled\n"


def test_edit(k, kubectl, namespace, monkeypatch):
    k("create", "configmap", "a", "--from-literal=x=old")
    monkeypatch.setenv("KUBE_EDITOR", "sed -i s/old/new/")

    assert k("edit", "configmap", "a") == "configmap/a edited\n"
    assert k("get", "configmap", "a", "-o", "jsonpath={.data.x}") == "new"


def test_replace(k):
    k("create", "configmap", "a", "--from-literal=x=1")
    shown = json.loads(k("get", "configmap", "a", "-o", "json"))

    assert k("replace", "-f", "-", stdin=json.dumps({**shown, "data": {"x": "2"}})) == "configmap/a replaced\n"


def test_scale(k):
    k("apply", "-f", "-", stdin=DEPLOYMENT)

    assert k("scale", "deployment", "web", "--replicas=7") == "deployment.apps/web scaled\n"
    assert k("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "7"


def test_delete(kubectl, namespace, k):
    k("create", "configmap", "a")

    assert k("delete", "configmap", "a").startswith('configmap "a" deleted')
    missing = kubectl("-n", namespace, "get", "configmap", "a", check=False)
    assert 'Error from server (NotFound): configmaps "a" not found' in missing.stderr


def test_describe(k):
    k("create", "configmap", "a", "--from-literal=x=1")

    shown = k("describe", "configmap", "a")

    assert "Name:         a" in shown
    assert "x:\n----\n1" in shown


def test_describe_shows_the_events_of_either_group(k, http, namespace):
    http.post(
        f"/api/v1/namespaces/{namespace}/pods",
        {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}},
    )
    uid = http.get(f"/api/v1/namespaces/{namespace}/pods/p").json["metadata"]["uid"]
    about = {"kind": "Pod", "apiVersion": "v1", "name": "p", "namespace": namespace, "uid": uid}
    event = {
        "metadata": {"name": "e"},
        "eventTime": "2026-11-16T22:00:00.123456Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Place",
        "reason": "Placed",
        "regarding": about,
        "note": "it is here for a reason",
        "type": "Normal",
    }
    assert http.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event).status == 201

    shown = k("describe", "pod", "p")

    assert "Placed" in shown
    assert "it is here for a reason" in shown


def test_create_of_a_list_and_of_a_kind_that_is_not_served(kubectl, namespace):
    listed = "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}]\n"
    unknown = "apiVersion: nowhere.example/v1\nkind: Nothing\nmetadata: {name: a}\n"

    made = kubectl("-n", namespace, "create", "-f", "-", stdin=listed)
    refused = kubectl("-n", namespace, "create", "-f", "-", stdin=unknown, check=False)

    assert made.stdout == "configmap/listed created\n"
    assert 'no matches for kind "Nothing" in version "nowhere.example/v1"' in refused.stderr


def test_wait_for_a_condition_and_for_deletion(k, gizmos):
    k("apply", "-f", "-", stdin="{apiVersion: kubectl.example/v1, kind: Gizmo, metadata: {name: g}, spec: {size: 1}}")
    k(
        "patch", "gizmo", "g", "--subresource=status", "--type=merge",
        "-p", '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}',
    )  # fmt: skip

    assert k("wait", "--for=condition=Ready", "gizmo/g", "--timeout=20s") == "gizmo.kubectl.example/g condition met\n"
    assert k("wait", "--for=jsonpath={.spec.size}=1", "gizmo/g", "--timeout=20s").endswith("condition met\n")
    k("delete", "gizmo", "g")
    assert k("wait", "--for=delete", "gizmo/g", "--timeout=20s") == ""


def test_custom_resources_by_short_name_with_their_columns(k, gizmos):
    k("apply", "-f", "-", stdin="{apiVersion: kubectl.example/v1, kind: Gizmo, metadata: {name: g}, spec: {size: 4}}")

    assert k("get", "gz").split() == ["NAME", "SIZE", "g", "4"]
    assert k("scale", "gizmo", "g", "--replicas=3") == "gizmo.kubectl.example/g scaled\n"


def test_explain_reads_the_definitions_descriptions(k, gizmos, eventually):
    eventually(lambda: "A gizmo does one thing well." in k("explain", "gizmo", check=False), "the schema is published")

    assert "How large it is." in k("explain", "gizmo.spec.size")
    assert "<integer>" in k("explain", "gizmo.spec.size")


def test_explain_knows_built_in_kinds(k):
    shown = k("explain", "node.spec.taints")

    assert "KIND:       Node" in shown
    assert "FIELD: taints" in shown
    assert "effect\t<string> -required-" in shown


def test_validation_errors_are_printed(kubectl, namespace, gizmos):
    bad = "{apiVersion: kubectl.example/v1, kind: Gizmo, metadata: {name: g}, spec: {size: 0}}"

    done = kubectl("-n", namespace, "apply", "-f", "-", stdin=bad, check=False)

    assert done.returncode == 1
    assert "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1" in done.stderr


def test_api_resources(k):
    shown = k("api-resources", "--no-headers")

    assert any(line.split()[:2] == ["nodes", "no"] for line in shown.splitlines())


def test_auth_can_i(kubectl, api, fresh):
    user = api.user(fresh("kubectl-user"), rules=[{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}])
    assert kubectl("auth", "can-i", "list", "nodes", kubeconfig=user).stdout == "yes\n"
    assert kubectl("auth", "can-i", "delete", "nodes", kubeconfig=user, check=False).stdout == "no\n"


@pytest.fixture
def node(http, fresh):
    name = fresh("kubectl-node")
    http.post("/api/v1/nodes", {"metadata": {"name": name}})
    yield name
    http.delete(f"/api/v1/nodes/{name}")


def test_taint(kubectl, node):
    assert kubectl("taint", "node", node, "a=b:NoSchedule").stdout == f"node/{node} tainted\n"
    assert "a=b:NoSchedule" in kubectl("describe", "node", node).stdout
    assert kubectl("taint", "node", node, "a-").stdout == f"node/{node} untainted\n"


def test_cordon_and_uncordon(kubectl, node):
    assert kubectl("cordon", node).stdout == f"node/{node} cordoned\n"
    assert kubectl("get", "node", node, "--no-headers").stdout.split()[1].endswith("SchedulingDisabled")
    assert kubectl("uncordon", node).stdout == f"node/{node} uncordoned\n"


def test_drain_evicts(kubectl, http, namespace, node):
    body = {
        "metadata": {"name": "p"},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{"name": "c", "image": "i"}]},
    }
    http.post(f"/api/v1/namespaces/{namespace}/pods", body)

    shown = kubectl("drain", node, "--force", "--timeout=30s").stdout

    assert f"node/{node} drained" in shown
    assert http.get(f"/api/v1/namespaces/{namespace}/pods/p").status == 404


def test_get_watch_prints_changes_as_they_come(api, kubectl, http, configmaps, namespace):
    import subprocess

    from nodeyard.testing.clients import find

    command = [
        str(find("kubectl")),
        "--kubeconfig",
        str(api.kubeconfig),
        "-n",
        namespace,
        "get",
        "configmaps",
        "-w",
        "--no-headers",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        http.post(configmaps, {"metadata": {"name": "first"}})
        assert watching.stdout.readline().split()[:2] == ["first", "0"]
        http.patch(f"{configmaps}/first", {"data": {"k": "v"}})
        assert watching.stdout.readline().split()[:2] == ["first", "1"]
        watching.terminate()
