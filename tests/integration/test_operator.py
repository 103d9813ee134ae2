"""The operator's process over TLS, on both servers, with the sixth capability."""

import asyncio
import itertools
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import aiohttp
import pytest
from tests.builders import labels, rule_webhooks
from tests.builders.operators import fleet as fleet_on
from tests.builders.operators import leads, operator, until

from nodeyard.client.errors import NotFound
from nodeyard.client.resources import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, LEASES
from nodeyard.kube.names import NAMESPACE
from nodeyard.plan.brake import parse_limit
from nodeyard.runtime.health import Address
from nodeyard.runtime.leader.election import Timing
from nodeyard.testing.faults import Drop
from nodeyard.testing.operators import LOCAL_WEBHOOKS

HERE = Address("127.0.0.1", 0)


@pytest.fixture
async def fleet(api):
    async with fleet_on(api.kubeconfig) as fleet:
        yield fleet


async def page(port, path):
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
        return response.status, await response.text()


async def test_it_installs_missing_crds_and_applies_templates(api, fleet):
    async with operator(api.kubeconfig):
        assert await fleet.client.get(CUSTOM_RESOURCE_DEFINITIONS, "labelrules.labels.test")
        await fleet.add_rule("a", "blue")
        await fleet.add_nodes("a", 5)
        await fleet.are_all("blue")

        async def is_told():
            rule = await fleet.rule("a")
            return rule.status.labelled == 5 and rule.status.observed_generation == rule.metadata.generation

        await until(is_told, "the status says so")

        async def is_recorded():
            events = (await fleet.client.list(EVENTS)).items
            return [each for each in events if each["regarding"].get("name") == fleet.name("a")]

        (event, *_) = await until(is_recorded, "an event says so")
        assert (event["reason"], event["reportingController"]) == ("Labelled", "nodeyard.dev/labels")


async def test_its_lease_is_held_while_it_runs_and_free_after(api, fleet):
    async with operator(api.kubeconfig, "holder") as running:

        async def is_leading():
            return leads(running)

        await until(is_leading, "it leads")
        lease = await fleet.client.get(LEASES, "nodeyard-labels", NAMESPACE)
        assert lease["spec"]["holderIdentity"] == "holder"
    lease = await fleet.client.get(LEASES, "nodeyard-labels", NAMESPACE)
    assert not lease["spec"].get("holderIdentity")


async def test_health_and_metrics_report_its_state(api, fleet):
    async with operator(api.kubeconfig, health=HERE, metrics=HERE) as running:
        port = running.ports["health"]

        async def is_ready():
            return (await page(port, "/readyz"))[0] == 200

        await until(is_ready, "it is ready")
        assert await page(port, "/healthz") == (200, "ok\n")
        await fleet.add_rule("a", "blue")
        await fleet.add_nodes("a", 1)
        await fleet.are_all("blue")
        done = 'nodeyard_actions_total{capability="labels",result="Done",verb="Patch"}'

        async def is_counted():
            return done in (await page(port, "/metrics"))[1]

        await until(is_counted, "the write is counted")
        _, text = await page(port, "/metrics")
        for part in (
            'nodeyard_leader{capability="labels"} 1.0',
            'nodeyard_queue_depth{capability="labels"}',
            'nodeyard_queue_latency_seconds_count{capability="labels"}',
            'nodeyard_reconcile_seconds_count{capability="labels"}',
            f"{done} 1.0",
            'nodeyard_client_requests_total{code="200",reason="",resource="nodes",verb="patch"} 1.0',
            "nodeyard_informer_objects{",
            "nodeyard_informer_silence_seconds{",
            'nodeyard_plans_held{capability="labels"} 0.0',
        ):
            assert part in text


async def test_a_held_plan_runs_when_it_is_approved(api, fleet):
    settings = {"limit": parse_limit("2,10%")}
    async with operator(api.kubeconfig, settings=settings) as running:
        await fleet.add_nodes("a", 4)

        async def are_known():
            return len(running.manager.controllers[0].view.indexed("Node", "rule", fleet.name("a"))) == 4

        await until(are_known, "the nodes are known")
        await fleet.add_rule("a", "blue", disruptive=True)

        async def is_held():
            return running.manager.controllers[0].held.get(fleet.name("a"))

        held = await until(is_held, "the plan is held")
        assert set(await fleet.teams()) == {None}
        patch = {"metadata": {"annotations": {"nodeyard.dev/approve": held.id}}}
        await fleet.client.patch(labels.RULES, fleet.name("a"), patch)
        await fleet.are_all("blue")


