"""The applier on both servers, and through a faulty proxy."""

import asyncio
import itertools
from contextlib import asynccontextmanager

import pytest

from nodeyard.apply.applier import Applier
from nodeyard.apply.outcome import Result
from nodeyard.apply.recorder import Recorder
from nodeyard.apply.status import StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.decoder import WatchEvent
from nodeyard.client.errors import Conflict
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, untyped
from nodeyard.kube.taints import taints_of
from nodeyard.plan.model import Verb, Write
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.capability import Event, StatusWrite
from nodeyard.testing.faults import Drop, Status

from ..builders.plans import action, config_ref, node_ref, planned, pod_ref

BUDGETS = untyped("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
ZERO = "00000000-0000-0000-0000-000000000000"
OURS = {"key": "example.com/ours", "effect": "NoSchedule"}
_numbers = itertools.count(1)


def lookup(_api_version, kind):
    return {"Node": NODES, "Pod": PODS, "ConfigMap": CONFIG_MAPS, "Event": EVENTS}.get(kind)


@asynccontextmanager
async def connected(kubeconfig):
    client = Client(HttpTransport(load_config(kubeconfig)))
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def client(api):
    async with connected(api.kubeconfig) as client:
        yield client


@pytest.fixture
async def faulty(faults):
    async with connected(faults.kubeconfig) as client:
        yield client


@pytest.fixture
async def space(client):
    name = f"applier-{next(_numbers)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    await client.delete(NAMESPACES, name)


@pytest.fixture
async def nodes(client):
    """Five nodes of this test."""
    number = next(_numbers)
    made = [await client.create(NODES, {"metadata": {"name": f"applier-{number}-{each}"}}) for each in range(5)]
    yield made
    for node in made:
        await client.delete(NODES, node["metadata"]["name"])


async def apply(client, *steps, **options):
    applier = Applier(client, "tests", lookup, clock=SystemClock(), **options)
    return await applier.apply(planned(*steps), may_write=lambda: True)


def label(node, **more):
    metadata = node["metadata"]
    return action(metadata["name"]), Write(body={"metadata": {"labels": {"example.com/ours": "1"}}}, **more)


def claim(node):
    metadata = node["metadata"]
    body = {"spec": {"taints": [*taints_of(node), OURS]}}
    write = Write(body=body, resource_version=metadata["resourceVersion"])
    return action(metadata["name"], object=node_ref(metadata["name"], metadata["uid"])), write


async def read(client, nodes):
    return [await client.get(NODES, node["metadata"]["name"]) for node in nodes]


async def test_every_verb_is_carried_out_in_order(client, space):
    create = action("create", Verb.CREATE, config_ref("a", space)), Write(body={"data": {"x": "1"}})
    patch = action("patch", object=config_ref("a", space), after=("create",)), Write(body={"data": {"y": "2"}})
    apply_ = action("apply", Verb.APPLY, config_ref("a", space), after=("patch",)), Write(body={"data": {"z": "3"}})
    operations = [{"op": "remove", "path": "/data/x"}]
    json = action("json", object=config_ref("a", space), after=("apply",)), Write(body=operations, json_patch=True)
    outcome = await apply(client, create, patch, apply_, json)
    assert outcome.is_complete
    assert (await client.get(CONFIG_MAPS, "a", space))["data"] == {"y": "2", "z": "3"}
    outcome = await apply(client, (action("delete", Verb.DELETE, config_ref("a", space)), Write()))
    assert outcome.is_complete
    assert (await client.list(CONFIG_MAPS, space, fields="metadata.name=a")).items == []


@pytest.mark.parametrize("form", ["merge", "json", "apply", "delete"])
async def test_another_object_by_the_same_name_is_left_alone(client, space, form):
    await client.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": space}, "data": {"x": "1"}})
    steps = {
        "merge": (Verb.PATCH, Write(body={"data": {"x": "2"}})),
        "json": (Verb.PATCH, Write(body=[{"op": "remove", "path": "/data/x"}], json_patch=True)),
        "apply": (Verb.APPLY, Write(body={"data": {"x": "2"}})),
        "delete": (Verb.DELETE, Write()),
    }
    verb, write = steps[form]
    (result,) = (await apply(client, (action("a", verb, config_ref("a", space, ZERO)), write))).results
    assert result.result is Result.CONFLICT
    assert (await client.get(CONFIG_MAPS, "a", space))["data"] == {"x": "1"}


async def test_a_stale_precondition_is_a_conflict(client, nodes):
    await client.patch(NODES, nodes[0]["metadata"]["name"], {"metadata": {"labels": {"theirs": "1"}}})
    outcome = await apply(client, *(claim(node) for node in nodes[:2]))
    assert outcome.results[0].result is Result.CONFLICT


async def test_overload_is_waited_out(client, faulty, faults, nodes):
    rule = faults.add(Status(429, retry_after=1), method="PATCH", path="/nodes/applier", times=2)
    outcome = await apply(faulty, *map(label, nodes))
    assert outcome.is_complete
    assert rule.hits == 2


async def test_lost_responses_are_confirmed_and_nothing_is_written_twice(client, faulty, faults, nodes):
    rule = faults.add(Drop(after_sending=True), method="PATCH", path="/nodes/applier")
    before = await read(client, nodes)
    steps = [label(node, resource_version=node["metadata"]["resourceVersion"]) for node in before]
    outcome = await apply(faulty, *steps)
    assert {each.result for each in outcome.results} <= {Result.DONE, Result.CONFLICT}
    for result, node in zip(outcome.results, await read(client, nodes), strict=True):
        is_labelled = "example.com/ours" in node["metadata"].get("labels", {})
        assert is_labelled == (result.result is Result.DONE)
    assert rule.hits == len(nodes)


async def test_requests_that_never_arrive_are_sent_again(client, faulty, faults, nodes):
    faults.add(Drop(), method="PATCH", path="/nodes/applier", times=3)
    outcome = await apply(faulty, *map(label, nodes))
    assert outcome.is_complete


async def test_a_create_and_a_delete_with_lost_responses_happen_once(faulty, faults, space):
    faults.add(Drop(after_sending=True), method="POST", path="/configmaps", times=1)
    faults.add(Drop(after_sending=True), method="DELETE", path="/configmaps", times=1)
    create = action("a", Verb.CREATE, config_ref("a", space)), Write(body={"data": {"x": "1"}})
    delete = action("b", Verb.DELETE, config_ref("a", space), after=("a",)), Write()
    assert (await apply(faulty, create, delete)).is_complete


async def test_no_taint_of_a_concurrent_writer_is_lost(client, faulty, faults, nodes):
    faults.add(Drop(after_sending=True), method="PATCH", path="/nodes/applier", chance=0.2)
    names = [node["metadata"]["name"] for node in nodes]
    stopped = asyncio.Event()

    async def disturb(name):
        written = set()
        while not stopped.is_set() and len(written) < 12:
            node = await client.get(NODES, name)
            key = f"example.com/foreign-{len(written)}"
            body = {
                "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
                "spec": {"taints": [*taints_of(node), {"key": key, "effect": "NoSchedule"}]},
            }
            try:
                await client.patch(NODES, name, body)
                written.add(key)
            except Conflict:
                continue
        return written

    async def pursue():
        for _ in range(40):
            missing = [node for node in await read(client, nodes) if OURS not in taints_of(node)]
            if not missing:
                break
            await apply(faulty, *map(claim, missing))
        stopped.set()

    *written, _ = await asyncio.gather(*map(disturb, names), pursue())
    for node, foreign in zip(await read(client, nodes), written, strict=True):
        keys = {taint["key"] for taint in taints_of(node)}
        assert OURS["key"] in keys
        assert foreign <= keys


async def test_a_budget_is_quoted_and_an_allowed_eviction_goes_through(client, space, nodes):
    for name in ("kept", "free"):
        spec = {"nodeName": nodes[0]["metadata"]["name"], "containers": [{"name": "app", "image": "app"}]}
        metadata = {"name": name, "namespace": space, "labels": {"app": name}}
        await client.create(PODS, {"metadata": metadata, "spec": {**spec, "terminationGracePeriodSeconds": 0}})
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(PODS, name, {"status": ready}, space, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}}
    await client.create(BUDGETS, {"metadata": {"name": "careful", "namespace": space}, "spec": spec})
    async with client.watch(BUDGETS, space, initial_events=True, seconds=30) as events:
        async for event in events:
            if isinstance(event, WatchEvent) and event.object.get("status", {}).get("currentHealthy") == 1:
                break
    evictions = [(action(name, Verb.EVICT, pod_ref(name, space)), Write()) for name in ("kept", "free", "gone")]
    outcome = await apply(client, *evictions)
    assert [each.result for each in outcome.results] == [Result.FAILED, Result.DONE, Result.DONE]
    assert "careful" in outcome.results[0].message
    assert outcome.results[0].retry_after > 0


