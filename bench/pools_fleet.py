"""The fleet of the pools benchmark: LatticeClusters, and Cluster API's CRDs without its controllers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from bench.load import MERGE, Call, encode, send_all
from bench.observer import ObservedMetadata, Observer, observe
from bench.replay import EVENTS, object_of
from bench.servers import RunningServer, install_crds
from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.controller import POOLS
from nodeyard.kube.json import Object
from nodeyard.testing import third_party_crds
from nodeyard.testing.rest import Rest

IN_FLIGHT = 32
SOURCES = ("cluster-api", "kubeadm-bootstrap", "kubeadm-control-plane", "docker")
CLUSTERS = f"/apis/{names.API_VERSION}/{names.CLUSTER_PLURAL}"
DEPLOYMENTS = f"/apis/{names.CAPI_API_VERSION}/machinedeployments"
IN_PLACE = "node-restriction.kubernetes.io/tier"
"""A label that Cluster API propagates to existing nodes."""


# objects


async def install(server: RunningServer) -> None:
    """Install the CRDs of Cluster API and of pools."""
    target = server.target
    definitions = [_unconverted(each) for each in third_party_crds.definitions(*SOURCES)]
    third_party_crds.install(Rest(target.url, target.authority, target.token), definitions, timeout=120)
    await install_crds(server, POOLS)


def _unconverted(definition: Object) -> Object:
    """Remove the conversion webhook; everything is written in the storage version."""
    return {**definition, "spec": {**definition["spec"], "conversion": {"strategy": "None"}}}


def cluster_name(number: int) -> str:
    return f"bench-{number:03d}"


def pool_name(number: int) -> str:
    return f"p{number}"


def lattice_cluster(number: int, pools: int) -> Object:
    """Build a LatticeCluster that is never pivoted. Replicas are set once its control plane is initialized."""
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


async def create_clusters(session: aiohttp.ClientSession, clusters: int, pools: int) -> None:
    calls = [Call("POST", CLUSTERS, encode(lattice_cluster(number, pools))) for number in range(clusters)]
    await send_all(session, calls, IN_FLIGHT)


async def initialize(session: aiohttp.ClientSession, number: int) -> None:
    """Report the control plane as initialized, as Cluster API's controllers would."""
    name = cluster_name(number)
    path = f"/apis/{names.CAPI_API_VERSION}/namespaces/{names.namespace(name)}/clusters/{name}/status"
    body = encode({"status": {"initialization": {"controlPlaneInitialized": True}}})
    await send_all(session, [Call("PATCH", path, body, MERGE)], 1)


async def change(session: aiohttp.ClientSession, number: int, pool: int, fields: Mapping[str, Any]) -> None:
    """Patch fields of one pool."""
    body = encode({"spec": {"nodes": {"workerPools": {pool_name(pool): fields}}}})
    await send_all(session, [Call("PATCH", cluster_path(number), body, MERGE)], 1)


# observation


def observe_applied(session: aiohttp.ClientSession) -> AbstractAsyncContextManager[Observer]:
    """Note when each MachineDeployment is complete: its replicas are owned too."""
    return observe(session, DEPLOYMENTS, _is_whole)


def _is_whole(seen: ObservedMetadata) -> bool:
    return any(each.manager == names.REPLICAS_MANAGER for each in seen.managed_fields)


async def count_reported(session: aiohttp.ClientSession) -> int:
    """Return the number of clusters whose status is current (observedGeneration)."""
    async with session.get(CLUSTERS) as response:
        listed = msgspec.json.decode(await response.read())
    return sum(_is_reported(item) for item in listed["items"])


def _is_reported(cluster: Object) -> bool:
    return bool(cluster.get("status", {}).get("observedGeneration") == cluster["metadata"]["generation"])


async def are_scaled(session: aiohttp.ClientSession, number: int, pools: int) -> bool:
    """Return whether every pool of the cluster has replicas."""
    async with session.get(deployment_path(number, 0).rpartition("/")[0]) as response:
        listed = msgspec.json.decode(await response.read())
    return sum(bool(item["spec"]["replicas"]) for item in listed["items"]) == pools


# writes


def cluster_path(number: int) -> str:
    return f"{CLUSTERS}/{cluster_name(number)}"


def deployment_path(number: int, pool: int) -> str:
    cluster = cluster_name(number)
    deployment = names.deployment(cluster, pool_name(pool))
    return f"/apis/{names.CAPI_API_VERSION}/namespaces/{names.namespace(cluster)}/machinedeployments/{deployment}"


def count_by_resource(calls: Sequence[Call]) -> Counter[str]:
    """Count writes by resource and subresource: `machinedeployments`, `latticeclusters/status`."""
    return Counter(_resource(call) for call in calls)


def _resource(call: Call) -> str:
    path = call.path.partition("?")[0]
    resource = object_of(call).rsplit("/", 2)[1]
    return f"{resource}/status" if path.endswith("/status") else resource


@dataclass(frozen=True)
class Cost:
    """Number of writes by purpose, after a change of one pool."""

    pool: int
    """Writes of its MachineDeployment."""
    statuses: int
    """Status writes of its LatticeCluster."""
    events: int
    others: int
    """Writes of any other object."""

    @staticmethod
    def of(calls: Sequence[Call], number: int, pool: int) -> Cost:
        objects = [object_of(call) for call in calls]
        paths = [call.path.partition("?")[0] for call in calls]
        own = objects.count(deployment_path(number, pool))
        statuses = paths.count(f"{cluster_path(number)}/status")
        events = sum(path.startswith(EVENTS) for path in paths)
        return Cost(own, statuses, events, len(calls) - own - statuses - events)
