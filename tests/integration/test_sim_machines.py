"""Simulated machines on a virtual clock: slow operations, and their cost for many machines."""

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager

import pytest
from tests.builders.machines import BOOTSTRAP, CORE, INFRASTRUCTURE, deployment, obj, reference

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import NAMESPACES, NODES, PODS, SECRETS, untyped
from nodeyard.process.clock import VirtualClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults
from nodeyard.sim.machines.controllers import SimEnvironment
from nodeyard.sim.world import World

BUDGETS = untyped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
DEPLOYMENTS = untyped(CORE, "v1beta2", "machinedeployments", "MachineDeployment")
SETS = untyped(CORE, "v1beta2", "machinesets", "MachineSet")
MACHINES = untyped(CORE, "v1beta2", "machines", "Machine")
CLUSTERS = untyped(CORE, "v1beta2", "clusters", "Cluster")
PLANES = untyped("controlplane.cluster.x-k8s.io", "v1beta2", "kubeadmcontrolplanes", "KubeadmControlPlane")
CONFIGS = untyped(BOOTSTRAP, "v1beta2", "kubeadmconfigs", "KubeadmConfig")
SPACE = "capi-c"
KUBECONFIG = {"clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.9:7443"}}]}
PROVIDERS = {
    "Dev": {"backend": {"docker": {}}},
    "Docker": {},
    "AWS": {"instanceType": "t3.medium"},
    "Proxmox": {"sourceNode": "p", "templateID": 1, "network": {"networkDevices": [{"name": "net0"}]}},
}


