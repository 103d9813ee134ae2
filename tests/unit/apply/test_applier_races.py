"""Another writer adds taints between our read and our write: none of its taints is lost."""

import asyncio

import pytest

from nodeyard.apply.outcome import Result
from nodeyard.client.errors import Conflict
from nodeyard.client.resources import NODES
from nodeyard.kube.taints import taints_of

from ...builders.plans import action, node_ref, planned
from .worlds import NoAnswer, patch

OURS = {"key": "example.com/ours", "effect": "NoSchedule"}
NODE_COUNT = 8


def claim(node):
    """Plan a patch of one node: its taints and ours, bound to its uid and version."""
    metadata = node["metadata"]
    write = patch({"spec": {"taints": [*taints_of(node), OURS]}}, resource_version=metadata["resourceVersion"])
    return action(metadata["name"], object=node_ref(metadata["name"], metadata["uid"])), write


async def add_foreign(world, name, key):
    while True:
        node = await world.client.get(NODES, name)
        taints = [*taints_of(node), {"key": key, "effect": "NoSchedule"}]
        metadata = {"resourceVersion": node["metadata"]["resourceVersion"]}
        try:
            await world.client.patch(NODES, name, {"metadata": metadata, "spec": {"taints": taints}})
            return
        except Conflict:
            continue


@pytest.mark.parametrize("lost_answers", [0, 5], ids=["all answers", "some answers lost"])
async def test_no_foreign_taint_is_lost_and_ours_is_added(world, lost_answers):
    names = [f"n{number}" for number in range(NODE_COUNT)]
    for name in names:
        await world.node(name)
    world.transport.watch_error["PATCH"] = [NoAnswer(after_sending=bool(n % 2)) for n in range(lost_answers)]
    writers, conflicts = [], 0
    for turn in range(4):
        nodes = (await world.client.list(NODES)).items
        todo = [claim(node) for node in nodes if OURS["key"] not in str(taints_of(node))]
        for name in names[turn::2]:
            writers.append(asyncio.ensure_future(add_foreign(world, name, f"example.com/foreign-{turn}")))
            if turn < 2:
                await writers[-1]
        outcome = await world.apply(planned(*todo))
        conflicts += sum(each.result is Result.CONFLICT for each in outcome.results)
    await asyncio.gather(*writers)
    assert conflicts >= NODE_COUNT // 2
    for node in (await world.client.list(NODES)).items:
        keys = {taint["key"] for taint in taints_of(node)}
        number = int(node["metadata"]["name"][1:])
        foreign = {f"example.com/foreign-{turn}" for turn in range(4) if number >= turn and (number - turn) % 2 == 0}
        assert keys - {"node.kubernetes.io/not-ready"} == foreign | {OURS["key"]}


@pytest.mark.parametrize(
    "body",
    [{"spec": {"taints": [OURS]}}, {"metadata": {"finalizers": None}}, {"metadata": {"ownerReferences": []}}],
    ids=["taints", "finalizers", "owners"],
)
async def test_a_patch_of_an_atomic_list_is_not_sent_without_a_precondition(world, body):
    await world.node("n1")
    (result,) = (await world.apply(planned((action("n1"), patch(body))))).results
    assert result.result is Result.FAILED
    assert "needs a resourceVersion" in result.message
    assert world.transport.sent == []


def two_steps(node):
    """Plan two successive patches of one node, both bound to the read version."""
    name, uid, version = (node["metadata"][key] for key in ("name", "uid", "resourceVersion"))
    marked = patch({"metadata": {"annotations": {"step": "first"}}}, resource_version=version)
    tainted = patch({"spec": {"taints": [*taints_of(node), OURS]}}, resource_version=version)
    ref = node_ref(name, uid)
    return planned((action("first", object=ref), marked), (action("second", object=ref, after=("first",)), tainted))


async def test_a_following_write_uses_the_version_of_the_previous_one(world):
    outcome = await world.apply(two_steps(await world.node("n1")))

    assert [each.result for each in outcome.results] == [Result.DONE, Result.DONE]
    assert OURS in taints_of(await world.client.get(NODES, "n1"))


async def test_a_concurrent_foreign_write_is_still_a_conflict(world):
    plan = two_steps(await world.node("n1"))
    world.transport.after["PATCH"] = [lambda: add_foreign(world, "n1", "example.com/foreign")]

    outcome = await world.apply(plan)

    assert [each.result for each in outcome.results] == [Result.DONE, Result.CONFLICT]
    assert OURS not in taints_of(await world.client.get(NODES, "n1"))


async def test_a_version_read_by_a_confirming_get_is_not_used_for_the_next_write(world):
    """Others may write between our write and our read."""
    plan = two_steps(await world.node("n1"))
    world.transport.watch_error["PATCH"] = [NoAnswer(after_sending=True)]

    outcome = await world.apply(plan)

    assert [each.result for each in outcome.results] == [Result.DONE, Result.CONFLICT]
