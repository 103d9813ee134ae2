"""The CRD of Cluster: Kosmos' fields and defaults; only values that no node can have are rejected."""

from __future__ import annotations

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.definition import CLUSTER
from nodeyard.capabilities.clustertree.watched import CLUSTERS
from nodeyard.client.errors import Invalid
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS
from nodeyard.process.clock import VirtualClock, settle
from nodeyard.sim.embedded import connect

RESOURCE = CLUSTERS.decoded_as(dict)


@pytest.fixture
async def client():
    server = Server(VirtualClock())
    await server.start(())
    client = connect(server)
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, CLUSTER.render())
    await settle()
    yield client
    await server.stop()


def cluster(name="east", **spec):
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": name}, "spec": spec}


def model(**fields):
    return {"clusterTreeOptions": {"leafModels": [fields]}}


async def test_defaults_are_those_of_kosmos(client):
    made = await client.create(RESOURCE, cluster(clusterLinkOptions={}, clusterTreeOptions={}))

    link = made["spec"]["clusterLinkOptions"]
    assert made["spec"]["namespace"] == "kosmos-system"
    assert made["spec"]["clusterTreeOptions"] == {"enable": True}
    assert link == {
        "enable": True,
        "cni": "calico",
        "networkType": "p2p",
        "ipFamily": "all",
        "useIPPool": False,
        "defaultNICName": "*",
    }


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"clusterTreeOptions": {"leafModels": []}}, id="no-models"),
        pytest.param(model(), id="whole"),
        pytest.param(model(nodeSelector={"nodeName": "n1", "labelSelector": {}}), id="by-name-and-by-label"),
        pytest.param(model(taints=[{"key": "a", "effect": "NoExecute"}], labels={"a": "b"}), id="labels-and-taints"),
        pytest.param({"clusterTreeOptions": {"credentialGrace": "1h30m"}}, id="grace"),
        pytest.param({"kubeconfig": "Zm9v"}, id="inline"),
    ],
)
async def test_manifests_valid_for_kosmos_are_valid_here(client, spec):
    made = await client.create(RESOURCE, cluster("a" * 100, **spec))

    assert made["metadata"]["uid"]


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param(model(taints=[{"key": "a", "effect": "Never"}]), "taints[0].effect", id="effect"),
        pytest.param(model(taints=[{"effect": "NoSchedule"}]), "taints[0].key", id="no-key"),
        pytest.param({"kubeconfig": "%"}, "spec.kubeconfig", id="no-base64"),
        pytest.param({"kubeconfigSecretRef": {}}, "kubeconfigSecretRef.name", id="no-secret"),
        pytest.param({"clusterTreeOptions": {"credentialGrace": "soon"}}, "must be a duration such as 10m", id="grace"),
        pytest.param(
            {"clusterTreeOptions": {"resources": {"reservePercent": 101}}}, "reservePercent", id="more-than-all"
        ),
        pytest.param({"clusterTreeOptions": {"resources": {"countPods": "None"}}}, "countPods", id="counting"),
    ],
)
async def test_invalid_values_are_refused_by_field(client, spec, says):
    with pytest.raises(Invalid) as refused:
        await client.create(RESOURCE, cluster(**spec))
    assert says in refused.value.message


def test_every_field_is_described():
    schema = CLUSTER.render()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    def bare(node, path):
        for name, child in (node.get("properties") or {}).items():
            if "description" not in child and path + name not in ("metadata",):
                yield f"{path}{name}"
            yield from bare(child, f"{path}{name}.")
        items = node.get("items")
        if items:
            yield from bare(items, f"{path}[].")

    own = {"spec": schema["properties"]["spec"], "status": schema["properties"]["status"]}
    assert list(bare({"properties": own}, "")) == []
