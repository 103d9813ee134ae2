"""Simulated releases on a virtual clock: installed, upgraded pod by pod, denied by admission, and uninstalled."""

from __future__ import annotations

from contextlib import asynccontextmanager

from nodeyard.apiserver.server import Server
from nodeyard.client.resources import PODS, untyped
from nodeyard.process.clock import VirtualClock
from nodeyard.sim import stand_in_crds
from nodeyard.sim.embedded import connect
from nodeyard.sim.world import STAGES, World

RELEASES = untyped("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease")
SETS = untyped("apps", "v1", "statefulsets", "StatefulSet")
POLICIES = untyped("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "P", namespaced=False)
BINDINGS = untyped("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "B", namespaced=False)
ZONE = "topology.kubernetes.io/zone"


class Releasing:
    def __init__(self, client, clock, world):
        self.client, self.clock, self.world = client, clock, world

    async def make(self, name, chart="chart", **values):
        spec = {"interval": "5m", "chartRef": {"kind": "OCIRepository", "name": chart}, "values": values}
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": RELEASES.api_version, "kind": RELEASES.kind, "metadata": metadata, "spec": spec}
        await self.client.create(RELEASES, body)

    async def ready(self, name):
        status = (await self.client.get(RELEASES, name, "default")).get("status") or {}
        found = [each for each in status.get("conditions") or () if each["type"] == "Ready"]
        return (found[0]["status"], found[0]["reason"]) if found else None

    async def pods(self):
        return {each["metadata"]["name"]: each for each in (await self.client.list(PODS, "default")).items}


class Stepping:
    """Clock that advances itself when it sleeps."""

    def __init__(self, clock):
        self._clock = clock

    async def sleep(self, seconds):
        await self._clock.advance(seconds)


@asynccontextmanager
async def releasing():
    clock = VirtualClock()
    server = Server(clock)
    await server.start()
    client = connect(server)
    try:
        await stand_in_crds.install(client, Stepping(clock), "flux")
        async with World(client, clock, 1, stages=(*STAGES, "releases")) as world:
            await world.add_nodes(4, zones=("a", "b"))
            await clock.advance(10)
            yield Releasing(client, clock, world)
            assert world.errors == []
    finally:
        await server.stop()


async def test_a_release_is_ready_when_its_pods_run_where_its_values_say():
    async with releasing() as on:
        await on.make("db", replicas=2, _scheduling={"nodeSelector": {ZONE: "a"}})
        await on.clock.advance(1)
        assert await on.ready("db") == ("Unknown", "Progressing")
        await on.clock.advance(20)

        assert await on.ready("db") == ("True", "InstallSucceeded")
        pods = await on.pods()
        assert list(pods) == ["db-0", "db-1"]
        assert all(each["spec"]["nodeSelector"] == {ZONE: "a"} for each in pods.values())


async def test_changed_values_replace_the_pods_and_the_last_goes_first():
    async with releasing() as on:
        await on.make("db", replicas=2, _scheduling={"nodeSelector": {ZONE: "a"}})
        await on.clock.advance(20)
        await on.client.patch(
            RELEASES, "db", {"spec": {"values": {"_scheduling": {"nodeSelector": {ZONE: "b"}}}}}, "default"
        )
        seen = []
        for _ in range(60):
            await on.clock.advance(0.5)
            zones = tuple(each["spec"]["nodeSelector"][ZONE] for each in (await on.pods()).values())
            seen += [zones] if zones not in seen else []

        assert seen.index(("a", "b")) < seen.index(("b", "b"))
        assert ("b", "a") not in seen
        assert await on.ready("db") == ("True", "UpgradeSucceeded")


async def test_a_forgetful_chart_leaves_the_placement_out():
    async with releasing() as on:
        await on.make("db", "forgetful-chart", _scheduling={"nodeSelector": {ZONE: "a"}})
        await on.clock.advance(20)

        assert "nodeSelector" not in (await on.pods())["db-0"]["spec"]


async def test_an_admission_denial_is_reported_and_retried():
    async with releasing() as on:
        await refuse_pods(on.client)
        await on.make("db")
        await on.clock.advance(5)
        assert await on.ready("db") == ("False", "InstallFailed")
        (condition,) = (await on.client.get(SETS, "db", "default"))["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
        assert "no pods today" in condition["message"]

        await on.client.delete(BINDINGS, "no-pods")
        await on.clock.advance(20)

        assert await on.ready("db") == ("True", "InstallSucceeded")


async def test_a_deleted_release_deletes_its_objects():
    async with releasing() as on:
        await on.make("db")
        await on.clock.advance(20)
        await on.client.delete(RELEASES, "db", "default")
        await on.clock.advance(60)

        assert (await on.client.list(RELEASES, "default")).items == []
        assert (await on.client.list(SETS, "default")).items == []
        assert await on.pods() == {}


async def refuse_pods(client):
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {
        "metadata": {"name": "no-pods"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "no pods today"}],
        },
    }
    typed = {"apiVersion": POLICIES.api_version, "kind": "ValidatingAdmissionPolicy"}
    await client.create(POLICIES, {**typed, **policy})
    binding = {"metadata": {"name": "no-pods"}, "spec": {"policyName": "no-pods", "validationActions": ["Deny"]}}
    await client.create(BINDINGS, {**typed, "kind": "ValidatingAdmissionPolicyBinding", **binding})
