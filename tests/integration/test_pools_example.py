"""Applies examples/02-pools as in its README and checks the documented results."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.builders.pools_env import CLUSTERS, PATIENCE, SERVICES

from nodeyard.capabilities.pools import names

EXAMPLE = Path(__file__).parents[2] / "examples" / "02-pools"
DEPLOYMENTS = f"/apis/{names.CAPI_API_VERSION}/namespaces/capi-example/machinedeployments"
PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]


@pytest.fixture
def applied(pool_crds, machines, kubectl, operator):
    """Server with a running operator."""
    operator("pools")
    kubectl("apply", "-f", str(EXAMPLE))
    yield
    kubectl("annotate", "--overwrite", "lc", "example", "example-legacy", f"{names.ORPHAN_ON_DELETE}=true")
    kubectl("delete", "-f", str(EXAMPLE))


@pytest.fixture
def rows(kubectl):
    """Return the output of `kubectl get` without the age."""

    def show(kind):
        shown = kubectl("get", kind).stdout.splitlines()
        return [line.split()[:-1] for line in shown if line.startswith(("example", "training", "inference"))]

    return show


@pytest.fixture
def why(api):
    """Return the output of `nodeyard why` on one line."""

    def ask(what):
        command = [*PROGRAM, "why", what, "--kubeconfig", str(api.kubeconfig)]
        told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
        return " ".join(told.split())

    return ask


def pools_patch(**pools):
    return json.dumps({"spec": {"nodes": {"workerPools": pools}}})


@pytest.fixture
def is_ready(api):
    def ask(cluster, control_plane, workers):
        status = api.rest.get(f"{CLUSTERS}/{cluster}").get("status") or {}
        told = {each["type"]: each["status"] for each in status.get("conditions") or ()}
        counted = (status.get("readyControlPlane"), status.get("readyWorkers"))
        return told.get("Ready") == "True" and counted == (control_plane, workers)

    return ask


@pytest.fixture
def phases(api):
    """Return the phases of the example's services."""

    def ask():
        found = {each["metadata"]["name"]: each for each in api.rest.get(SERVICES)["items"]}
        return {name: found[name].get("status", {}).get("phase") for name in ("inference", "training")}

    return ask


@pytest.mark.timeout(240)
def test_the_example_works_as_its_readme_describes(api, applied, kubectl, rows, why, is_ready, phases, eventually):
    ready = [
        ["example", "Ready", "v1.32.0", "3", "6", "6", "True"],
        ["example-legacy", "Ready", "v1.32.0", "1", "5", "5", "True"],
    ]
    eventually(lambda: is_ready("example", 3, 6) and is_ready("example-legacy", 1, 5), "both are ready", PATIENCE)
    eventually(lambda: phases() == {"inference": "Unplaced", "training": "Placed"}, "one service fits")
    assert rows("lc") == ready
    assert rows("ls") == [["inference", "Unplaced", "False"], ["training", "Placed", "example", "gpu", "True"]]

    deployments = kubectl("get", "machinedeployments", "-n", "capi-example", "-o", "name").stdout.split()
    assert [each.rpartition("/")[2] for each in deployments] == [
        "example-pool-general",
        "example-pool-gpu",
        "example-pool-highmem",
    ]
    nodes = api.rest.get(f"/api/v1/nodes?labelSelector={names.POOL}=gpu,workload-type=gpu,nvidia.com/gpu=true")["items"]
    assert len(nodes) == 2
    assert all({"key": "nvidia.com/gpu", "effect": "NoSchedule"} in node["spec"]["taints"] for node in nodes)
    defaults = api.rest.get(f"/api/v1/nodes?labelSelector={names.POOL}=default")["items"]
    assert len(defaults) == 5

    told = why("latticeservice/inference")
    assert "Pool gpu of example has taint nvidia.com/gpu:NoSchedule, which is not tolerated" in told
    assert "Pool general of example has label workload-type=general, not gpu" in told

    assert "MachineDeployment capi-example/example-pool-gpu" in why("pool/example/gpu")

    kubectl("patch", "lc", "example", "--type", "merge", "-p", pools_patch(gpu={"replicas": 0}))
    eventually(lambda: phases()["training"] == "Unplaced", "no pool has nodes for it")
    status = api.rest.get(f"{SERVICES}/training")["status"]
    assert ("gpu", "PoolEmpty") in [(each["workerPool"], each["reason"]) for each in status["refused"]]

    kubectl("patch", "lc", "example", "--type", "merge", "-p", pools_patch(gpu={"replicas": 3}, highmem=None))
    eventually(lambda: phases()["training"] == "Placed", "there is room again", PATIENCE)
    eventually(lambda: api.rest.status(f"{DEPLOYMENTS}/example-pool-highmem") == 404, "one pool is gone", PATIENCE)
    eventually(lambda: is_ready("example", 3, 6), "one has grown", PATIENCE)