async def test_the_follower_takes_over_from_a_leader_that_is_cut_off(api, faults, fleet):
    async with operator(faults.kubeconfig, "first") as first:

        async def first_leads():
            return leads(first)

        await until(first_leads, "the first leads")
        async with operator(api.kubeconfig, "second") as second:
            await fleet.add_rule("a", "blue")
            await fleet.add_nodes("a", 3)
            await fleet.are_all("blue")
            assert not leads(second)
            faults.add(Drop())
            await fleet.change("a", team="red")
            await fleet.are_all("red")
            assert leads(second)
            assert not leads(first)
            faults.clear()


def deliberate(seconds):
    """Build a planner that uses a whole core for this long."""

    def plan(snapshot, now, explain):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sum(range(1000))
        return labels.plan(snapshot, now, explain)

    return plan


@pytest.fixture
def renewals(monkeypatch):
    """Return when each renewal was answered."""
    moments = []
    from nodeyard.app import operator as assembly

    original = assembly.request_observer

    def observer(metrics):
        observe = original(metrics)

        def told(verb, resource, code, duration, reason):
            if resource.plural == "leases" and verb == "update":
                moments.append(time.monotonic())
            observe(verb, resource, code, duration, reason)

        return told

    monkeypatch.setattr(assembly, "request_observer", observer)
    return moments


def longest_gap(moments):
    return max(later - earlier for earlier, later in itertools.pairwise(moments))


@pytest.fixture
async def asking(fleet):
    """Repeat a write that calls a webhook; return the durations. A single failure raises."""
    waits = []

    async def ask():
        while True:
            began = time.monotonic()
            await fleet.client.create(labels.RULES, labels.rule(fleet.name("probe"), "blue"), dry_run=True)
            waits.append(time.monotonic() - began)
            await asyncio.sleep(0.05)

    @asynccontextmanager
    async def during():
        task = asyncio.create_task(ask())
        try:
            yield waits
        finally:
            assert not task.done(), task.exception()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    yield during
    for kind in rule_webhooks.CONFIGURATIONS:
        with suppress(NotFound):
            await fleet.client.delete(kind, rule_webhooks.NAME)


async def test_ten_seconds_of_planning_make_no_lease_late_and_no_webhook_wait(api, fleet, renewals, asking):
    webhook = rule_webhooks.validating(failure_policy="Fail", timeout_seconds=2)
    slow = replace(rule_webhooks.guarded(webhook), plan=deliberate(10))
    timing = Timing(duration=4, margin=1.5, interval=0.5, deadline=1.5)
    async with operator(api.kubeconfig, capability=slow, lease=timing, webhooks=LOCAL_WEBHOOKS) as running:
        await until(lambda: rule_webhooks.is_registered(fleet.client), "its webhook is registered")

        def allowed():
            return running.metrics.registry.get_sample_value(*rule_webhooks.reviewed("allowed")) or 0

        async def is_judging():
            """Until its caches are synced it allows everything, and counts such reviews separately."""
            await fleet.client.create(labels.RULES, labels.rule(fleet.name("probe"), "blue"), dry_run=True)
            return allowed() > 0

        await until(is_judging, "its webhook judges")
        await fleet.add_rule("a", "blue")
        await fleet.add_nodes("a", 1)
        async with asking() as waits:
            await fleet.are_all("blue", timeout=60)
        assert leads(running)
        lease = await fleet.client.get(LEASES, "nodeyard-labels", NAMESPACE)
        assert lease["spec"]["holderIdentity"] == "one"
        assert allowed() >= len(waits)
    assert len(renewals) >= 10
    assert longest_gap(renewals) < timing.duration - timing.margin
    assert len(waits) >= 20
    assert max(waits) < webhook.timeout_seconds


async def test_a_blocked_main_loop_makes_no_lease_late(api, fleet, renewals):
    timing = Timing(duration=4, margin=1.5, interval=0.5, deadline=1.5)
    async with operator(api.kubeconfig, lease=timing) as running:

        async def is_leading():
            return leads(running)

        await until(is_leading, "it leads")
        end = time.monotonic() + 5
        while time.monotonic() < end:
            sum(range(1000))
        assert leads(running)
        await asyncio.sleep(0)
    assert longest_gap(renewals) < timing.duration - timing.margin