async def test_events_are_recorded_and_counted(client, space):
    recorder = Recorder(client, "tests", instance="pod-1", clock=SystemClock())
    for number in range(3):
        recorder.record(Event(config_ref("a", space), "Normal", "Claimed", f"took {min(number, 1)}"))
        await recorder.drain()
    noted = {each["note"]: each.get("series", {}).get("count") for each in (await client.list(EVENTS, space)).items}
    assert noted == {"took 0": None, "took 1": 2}
    assert recorder.lost == 0


async def test_status_is_written_once_and_conflicts_are_overcome(client, nodes):
    node = nodes[0]
    name = node["metadata"]["name"]
    await client.patch(NODES, name, {"metadata": {"labels": {"theirs": "1"}}})
    writer = StatusWriter(client, "tests", lookup, clock=SystemClock())
    stale = node["metadata"]["resourceVersion"]
    status = {**node["status"], "capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}
    one = StatusWrite(object=node_ref(name), status=status, resource_version=stale)
    (first,) = await writer.write([one], lambda _ref: node, may_write=lambda: True)
    assert first.result is Result.DONE
    shown = await client.get(NODES, name)
    assert shown["status"]["capacity"] == {"cpu": "4"}
    (second,) = await writer.write([one], lambda _ref: shown, may_write=lambda: True)
    assert (second.result, second.requests) == (Result.DONE, 0)


async def test_a_dry_run_leaves_no_trace(client, space, nodes):
    applier = Applier(client, "tests", lookup, clock=SystemClock())
    create = action("a", Verb.CREATE, config_ref("a", space)), Write(body={"data": {"x": "1"}})
    delete = action("b", Verb.DELETE, node_ref(nodes[0]["metadata"]["name"])), Write()
    outcome = await applier.apply(planned(create, delete), may_write=lambda: False, dry_run=True)
    assert outcome.is_complete
    assert (await client.list(CONFIG_MAPS, space, fields="metadata.name=a")).items == []
    assert await client.get(NODES, nodes[0]["metadata"]["name"])
