"""The simulated world on the embedded server and a virtual clock: hours pass at once and deterministically."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import LEASES, NAMESPACES, NODES, PODS, untyped
from nodeyard.kube.timestamps import parse_rfc3339
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect
from nodeyard.sim.world import World

NAMESPACE = "kube-node-lease"


class Stage:
    """A server, a client and a world on one clock."""

    def __init__(self, clock, server, client, world):
        self.clock, self.server, self.client, self.world = clock, server, client, world

    async def pass_time(self, seconds):
        await self.clock.advance(seconds)

    async def node(self, name):
        return await self.client.get(NODES, name)

    async def ready(self, name):
        conditions = (await self.node(name))["status"]["conditions"]
        return next(one["status"] for one in conditions if one["type"] == "Ready")

    async def pods(self):
        return {item["metadata"]["name"]: item for item in (await self.client.list(PODS)).items}

    async def phases(self):
        return {name: pod["status"]["phase"] for name, pod in (await self.pods()).items()}

    async def renewed(self, name):
        lease = await self.client.get(LEASES, name, NAMESPACE)
        return parse_rfc3339(lease["spec"]["renewTime"])


class Late:
    """Transport that delays watch events."""

    def __init__(self, inner, clock, seconds):
        self._inner, self._clock, self._seconds = inner, clock, seconds
        self.close, self.send = inner.close, inner.send

    @asynccontextmanager
    async def stream(self, request):
        await self._clock.sleep(self._seconds)
        async with self._inner.stream(request) as events:
            yield events


@asynccontextmanager
async def staged(seed=1, late=0, **options):
    clock = VirtualClock()
    server = Server(clock, seed=seed)
    await server.start()
    client = connect(server)
    if late:
        client.transport = Late(client.transport, clock, late)
    try:
        async with World(client, clock, seed, **options) as world:
            yield Stage(clock, server, client, world)
            assert world.errors == []
    finally:
        await server.stop()


@pytest.fixture
async def stage():
    async with staged() as stage:
        yield stage


async def test_nodes_register_become_ready_and_get_leases(stage):
    names = await stage.world.add_nodes(6, zones=("a", "b"))
    assert [await stage.ready(name) for name in names] == ["False"] * 6
    await stage.pass_time(6)
    assert [await stage.ready(name) for name in names] == ["True"] * 6
    assert (await stage.node(names[1]))["metadata"]["labels"]["topology.kubernetes.io/zone"] == "b"
    assert len((await stage.client.list(LEASES, NAMESPACE)).items) == 6


async def test_leases_are_renewed_every_ten_seconds(stage):
    (name,) = await stage.world.add_nodes(1)
    await stage.pass_time(5)
    for _ in range(5):
        await stage.pass_time(11)
        age = stage.clock.now() - await stage.renewed(name)
        assert age.total_seconds() < 11


async def test_a_node_reports_again_every_five_minutes(stage):
    (name,) = await stage.world.add_nodes(1)
    await stage.pass_time(700)
    conditions = (await stage.node(name))["status"]["conditions"]
    (ready,) = (one for one in conditions if one["type"] == "Ready")
    since_report = stage.clock.now() - parse_rfc3339(ready["lastHeartbeatTime"])
    assert since_report.total_seconds() <= 310
    assert parse_rfc3339(ready["lastTransitionTime"]) < parse_rfc3339(ready["lastHeartbeatTime"])


async def test_a_failed_node_stops_reporting_and_a_recovered_one_reports_again(stage):
    lost, fine = await stage.world.add_nodes(2)
    await stage.pass_time(20)
    await stage.world.fail(lost)
    before = await stage.renewed(lost)
    await stage.pass_time(120)
    assert await stage.renewed(lost) == before
    assert await stage.ready(lost) == "Unknown"
    assert await stage.ready(fine) == "True"
    await stage.world.recover(lost)
    await stage.pass_time(20)
    assert await stage.ready(lost) == "True"
    assert await stage.renewed(lost) > before


async def test_pods_are_scheduled_and_started(stage):
    names = await stage.world.add_nodes(3)
    await stage.pass_time(10)
    await stage.world.add_pods(9)
    await stage.pass_time(5)
    pods = (await stage.pods()).values()
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert {pod["spec"]["nodeName"] for pod in pods} == set(names)
    assert len({pod["status"]["podIP"] for pod in pods}) == 9
    assert all(pod["status"]["containerStatuses"][0]["ready"] for pod in pods)


async def test_a_pod_that_fits_nowhere_waits_until_it_does(stage):
    await stage.world.add_nodes(1, spare=1)
    await stage.world.add_pods(1)
    await stage.pass_time(30)
    (pod,) = (await stage.pods()).values()
    (scheduled,) = (one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    await stage.world.add_nodes(1)
    await stage.pass_time(15)
    assert set((await stage.phases()).values()) == {"Running"}


async def test_a_pod_that_runs_to_an_end_ends(stage):
    await stage.world.add_nodes(1)
    pod = {
        "metadata": {"name": "job", "namespace": "default", "annotations": {"sim.nodeyard.dev/run-for": "1m"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    await stage.client.create(PODS, pod)
    await stage.pass_time(30)
    assert await stage.phases() == {"job": "Running"}
    await stage.pass_time(60)
    assert await stage.phases() == {"job": "Succeeded"}
    (status,) = (await stage.pods())["job"]["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 0
    assert "running" not in status["state"]


async def test_a_deleted_pod_is_removed_by_its_kubelet(stage):
    (node,) = await stage.world.add_nodes(1)
    (name,) = await stage.world.add_pods(1)
    await stage.pass_time(10)
    await stage.client.delete(PODS, name, "default")
    assert (await stage.pods())[name]["metadata"]["deletionTimestamp"]
    await stage.pass_time(3)
    assert await stage.pods() == {}
    (name,) = await stage.world.add_pods(1, prefix="again")
    await stage.pass_time(10)
    await stage.world.fail(node)
    await stage.client.delete(PODS, name, "default")
    await stage.pass_time(30)
    assert name in await stage.pods()
    await stage.world.recover(node)
    await stage.pass_time(3)
    assert await stage.pods() == {}


async def test_a_node_is_drained_as_budgets_allow(stage):
    first, _ = await stage.world.add_nodes(2)
    await stage.world.add_pods(4)
    await stage.pass_time(15)
    budgets = untyped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
    budget = {
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 4, "selector": {"matchLabels": {"app": "sim"}}},
    }
    await stage.client.create(budgets, budget)
    await stage.pass_time(5)
    await stage.world.drain(first)
    await stage.pass_time(30)
    node = await stage.node(first)
    assert node["spec"]["unschedulable"] is True
    assert len(await stage.pods()) == 4
    await stage.client.delete(budgets, "keep", "default")
    await stage.pass_time(60)
    assert (await stage.node(first))["metadata"]["annotations"]["sim.nodeyard.dev/drain"] == "done"
    assert all(pod["spec"]["nodeName"] != first for pod in (await stage.pods()).values())


async def test_pods_of_a_deleted_node_are_deleted(stage):
    (node,) = await stage.world.add_nodes(1)
    await stage.world.add_pods(1)
    await stage.pass_time(10)
    await stage.client.delete(NODES, node)
    await stage.pass_time(60)
    assert await stage.pods() == {}


async def story(seed):
    async with staged(seed) as stage:
        names = await stage.world.add_nodes(8)
        await stage.world.add_pods(8)
        await stage.pass_time(120)
        nodes = [(name, await stage.ready(name), str(await stage.renewed(name))) for name in names]
        pods = sorted((name, pod["spec"].get("nodeName"), pod["status"]) for name, pod in (await stage.pods()).items())
        return nodes, pods


async def test_the_same_seed_gives_the_same_events():
    first, again, other = await story(3), await story(3), await story(4)
    assert first == again
    assert first != other


async def test_chaos_is_just_another_stage():
    async with staged(5, stages=("chaos",)) as stage:
        names = await stage.world.add_nodes(20)
        down: list[set[str]] = []
        for _ in range(15):
            await stage.pass_time(60)
            down.append({name for name in names if stage.world.is_failed(name)})
        struck = set().union(*down)
        assert struck
        assert struck - down[-1], "some of them came back"


async def test_a_missing_node_cannot_fail(stage):
    with pytest.raises(NotFound, match='nodes "ghost" not found'):
        await stage.world.fail("ghost")


async def test_a_node_can_fail_at_the_moment_of_its_creation(stage):
    (name,) = await stage.world.add_nodes(1)
    await stage.world.fail(name)
    await stage.pass_time(30)
    assert await stage.ready(name) == "False"
    assert (await stage.client.list(LEASES, NAMESPACE)).items == []


async def test_a_world_settles_when_nothing_more_will_happen(stage):
    await stage.world.add_nodes(3)
    await stage.world.add_pods(3)
    waiting = asyncio.create_task(stage.world.wait_until_settled())
    await stage.pass_time(60)
    assert waiting.done()
    assert set((await stage.phases()).values()) == {"Running"}


async def test_a_world_is_not_settled_before_its_informers_have_seen_its_writes():
    async with staged(late=10) as stage:
        await stage.pass_time(1)
        (name,) = await stage.world.add_nodes(1)
        waiting = asyncio.create_task(stage.world.wait_until_settled())
        await stage.pass_time(5)
        assert not waiting.done()
        await stage.pass_time(60)
        assert waiting.done()
        assert await stage.ready(name) == "True"


MACHINES = """
relations:
  machines:
    of: {apiVersion: v1, kind: ConfigMap}
    key: metadata.labels.pool
    to: {apiVersion: v1, kind: Namespace}
    id: metadata.name
