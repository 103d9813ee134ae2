"""Status writes: only differences, and conflicts with other writers."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from random import Random
from typing import Any

import msgspec
import pytest

from nodeyard.apply.action_graph import NOT_ALLOWED
from nodeyard.apply.outcome import Result
from nodeyard.apply.status import UNKNOWN_FIELDS_RETRY_SECONDS, StatusWriter
from nodeyard.client.api import Client
from nodeyard.client.resources import NODES, untyped
from nodeyard.client.transport import Response
from nodeyard.process.clock import settle
from nodeyard.runtime.capability import StatusWrite

from ...builders.plans import node_ref
from .worlds import NoAnswer, lookup, status

WANTED = {"capacity": {"cpu": "4"}}
CRDS = untyped("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)


class NodeStatus(msgspec.Struct, frozen=True, omit_defaults=True):
    capacity: dict[str, str] = {}
    phase: str = ""


class NodeView(msgspec.Struct):
    status: NodeStatus = NodeStatus()


class CountStatus(msgspec.Struct, frozen=True):
    nodes: int = 0
    phase: str = ""


class CountView(msgspec.Struct):
    status: CountStatus


class FreeStatus(msgspec.Struct, frozen=True):
    effective: Any = None


class FreeView(msgspec.Struct):
    status: FreeStatus


def writer(world, find=lookup):
    def on_written(_resource: Any, answer: Any) -> None:
        world.written.append(answer)

    return StatusWriter(
        Client(world.transport), "tests", find, clock=world.clock, random=Random(1), on_written=on_written
    )


def wanted(wanted=WANTED, **more):
    return StatusWrite(object=node_ref("n1"), status=wanted, **more)


async def write(world, one, shown=None, may_write=lambda: True):
    running = asyncio.ensure_future(writer(world).write([one], lambda _ref: shown, may_write=may_write))
    (result,) = await world.finish(running)
    return result


async def test_a_queued_status_is_not_sent_after_the_lease_is_lost(world):
    made = await world.node("n1")
    world.transport.turn = asyncio.Event()
    leads = True
    running = asyncio.ensure_future(writer(world).write([wanted()], lambda _ref: made, may_write=lambda: leads))
    await settle()
    leads = False
    world.transport.turn.set()
    (result,) = await running
    assert (result.result, result.message, result.requests) == (Result.HELD, NOT_ALLOWED, 0)
    assert world.transport.sent == []


async def test_a_status_that_differs_is_patched_through_the_subresource(world):
    made = await world.node("n1")
    result = await write(world, wanted({**made["status"], **WANTED}), made)
    assert (result.result, result.requests) == (Result.DONE, 1)
    assert world.transport.sent == [("PATCH", "/api/v1/nodes/n1/status", {"status": WANTED})]
    assert world.written[0]["status"]["capacity"] == {"cpu": "4"}


async def test_a_status_that_is_as_wanted_costs_nothing(world):
    result = await write(world, wanted(), {"status": WANTED})
    assert (result.result, result.requests) == (Result.DONE, 0)
    assert world.transport.sent == []


async def test_only_the_difference_is_sent(world):
    await world.node("n1")
    shown = {"status": {"capacity": {"cpu": "4", "memory": "1Gi"}, "phase": "Old"}}
    await write(world, wanted({"capacity": {"cpu": "4", "memory": "2Gi"}}), shown)
    assert world.transport.sent[0][2] == {"status": {"phase": None, "capacity": {"memory": "2Gi"}}}


@pytest.mark.parametrize("shown", [NodeView(NodeStatus({"cpu": "4"})), NodeView(NodeStatus({"cpu": "4"}, ""))])
async def test_a_struct_that_shows_an_empty_value_as_none_is_no_difference(world, shown):
    result = await write(world, wanted({"capacity": {"cpu": "4"}, "phase": ""}), shown)
    assert result.requests == 0


async def test_a_struct_that_shows_something_else_is_a_difference(world):
    await world.node("n1")
    await write(world, wanted(), NodeView(NodeStatus({"cpu": "2"})))
    assert world.transport.sent[0][2] == {"status": {"capacity": {"cpu": "4"}}}


async def test_a_zero_that_a_struct_shows_though_it_was_never_written_is_sent_with_the_rest(world):
    await world.node("n1")
    shown = CountView(CountStatus())

    await write(world, wanted({"nodes": 0, "phase": "Ready"}), shown)

    assert world.transport.sent[0][2] == {"status": {"nodes": 0, "phase": "Ready"}}


async def test_a_boolean_in_the_place_of_a_number_is_a_difference(world):
    await world.node("n1")
    await write(world, wanted({"effective": {"on": True}}), FreeView(FreeStatus({"on": 1})))
    assert world.transport.sent[0][2]["status"]["effective"]["on"] is True


@pytest.mark.parametrize("added", [{}, {"phase": "Running"}], ids=["as-wanted", "with-a-default"])
async def test_a_status_that_was_written_is_not_kept_in_memory(world, added):
    """Objects come and go: digests of deleted ones must not accumulate."""
    count, size = 20, 50_000
    writing = writer(world)
    tracemalloc.start()
    for number in range(count):
        one = StatusWrite(object=node_ref(f"n{number}"), status={"volumesInUse": ["x" * size]})
        answer = {"metadata": {"name": f"n{number}"}, "status": {**one.status, **added}}
        world.transport.watch_error["PATCH"] = [Response(200, {}, msgspec.json.encode(answer))]
        (result,) = await writing.write([one], lambda _ref: None, may_write=lambda: True)
        assert result.requests == 1
        world.transport.sent.clear()
        world.written.clear()
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < count * size / 4


async def test_a_field_that_the_server_adds_is_not_fought_over(world):
    made = await world.node("n1")
    writing = writer(world)
    for shown in (lambda: made, lambda: world.written[-1], lambda: world.written[-1]):
        await writing.write(
            [wanted({**made["status"], **WANTED})], lambda _ref, shown=shown: shown(), may_write=lambda: True
        )
    assert "allocatable" in world.written[-1]["status"]
    assert world.transport.count("PATCH") == 1


async def test_an_object_that_the_cache_does_not_have_is_written_all_the_same(world):
    await world.node("n1")
    assert (await write(world, wanted())).requests == 1


async def test_an_object_that_is_gone_needs_no_status(world):
    result = await write(world, wanted())
    assert (result.result, result.message) == (Result.DONE, "the object no longer exists")


async def test_a_conflict_is_read_compared_and_written_again(world):
    made = await world.node("n1")
    await world.client.patch(NODES, "n1", {"metadata": {"labels": {"theirs": "1"}}})
    result = await write(world, wanted(resource_version=made["metadata"]["resourceVersion"]), made)
    assert (result.result, result.requests) == (Result.DONE, 2)
    after = await world.client.get(NODES, "n1")
    assert after["status"]["capacity"] == {"cpu": "4"}
    assert after["metadata"]["labels"] == {"theirs": "1"}


async def test_endless_conflicts_end(world):
    made = await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(409, "Conflict", "moved on")] * 9
    result = await write(world, wanted(), made)
    assert (result.result, result.message, result.requests) == (Result.CONFLICT, "moved on", 4)


async def test_a_status_whose_response_was_lost_is_not_written_twice(world):
    made = await world.node("n1")
    world.transport.watch_error["PATCH"] = [NoAnswer(after_sending=True)]
    # The server sets allocatable from capacity if it is missing.
    result = await write(world, wanted({**made["status"], **WANTED, "allocatable": {"cpu": "4"}}), made)
    assert (result.result, result.requests) == (Result.DONE, 1)


async def test_server_errors_are_retried(world):
    made = await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(429, retry_after=2), status(500)]
    assert (await write(world, wanted(), made)).result is Result.DONE
    assert world.clock.monotonic() >= 2


async def test_another_object_by_that_name_gets_no_status_of_ours(world):
    made = await world.node("n1")
    one = StatusWrite(object=node_ref("n1", uid="00000000-0000-0000-0000-000000000000"), status=WANTED)
    result = await write(world, one, made)
    assert result.result is Result.DONE
    assert "capacity" not in (await world.client.get(NODES, "n1")).get("status", {})


async def test_the_real_servers_way_to_refuse_a_uid_is_understood(world):
    made = await world.node("n1")
    cause = {"reason": "FieldValueInvalid", "field": "metadata.uid", "message": "field is immutable"}
    answer = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "no", "details": {"causes": [cause]}}
    world.transport.watch_error["PATCH"] = [Response(422, {}, msgspec.json.encode(answer))]
    one = StatusWrite(object=node_ref("n1", uid="00000000-0000-0000-0000-000000000000"), status=WANTED)
    assert (await write(world, one, made)).result is Result.DONE


async def test_no_status_is_written_without_the_lease(world):
    made = await world.node("n1")
    result = await write(world, wanted(), made, may_write=lambda: False)
    assert (result.result, result.requests) == (Result.HELD, 0)


async def test_a_denial_is_reported_as_one(world):
    made = await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(403, message='admission webhook "guard" denied the request: no')]
    assert (await write(world, wanted(), made)).result is Result.DENIED


async def test_an_unknown_kind_fails_alone(world):
    await world.node("n1")
    unknown = StatusWrite(object=msgspec.structs.replace(node_ref("x"), kind="Gone"), status=WANTED)
    first, second = await writer(world).write([unknown, wanted()], lambda _ref: None, may_write=lambda: True)
    assert (first.result, second.result) == (Result.FAILED, Result.DONE)


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "found-out"])
async def test_a_kind_without_the_subresource_is_written_through_the_object(world, is_known):
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"plural": "leaves", "singular": "leaf", "kind": "Leaf"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    await world.client.create(CRDS, {"metadata": {"name": "leaves.example.com"}, "spec": spec})
    await settle()
    leaves = untyped("example.com", "v1", "leaves", "Leaf", namespaced=False)
    made = await world.client.create(
        leaves, {"apiVersion": "example.com/v1", "kind": "Leaf", "metadata": {"name": "a"}}
    )
    ref = msgspec.structs.replace(node_ref("a"), api_version="example.com/v1", kind="Leaf")
    one = StatusWrite(object=ref, status={"ready": True}, has_subresource=not is_known)
    statuses = writer(world, lambda *_: leaves)
    (result,) = await statuses.write([one], lambda _ref: made, may_write=lambda: True)
    assert result.result is Result.DONE
    assert (await world.client.get(leaves, "a"))["status"] == {"ready": True}

    world.transport.sent.clear()
    other = msgspec.structs.replace(one, status={"ready": False})
    await statuses.write([other], lambda _ref: world.written[-1], may_write=lambda: True)
    assert [(method, path) for method, path, _ in world.transport.sent] == [("PATCH", "/apis/example.com/v1/leaves/a")]


async def test_a_deleted_object_is_not_mistaken_for_one_without_the_subresource(world):
    statuses = writer(world)
    await statuses.write([wanted()], lambda _ref: None, may_write=lambda: True)
    await world.node("n1")
    await statuses.write([wanted()], lambda _ref: None, may_write=lambda: True)
    assert [path for method, path, _ in world.transport.sent if method == "PATCH"] == ["/api/v1/nodes/n1/status"] * 2


async def test_a_404_of_a_recreated_object_does_not_mean_a_missing_subresource(world):
    made = await world.node("n1")
    statuses = writer(world)
    world.transport.watch_error["PATCH"] = [status(404, "NotFound")]
    for uid in ("of-the-one-before", made["metadata"]["uid"]):
        one = StatusWrite(object=node_ref("n1", uid=uid), status=WANTED)
        await statuses.write([one], lambda _ref: None, may_write=lambda: True)
    assert [path for method, path, _ in world.transport.sent if method == "PATCH"] == ["/api/v1/nodes/n1/status"] * 2


async def test_a_field_that_the_definition_lacks_is_left_out_and_not_sent_for_its_own_sake(world):
    made = await world.node("n1")
    statuses = writer(world)

    async def go(shown, **fields):
        full = {**shown["status"], **fields}
        running = asyncio.ensure_future(statuses.write([wanted(full)], lambda _ref: shown, may_write=lambda: True))
        (result,) = await world.finish(running)
        return result.result, result.requests

    assert await go(made, **WANTED, ours={"zone": 1}) == (Result.DONE, 2)
    kept = world.written[-1]
    assert kept["status"]["capacity"] == {"cpu": "4"}
    assert "ours" not in kept["status"]
    assert await go(kept, ours={"zone": 2}) == (Result.DONE, 0)
    assert await go(kept, ours={"zone": 2}, phase="Running") == (Result.DONE, 1)
    await world.clock.advance(UNKNOWN_FIELDS_RETRY_SECONDS)
    assert await go(kept, ours={"zone": 2}) == (Result.DONE, 0)
    assert await go(kept, ours={"zone": 2}, phase="Pending") == (Result.DONE, 2)
