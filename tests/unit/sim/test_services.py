"""Simulated service operators under virtual time: they deploy and report what an object requests, or fail."""

from contextlib import asynccontextmanager

import pytest

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, untyped
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect
from nodeyard.sim.index import Key
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import load_stages
from nodeyard.sim.world import World

COMPUTES = untyped("nova.openstack.org", "v1beta1", "novaexternalcomputes", "NovaExternalCompute")
AGENTS = untyped("neutron.openstack.org", "v1beta1", "ovnmetadataagents", "OVNMetadataAgent")
WIDGETS = untyped("example.dev", "v1", "widgets", "Widget")
HASH = "nodeyard.dev/profile-hash"
FAIL = "sim.nodeyard.dev/fail"


def definition(resource):
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


class Stage:
    def __init__(self, clock, client, world):
        self.clock, self.client, self.world = clock, client, world

    async def make(self, resource, name="a", **annotations):
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        await self.client.create(resource, obj)

    async def annotate(self, resource, name="a", **annotations):
        patch = {"metadata": {"annotations": annotations}}
        await self.client.patch(resource, name, patch, "default")

    async def state(self, resource, name="a"):
        """Return status and reason of Ready, and the reported hash."""
        status = (await self.client.get(resource, name, "default")).get("status") or {}
        (ready,) = status.get("conditions") or [{"status": "", "reason": ""}]
        return ready["status"], ready["reason"], (status.get("hash") or {}).get("profile")


@asynccontextmanager
async def staged(*resources, seed=1, **options):
    clock = VirtualClock()
    server = Server(clock, seed=seed)
    await server.start()
    client = connect(server)
    for resource in resources:
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(resource))
    await clock.advance(1)
    try:
        async with World(client, clock, seed, **options) as world:
            await clock.advance(1)
            yield Stage(clock, client, world)
            assert world.errors == []
    finally:
        await server.stop()


@pytest.fixture
async def stage():
    async with staged(COMPUTES, AGENTS, stages=("services",)) as stage:
        yield stage


@pytest.mark.parametrize("resource", [COMPUTES, AGENTS], ids=["compute", "agent"])
async def test_a_hash_is_deployed_and_reported_after_some_seconds(stage, resource):
    await stage.make(resource, **{HASH: "h1"})
    await stage.clock.advance(1)
    assert await stage.state(resource) == ("False", "Deploying", None)
    await stage.clock.advance(6)
    assert await stage.state(resource) == ("True", "Deployed", "h1")


async def test_another_hash_is_deployed_and_the_old_one_reported_meanwhile(stage):
    await stage.make(COMPUTES, **{HASH: "h1"})
    await stage.clock.advance(10)
    await stage.annotate(COMPUTES, **{HASH: "h2"})
    await stage.clock.advance(1)
    assert await stage.state(COMPUTES) == ("False", "Deploying", "h1")
    await stage.clock.advance(6)
    assert await stage.state(COMPUTES) == ("True", "Deployed", "h2")


async def test_a_hash_that_changes_during_a_deployment_is_the_one_that_is_reported(stage):
    await stage.make(COMPUTES, **{HASH: "h1"})
    await stage.clock.advance(1)
    await stage.annotate(COMPUTES, **{HASH: "h2"})
    await stage.clock.advance(12)
    assert await stage.state(COMPUTES) == ("True", "Deployed", "h2")


async def test_a_deployment_fails_until_the_annotation_goes(stage):
    await stage.make(COMPUTES, **{HASH: "h1"})
    await stage.clock.advance(10)
    await stage.annotate(COMPUTES, **{FAIL: "true"})
    await stage.clock.advance(60)
    assert await stage.state(COMPUTES) == ("True", "Deployed", "h1"), "there is nothing to deploy"
    await stage.annotate(COMPUTES, **{HASH: "h2"})
    await stage.clock.advance(600)
    assert await stage.state(COMPUTES) == ("False", "DeployFailed", "h1")
    await stage.annotate(COMPUTES, **{FAIL: None})
    await stage.clock.advance(10)
    assert await stage.state(COMPUTES) == ("True", "Deployed", "h2")


async def test_a_deployment_that_is_under_way_can_still_fail(stage):
    await stage.make(COMPUTES, **{HASH: "h1"})
    await stage.clock.advance(1)
    await stage.annotate(COMPUTES, **{FAIL: "true"})
    await stage.clock.advance(10)
    assert await stage.state(COMPUTES) == ("False", "DeployFailed", None)


async def test_an_object_without_configuration_is_ready_and_reports_no_hash(stage):
    await stage.make(COMPUTES)
    await stage.clock.advance(5)
    assert await stage.state(COMPUTES) == ("True", "Deployed", None)
    await stage.annotate(COMPUTES, **{HASH: "h1"})
    await stage.clock.advance(10)
    await stage.annotate(COMPUTES, **{HASH: None})
    await stage.clock.advance(5)
    assert await stage.state(COMPUTES) == ("True", "Deployed", None)


async def test_when_all_is_deployed_nothing_more_is_written(stage):
    for number in range(5):
        await stage.make(COMPUTES, f"c{number}", **{HASH: "h1"})
    await stage.clock.advance(10)
    before = (await stage.client.list(COMPUTES)).items
    await stage.clock.advance(3600)
    assert (await stage.client.list(COMPUTES)).items == before
    assert stage.world.engine.is_settled


async def test_any_other_kind_is_simulated_by_its_name():
    async with staged(WIDGETS, stages=(), services=[Kind("example.dev/v1", "Widget")]) as stage:
        await stage.make(WIDGETS, **{HASH: "h1"})
        await stage.clock.advance(10)
        assert await stage.state(WIDGETS) == ("True", "Deployed", "h1")


async def test_by_chance_some_deployments_fail_and_are_repaired():
    async with staged(COMPUTES, AGENTS, stages=("services", "failures")) as stage:
        names = [f"c{number:02d}" for number in range(40)]
        for name in names:
            await stage.make(COMPUTES, name, **{HASH: "h1"})
        await stage.clock.advance(20)
        reasons = [(await stage.state(COMPUTES, name))[1] for name in names]
        assert 0 < reasons.count("DeployFailed") < 20
        await stage.clock.advance(3600)
        assert {await stage.state(COMPUTES, name) for name in names} == {("True", "Deployed", "h1")}


async def test_a_test_can_break_one_without_the_server_knowing(stage):
    key = Key(Kind(COMPUTES.api_version, COMPUTES.kind), "default", "a")
    await stage.make(COMPUTES, **{HASH: "h1"})
    await stage.clock.advance(1)
    stage.world.engine.mark(key, "broken", True)
    await stage.clock.advance(10)
    assert await stage.state(COMPUTES) == ("False", "DeployFailed", None)
    stage.world.engine.mark(key, "broken", False)
    await stage.clock.advance(10)
    assert await stage.state(COMPUTES) == ("True", "Deployed", "h1")


def test_stages_for_other_kinds_join_those_shipped():
    shipped = load_stages("services")
    joined = load_stages("services", services=[Kind("example.dev/v1", "Widget"), Kind("example.dev/v1", "Gadget")])
    names = [stage.name for stage in joined.stages]
    assert len(names) == len(set(names)) == len(shipped.stages) * 2
