"""The clusters that pools is measured on: LatticeClusters, Cluster API's kinds without managers, and who watches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from bench.load import MERGE, Call, encoded, send
from bench.replay import EVENTS, object_of
from bench.servers import Running
from bench.sightings import Seen, Sightings, sightings
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.kube.json import Object
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.crds import install as install_kinds
from nodeyard.testing import third_party_crds
from nodeyard.testing.rest import Rest

IN_FLIGHT = 32
SOURCES = ("cluster-api", "kubeadm-bootstrap", "kubeadm-control-plane", "docker")
CLUSTERS = f"/apis/{names.API_VERSION}/{names.CLUSTER_PLURAL}"
DEPLOYMENTS = f"/apis/{names.CAPI_API_VERSION}/machinedeployments"
IN_PLACE = "node-restriction.kubernetes.io/tier"
"""A label that Cluster API brings to nodes that exist."""


# what there is


async def install(server: Running) -> None:
    """The real definitions, Cluster API's and ours."""
    target = server.target
    definitions = [_unconverted(each) for each in third_party_crds.definitions(*SOURCES)]
    third_party_crds.install(Rest(target.url, target.authority, target.token), definitions, timeout=120)
    client = Client(HttpTransport(load_kubeconfig([server.kubeconfig])))
    try:
        await install_kinds(client, [POOLS], SystemClock())
    finally:
        await client.close()


def _unconverted(definition: Object) -> Object:
    """Nobody is there to convert; everything is written in the version that is stored."""
    return {**definition, "spec": {**definition["spec"], "conversion": {"strategy": "None"}}}


def cluster_name(number: int) -> str:
    return f"bench-{number:03d}"


def pool_name(number: int) -> str:
    return f"p{number}"


def lattice_cluster(number: int, pools: int) -> Object:
    """None is ever pivoted; the numbers of a cluster are set when its control plane has come up."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.CLUSTER_KIND,
        "metadata": {"name": cluster_name(number)},
        "spec": {
            "provider": {"kubernetes": {"version": "1.32.0"}, "config": {"docker": {}}},
            "pivot": "Never",
            "nodes": {"controlPlane": 3, "workerPools": {pool_name(each): _pool(each) for each in range(pools)}},
        },
    }


def _pool(number: int) -> Object:
    return {
        "displayName": f"Pool {number}",
        "replicas": 1 + number % 3,
        "labels": {"workload-type": f"kind-{number}", IN_PLACE: "first"},
        "taints": [{"key": "example.com/dedicated", "value": f"kind-{number}", "effect": "NoSchedule"}],
    }


async def ask(opened: aiohttp.ClientSession, clusters: int, pools: int) -> None:
    calls = [Call("POST", CLUSTERS, encoded(lattice_cluster(number, pools))) for number in range(clusters)]
    await send(opened, calls, IN_FLIGHT)


async def initialize(opened: aiohttp.ClientSession, number: int) -> None:
    """What Cluster API's managers would say of a control plane that has come up."""
    name = cluster_name(number)
    path = f"/apis/{names.CAPI_API_VERSION}/namespaces/{names.namespace(name)}/clusters/{name}/status"
    body = encoded({"status": {"initialization": {"controlPlaneInitialized": True}}})
    await send(opened, [Call("PATCH", path, body, MERGE)], 1)


async def change(opened: aiohttp.ClientSession, number: int, pool: int, fields: Mapping[str, Any]) -> None:
    """Change fields of one pool, as a person does."""
    body = encoded({"spec": {"nodes": {"workerPools": {pool_name(pool): fields}}}})
    await send(opened, [Call("PATCH", cluster_path(number), body, MERGE)], 1)


# what is seen


def applied(opened: aiohttp.ClientSession) -> AbstractAsyncContextManager[Sightings]:
    """Another watcher, of MachineDeployments: when each was first seen whole, its number taken over."""
    return sightings(opened, DEPLOYMENTS, _is_whole)


def _is_whole(seen: Seen) -> bool:
    return any(each.manager == names.REPLICAS_MANAGER for each in seen.managed_fields)


async def reported(opened: aiohttp.ClientSession) -> int:
    """How many clusters have a status that is about their spec as it is."""
    async with opened.get(CLUSTERS) as answer:
        listed = msgspec.json.decode(await answer.read())
    return sum(_is_reported(item) for item in listed["items"])


def _is_reported(cluster: Object) -> bool:
    return bool(cluster.get("status", {}).get("observedGeneration") == cluster["metadata"]["generation"])


async def are_scaled(opened: aiohttp.ClientSession, number: int, pools: int) -> bool:
    """Whether every pool of the cluster has its number."""
    async with opened.get(deployment_path(number, 0).rpartition("/")[0]) as answer:
        listed = msgspec.json.decode(await answer.read())
    return sum(bool(item["spec"]["replicas"]) for item in listed["items"]) == pools


# what was written


def cluster_path(number: int) -> str:
    return f"{CLUSTERS}/{cluster_name(number)}"


def deployment_path(number: int, pool: int) -> str:
    cluster = cluster_name(number)
    deployment = names.deployment(cluster, pool_name(pool))
    return f"/apis/{names.CAPI_API_VERSION}/namespaces/{names.namespace(cluster)}/machinedeployments/{deployment}"


def by_resource(calls: Sequence[Call]) -> Counter[str]:
    """How many writes of each resource, parts of objects apart: `machinedeployments`, `latticeclusters/status`."""
    return Counter(_resource(call) for call in calls)


def _resource(call: Call) -> str:
    path = call.path.partition("?")[0]
    resource = object_of(call).rsplit("/", 2)[1]
    return f"{resource}/status" if path.endswith("/status") else resource


@dataclass(frozen=True)
class Cost:
    """What the change of one pool was written for."""

    pool: int
    """Its MachineDeployment."""
    statuses: int
    """Of its LatticeCluster."""
    events: int
    others: int
    """Any other object."""

    @staticmethod
    def of(calls: Sequence[Call], number: int, pool: int) -> Cost:
        objects = [object_of(call) for call in calls]
        paths = [call.path.partition("?")[0] for call in calls]
        own = objects.count(deployment_path(number, pool))
        statuses = paths.count(f"{cluster_path(number)}/status")
        events = sum(path.startswith(EVENTS) for path in paths)
        return Cost(own, statuses, events, len(calls) - own - statuses - events)
