"""Cluster API's core manager beside the control plane: its webhooks, its conversions, its controllers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from nodeyard.testing import ControlPlane, third_party_crds
from nodeyard.testing.rest import Rest, RestError
from nodeyard.testing.wait import until

pytestmark = pytest.mark.real

CORE = "cluster.x-k8s.io"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
NAMESPACE = "capi-c"
MACHINES = f"/apis/{CORE}/v1beta2/namespaces/{NAMESPACE}"
DEV = f"/apis/{INFRASTRUCTURE}/v1beta2/namespaces/{NAMESPACE}"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with ControlPlane(cluster_api=True) as plane:
        yield plane


@pytest.fixture(scope="module")
def rest(plane: ControlPlane) -> Rest:
    plane.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    until(lambda: are_asked(plane.rest), "the webhooks are asked")
    return plane.rest


def are_asked(rest: Rest) -> bool:
    """The server sees validating and mutating webhooks a moment later, by its watches."""

    def tried(name: str) -> Any:
        try:
            return rest.call("POST", f"{MACHINES}/machinedeployments?dryRun=All", machine_deployment(name))["spec"]
        except RestError:
            return None

    return "replicas" in (tried("probe") or {}) and tried("p" * 64) is None


def obj(api: str, kind: str, name: str, spec: dict[str, Any], **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {f"{CORE}/{key}": labels[key] for key in labels}}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def machine_deployment(name: str, **spec: Any) -> dict[str, Any]:
    reference = {"apiGroup": INFRASTRUCTURE, "kind": "DevMachineTemplate", "name": "workers"}
    template = {"spec": {"clusterName": "c", "bootstrap": {"dataSecretName": "data"}, "infrastructureRef": reference}}
    spec = {"clusterName": "c", "selector": {"matchLabels": {}}, "template": template, **spec}
    return obj(f"{CORE}/v1beta2", "MachineDeployment", name, spec)


def test_the_webhook_gives_a_machine_deployment_its_defaults(rest: Rest) -> None:
    spec = rest.create(machine_deployment("defaulted"))["spec"]
    labels = {f"{CORE}/cluster-name": "c", f"{CORE}/deployment-name": "defaulted"}
    assert spec["replicas"] == 1
    assert spec["selector"]["matchLabels"] == labels
    assert spec["template"]["metadata"]["labels"] == labels


def test_the_webhook_refuses_what_the_schema_cannot(rest: Rest) -> None:
    with pytest.raises(RestError, match="admission webhook .* denied the request") as raised:
        rest.create(machine_deployment("p" * 64))
    assert raised.value.status == 422


def test_the_old_version_is_converted_not_pruned(rest: Rest) -> None:
    rest.create(machine_deployment("converted"))
    old = rest.get(f"/apis/{CORE}/v1beta1/namespaces/{NAMESPACE}/machinedeployments/converted")
    assert old["spec"]["template"]["spec"]["infrastructureRef"]["apiVersion"] == f"{INFRASTRUCTURE}/v1beta2"


def test_foreign_definitions_all_establish_and_serve(rest: Rest) -> None:
    wanted = third_party_crds.definitions(*(name for name in third_party_crds.SOURCES if name != "kwok-stages"))
    third_party_crds.install(rest, third_party_crds.definitions("flux-helm"))

    def served() -> set[tuple[str, str]]:
        groups = rest.get("/apis")["groups"]
        return {(group["name"], version["version"]) for group in groups for version in group["versions"]}

    versions = {(each["spec"]["group"], v["name"]) for each in wanted for v in each["spec"]["versions"] if v["served"]}
    assert len(wanted) == 13 + 2 + 2 + 12 + 24 + 4 + 1
    until(lambda: versions <= served(), "every version is listed")
    kinds = {("infrastructure.cluster.x-k8s.io", "v1alpha1"), ("helm.toolkit.fluxcd.io", "v2")}
    assert kinds <= served()


def test_references_resolve_by_the_contract_labels_and_machines_become_nodes(plane: ControlPlane, rest: Rest) -> None:
    """The life cycle of a Machine, with the test as infrastructure provider and a self-managed cluster."""
    cluster = {
        "controlPlaneEndpoint": {"host": "127.0.0.1", "port": int(plane.url.rpartition(":")[2])},
        "infrastructureRef": {"apiGroup": INFRASTRUCTURE, "kind": "DevCluster", "name": "c"},
    }
    kubeconfig = base64.b64encode(json.dumps(plane.config).encode()).decode()
    secret = obj("v1", "Secret", "c-kubeconfig", {}, **{"cluster-name": "c"})
    del secret["spec"]
    rest.create({**secret, "type": f"{CORE}/secret", "data": {"value": kubeconfig}})
    backend = {"backend": {"inMemory": {}}}
    rest.create(obj(f"{INFRASTRUCTURE}/v1beta2", "DevCluster", "c", backend))
    provision(rest, "devclusters", "c")
    rest.create(obj(f"{INFRASTRUCTURE}/v1beta2", "DevMachineTemplate", "workers", {"template": {"spec": backend}}))
    rest.create(obj(f"{CORE}/v1beta2", "Cluster", "c", cluster))
    rest.create(machine_deployment("pool", replicas=1))

    machine = until(lambda: cloned(rest), "an infrastructure machine is cloned from the template", 60)
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine},
        "spec": {"providerID": f"dev:///{machine}"},
    }
    rest.create(node)
    rest.call(
        "PATCH", f"{DEV}/devmachines/{machine}", {"spec": {"providerID": f"dev:///{machine}"}}, content_type=MERGE
    )
    provision(rest, "devmachines", machine)

    def node_of_the_machine() -> str | None:
        """Cluster API creates the infrastructure machine before the Machine, and writes the status later."""
        machines = {item["metadata"]["name"]: item for item in rest.get(f"{MACHINES}/machines")["items"]}
        name: str | None = machines.get(machine, {}).get("status", {}).get("nodeRef", {}).get("name")
        return name

    assert until(node_of_the_machine, "the machine has found its node", 60) == machine


MERGE = "application/merge-patch+json"


def provision(rest: Rest, plural: str, name: str) -> None:
    status = {"status": {"initialization": {"provisioned": True}}}
    rest.call("PATCH", f"{DEV}/{plural}/{name}/status", status, content_type=MERGE)


def cloned(rest: Rest) -> str | None:
    items = rest.get(f"{DEV}/devmachines")["items"]
    return next((item["metadata"]["name"] for item in items if item["metadata"]["name"].startswith("pool-")), None)