class Env:
    """A server, a world with a cluster `c`, and a virtual clock."""

    def __init__(self, clock, client, world):
        self.clock, self.client, self.world = clock, client, world

    async def create(self, *objects):
        catalog = await self.client.catalog()
        for one in objects:
            await self.client.create(catalog.by_kind(one["apiVersion"], one["kind"]).resource, one)

    async def cluster(self, provider="Dev", replicas=1):
        spec = {"Proxmox": {"dnsServers": ["1.1.1.1"], "ipv4Config": {"addresses": ["10.0.0.1"], "prefix": 24}}}
        spec |= {"Dev": {"backend": {"docker": {}}}, "Docker": {}, "AWS": {"region": "r"}}
        if provider == "Proxmox":
            spec["Proxmox"]["ipv4Config"]["gateway"] = "10.0.0.254"
        plane = {"spec": {"infrastructureRef": reference(INFRASTRUCTURE, f"{provider}MachineTemplate", "t")}}
        told = {"replicas": replicas, "version": "v1.35.0", "machineTemplate": plane}
        cluster = {
            "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "cp"),
            "infrastructureRef": reference(INFRASTRUCTURE, f"{provider}Cluster", "c"),
        }
        await self.client.create(NAMESPACES, {"metadata": {"name": SPACE}})
        await self.create(
            _versioned(obj(INFRASTRUCTURE, f"{provider}Cluster", "c", "c", spec[provider])),
            _versioned(
                obj(INFRASTRUCTURE, f"{provider}MachineTemplate", "c", "t", {"template": {"spec": PROVIDERS[provider]}})
            ),
            obj(BOOTSTRAP, "KubeadmConfigTemplate", "c", "t", {"template": {"spec": {"format": "cloud-config"}}}),
            obj("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "c", "cp", told),
            obj(CORE, "Cluster", "c", "c", cluster),
        )
        await self.clock.advance(30)

    async def pool(self, replicas, provider="Dev", **chosen):
        made = deployment("c", "p", replicas, **chosen)
        spec = made["spec"]["template"]["spec"]
        spec["bootstrap"]["configRef"]["name"] = "t"
        spec["infrastructureRef"] = reference(INFRASTRUCTURE, f"{provider}MachineTemplate", "t")
        spec |= chosen.get("spec", {})
        await self.client.create(DEPLOYMENTS, made)
        await self.clock.advance(10)

    async def status(self):
        return (await self.client.get(DEPLOYMENTS, "c-pool-p", SPACE))["status"]

    async def workers(self):
        items = (await self.client.list(MACHINES, SPACE, labels="!cluster.x-k8s.io/control-plane")).items
        return {one["metadata"]["name"]: one for one in items}

    async def names(self, resource, namespace=""):
        return {one["metadata"]["name"] for one in (await self.client.list(resource, namespace)).items}

    async def pod(self, name, node, *, has_budget=False):
        spec = {"nodeName": node, "containers": [{"name": "m", "image": "i"}], "terminationGracePeriodSeconds": 1}
        metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
        await self.client.create(PODS, {"metadata": metadata, "spec": spec})
        if has_budget:
            spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
            await self.client.create(BUDGETS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        await self.clock.advance(5)

    async def is_there(self, resource, name, namespace=""):
        try:
            await self.client.get(resource, name, namespace)
        except NotFound:
            return False
        return True


def _versioned(made):
    return {**made, "apiVersion": f"{INFRASTRUCTURE}/v1alpha2"} if made["kind"].startswith("Proxmox") else made


@asynccontextmanager
async def envs():
    clock = VirtualClock()
    server = Server(clock, seed=1, plugins=[MachineDeploymentDefaults()])
    await server.start()
    client = connect(server)
    await stand_in_crds.install(client, SteppingClock(clock), "cluster-api", "kubeadm", "docker", "aws", "proxmox")
    environment = SimEnvironment(kubeconfig=lambda: KUBECONFIG)
    try:
        async with World(
            client, clock, 1, stages=("nodes", "pods", "providers", "machines"), environment=environment
        ) as world:
            yield Env(clock, client, world)
            assert world.errors == []
    finally:
        await server.stop()


class SteppingClock:
    """Clock that advances a virtual clock when it sleeps."""

    def __init__(self, clock):
        self._clock = clock

    async def sleep(self, seconds):
        await self._clock.advance(seconds)


@pytest.fixture
async def env():
    async with envs() as env:
        yield env


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_machines_of_every_provider_become_nodes(env, provider):
    await env.cluster(provider)
    await env.pool(2, provider)
    status = await env.status()
    assert [status[key] for key in ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")] == [2] * 4
    assert set(await env.workers()) <= await env.names(NODES)


async def test_the_secret_leads_to_the_configured_server(env):
    await env.cluster()
    secret = await env.client.get(SECRETS, "c-kubeconfig", SPACE)
    assert json.loads(base64.b64decode(secret["data"]["value"])) == KUBECONFIG
    cluster = await env.client.get(CLUSTERS, "c", SPACE)
    assert cluster["spec"]["controlPlaneEndpoint"] == {"host": "10.0.0.9", "port": 7443}


async def test_a_control_plane_of_three_is_complete_and_upgraded_without_falling_below(env):
    await env.cluster(replicas=3)
    assert (await env.client.get(PLANES, "cp", SPACE))["status"]["readyReplicas"] == 3
    await env.client.patch(PLANES, "cp", {"spec": {"version": "v1.36.0"}}, SPACE)
    ready = set()
    for _ in range(240):
        await env.clock.advance(0.25)
        ready.add((await env.client.get(PLANES, "cp", SPACE))["status"]["readyReplicas"])
    status = (await env.client.get(PLANES, "cp", SPACE))["status"]
    assert (status["version"], status["replicas"], min(ready)) == ("v1.36.0", 3, 3)


async def test_a_machine_counts_as_available_only_after_its_time(env):
    await env.cluster()
    await env.pool(1, spec={"minReadySeconds": 120})
    status = await env.status()
    assert (status["readyReplicas"], status["availableReplicas"], status["phase"]) == (1, 0, "Running")
    await env.clock.advance(121)
    assert (await env.status())["availableReplicas"] == 1


async def test_a_blocked_drain_is_given_up_at_the_look_after_its_timeout(env):
    await env.cluster()
    await env.pool(1, deletion={"nodeDrainTimeoutSeconds": 30})
    (name,) = await env.workers()
    await env.pod("kept", name, has_budget=True)
    await env.client.delete(DEPLOYMENTS, "c-pool-p", SPACE)
    await env.clock.advance(35)
    (machine,) = (await env.workers()).values()
    (told,) = (one for one in machine["status"]["conditions"] if one["type"] == "Deleting")
    assert told["reason"] == "DrainingNode"
    assert "* Pod default/kept: cannot evict pod as it would violate" in told["message"]
    await env.clock.advance(10)
    assert await env.workers() == {}
    assert not await env.is_there(NODES, name)
    assert (await env.client.get(PODS, "kept", "default"))["metadata"].get("deletionTimestamp") is None


async def test_a_blocked_drain_without_timeout_continues_for_ever_and_gets_no_replacement(env):
    await env.cluster()
    await env.pool(1)
    (name,) = await env.workers()
    await env.pod("kept", name, has_budget=True)
    await env.client.delete(MACHINES, name, SPACE)
    await env.clock.advance(3600)
    assert set(await env.workers()) == {name}
    assert ((await env.status())["replicas"], (await env.status())["readyReplicas"]) == (1, 0)
    await env.client.delete(BUDGETS, "kept", "default")
    await env.clock.advance(60)
    assert name not in await env.workers()
    assert (await env.status())["readyReplicas"] == 1


@pytest.mark.parametrize("hook", ["pre-drain", "pre-terminate"])
async def test_a_hook_is_waited_for(env, hook):
    await env.cluster()
    await env.pool(1)
    (name,) = await env.workers()
    key = f"{hook}.delete.hook.machine.cluster.x-k8s.io/mine"
    await env.client.patch(MACHINES, name, {"metadata": {"annotations": {key: ""}}}, SPACE)
    await env.client.delete(DEPLOYMENTS, "c-pool-p", SPACE)
    await env.clock.advance(300)
    assert await env.is_there(NODES, name)
    await env.client.patch(MACHINES, name, {"metadata": {"annotations": {key: None}}}, SPACE)
    await env.clock.advance(5)
    assert await env.workers() == {}
    assert not await env.is_there(NODES, name)


async def test_a_machine_marked_for_deletion_is_the_one_that_goes(env):
    await env.cluster()
    await env.pool(3)
    chosen = sorted(await env.workers())[0]
    mark = {"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": ""}}}
    await env.client.patch(MACHINES, chosen, mark, SPACE)
    await env.client.patch(DEPLOYMENTS, "c-pool-p", {"spec": {"replicas": 2}}, SPACE)
    await env.clock.advance(30)
    left = await env.workers()
    assert len(left) == 2
    assert chosen not in left


async def test_deleting_a_cluster_drains_nothing_and_leaves_only_nodes(env):
    await env.cluster()
    await env.pool(2)
    name, _ = await env.workers()
    await env.pod("kept", name, has_budget=True)
    await env.client.delete(CLUSTERS, "c", SPACE)
    await env.clock.advance(30)
    for resource in (CLUSTERS, DEPLOYMENTS, SETS, MACHINES, PLANES, CONFIGS):
        assert await env.names(resource, SPACE) == set()
    assert await env.is_there(NODES, name)
    assert (await env.client.get(PODS, "kept", "default"))["metadata"].get("deletionTimestamp") is None


async def test_a_rollout_keeps_within_surge_and_availability_all_the_way(env):
    await env.cluster()
    await env.pool(4)
    patch = {"spec": {"template": {"spec": {"version": "v1.35.1"}}}}
    await env.client.patch(DEPLOYMENTS, "c-pool-p", patch, SPACE)
    seen = []
    for _ in range(400):
        await env.clock.advance(0.1)
        machines = (await env.workers()).values()
        available = sum(
            one["type"] == "Available" and one["status"] == "True"
            for machine in machines
            for one in machine.get("status", {}).get("conditions", ())
        )
        seen.append((len(machines), available))
    assert max(count for count, _ in seen) == 5
    assert min(available for _, available in seen) == 4
    assert {one["spec"]["version"] for one in (await env.workers()).values()} == {"v1.35.1"}
    assert len(await env.names(SETS, SPACE)) == 1


async def test_each_machine_costs_the_same_however_many_there_are(env, monkeypatch):
    await env.cluster()
    await env.pool(0)
    asked = []
    send = env.client.transport.send

    async def counted(request):
        asked.append((request.method, request.path))
        return await send(request)

    monkeypatch.setattr(env.client.transport, "send", counted)

    async def cost(replicas, more):
        asked.clear()
        await env.client.patch(DEPLOYMENTS, "c-pool-p", {"spec": {"replicas": replicas}}, SPACE)
        await env.clock.advance(8)
        assert (await env.status())["availableReplicas"] == replicas
        return len([one for one in asked if "/leases/" not in one[1]]) / more

    few, many = await cost(10, 10), await cost(150, 140)
    assert many < few * 1.2
    assert many < 30
