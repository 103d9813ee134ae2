"""A simulated service operator on both servers: it deploys what an object requests, and fails on demand."""

import pytest
from tests.builders import declared_kinds
from tests.builders.operators import until

from nodeyard.client.api import Client
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.client.resources import untyped
from nodeyard.process.clock import SystemClock
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.world import World
from nodeyard.testing import third_party_crds

HASH, FAIL = "nodeyard.dev/profile-hash", "sim.nodeyard.dev/fail"
AGENTS = untyped("sim-services.test", "v1", "playedagents", "PlayedAgent")


@pytest.fixture
async def client(api):
    third_party_crds.install(api.rest, [declared_kinds.custom(str(AGENTS), AGENTS.kind)])
    client = Client(HttpTransport(load_kubeconfig([api.kubeconfig]), clock=SystemClock()))
    yield client
    await client.close()
    api.rest.call("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{AGENTS}")


async def test_hashes_are_deployed_and_reported_or_fail_as_configured(client):
    async def state(name):
        status = (await client.get(AGENTS, name, "default")).get("status") or {}
        (ready,) = status.get("conditions") or [{"reason": ""}]
        return ready["reason"], (status.get("hash") or {}).get("profile")

    async def until_state(name, reason, profile):
        async def is_so():
            return await state(name) == (reason, profile)

        await until(is_so, f"{name} is {reason} with {profile}", 30.0)

    async def make(name, **annotations):
        metadata = {"name": name, "namespace": "default", "annotations": annotations}
        await client.create(AGENTS, {"apiVersion": AGENTS.api_version, "kind": AGENTS.kind, "metadata": metadata})

    kinds = [Kind(AGENTS.api_version, AGENTS.kind)]
    async with World(client, SystemClock(), 1, stages=(), services=kinds) as world:
        await make("good", **{HASH: "h1"})
        await make("bad", **{HASH: "h1", FAIL: "true"})
        await until_state("good", "Deployed", "h1")
        await until_state("bad", "DeployFailed", None)
        await client.patch(AGENTS, "bad", {"metadata": {"annotations": {FAIL: None}}}, "default")
        await until_state("bad", "Deployed", "h1")
        assert world.errors == []