counts:
  broken: {relation: machines, where: [{path: data.state, is: broken}]}
stages:
- name: pool-scale
  for: {apiVersion: v1, kind: Namespace}
  where:
  - {path: metadata.annotations.size, exists: true}
  - {path: metadata.deletionTimestamp, exists: false}
  delay: 1s
  repeat: true
  do:
  - scale:
      relation: machines
      to: {path: metadata.annotations.size}
      object:
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: ${object.metadata.name}-${suffix}
          namespace: ${object.metadata.name}
          labels: {pool: "${object.metadata.name}"}
        data: {state: new}
- name: machine-up
  for: {apiVersion: v1, kind: ConfigMap}
  labels: pool
  where: [{path: data.state, is: new}]
  delay: [2s, 4s]
  do:
  - patch: {body: {data: {state: up, since: "${now}"}}}
  - at: machines
    patch: {body: {metadata: {annotations: {last: "${origin.metadata.name}"}}}}
- name: machine-heal
  for: {apiVersion: v1, kind: Namespace}
  where: [{count: broken, above: 0}]
  delay: 5s
  do:
  - each: machines
    where: [{path: data.state, is: broken}]
    patch: {body: {data: {state: new}}}
"""


async def test_a_file_of_ones_own_can_make_scale_and_heal(tmp_path: Path):
    path = tmp_path / "machines.yaml"
    path.write_text(MACHINES)
    configmaps = untyped("", "v1", "configmaps", "ConfigMap")
    async with staged(stages=("nodes",), extra_stages=[path]) as stage:
        await stage.client.create(NAMESPACES, {"metadata": {"name": "pool", "annotations": {"size": "3"}}})

        async def states():
            return sorted(item["data"]["state"] for item in (await stage.client.list(configmaps, "pool")).items)

        await stage.pass_time(10)
        assert await states() == ["up"] * 3
        assert (await stage.client.get(NAMESPACES, "pool"))["metadata"]["annotations"]["last"].startswith("pool-")
        await stage.client.patch(NAMESPACES, "pool", {"metadata": {"annotations": {"size": "1"}}})
        await stage.pass_time(10)
        assert await states() == ["up"]
        (item,) = (await stage.client.list(configmaps, "pool")).items
        await stage.client.patch(configmaps, item["metadata"]["name"], {"data": {"state": "broken"}}, "pool")
        await stage.pass_time(4)
        assert await states() == ["broken"]
        await stage.pass_time(10)
        assert await states() == ["up"]


FAULTY = """
stages:
- name: refused
  for: {apiVersion: v1, kind: Node}
  do: [{create: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}}]
- name: senseless
  for: {apiVersion: v1, kind: Node}
  where: [{path: metadata.name, above: 3}]
  do: [{delete: {}}]
- name: unknown-function
  for: {apiVersion: v1, kind: Node}
  do: [{patch: {body: {$call: magic}}}]
- name: no-duration
  for: {apiVersion: v1, kind: Node}
  delay: {path: metadata.name}
  do: [{mark: seen}]
"""


async def test_faults_in_a_stage_file_are_reported_and_block_nothing_else(tmp_path: Path):
    path = tmp_path / "faulty.yaml"
    path.write_text(FAULTY)
    clock = VirtualClock()
    server = Server(clock)
    await server.start()
    async with World(connect(server), clock, extra_stages=[path]) as world:
        (name,) = await world.add_nodes(1)
        await clock.advance(10)
        assert sorted(fault.split(":")[0] for fault in world.errors) == [
            "stage no-duration on Node node-0000",
            "stage refused on Node node-0000",
            "stage senseless on Node node-0000",
            "stage unknown-function on Node node-0000",
        ]
        stage = Stage(clock, server, connect(server), world)
        assert await stage.ready(name) == "True"
    await server.stop()
