"""Actions are sent to the cluster that their object names."""

import asyncio

import msgspec
import pytest

from nodeyard.apply.outcome import Result
from nodeyard.apply.writers import Target
from nodeyard.client.api import Client
from nodeyard.client.resources import NODES
from nodeyard.plan.model import Verb, Write
from nodeyard.process.clock import settle

from ...builders.plans import action, node_ref, planned
from .worlds import NoAnswer, World, lookup, patch


@pytest.fixture
async def leaf():
    made = World()
    await made.server.start(controllers=())
    yield made
    await made.server.stop()


class Elsewhere:
    """One leaf, which a test can disconnect; records writes and deletions."""

    def __init__(self, leaf):
        self.written, self.deleted = [], []
        self.why = ""
        self._leaf = leaf
        self.swap(0.0)

    def swap(self, now):
        """Replace the cluster behind the name."""
        self._target = Target(
            Client(self._leaf.transport),
            lookup,
            lambda _resource, answer: self.written.append(answer["metadata"]["name"]),
            lambda _resource, ref: self.deleted.append(str(ref)),
            since=now,
        )

    def __call__(self, cluster):
        if cluster != "leaf-1":
            return "it is not named"
        return self.why or self._target


@pytest.fixture
def elsewhere(world, leaf):
    """Make the leaf known to the world's applier."""
    made = Elsewhere(leaf)
    world.applier = world.applier_with(clusters=made)
    return made


def there(id, verb=Verb.PATCH, cluster="leaf-1", name="n1"):
    return action(id, verb, msgspec.structs.replace(node_ref(name), cluster=cluster))


async def labels(world, name="n1"):
    return (await world.client.get(NODES, name))["metadata"].get("labels", {})


async def test_each_action_goes_to_the_cluster_of_its_object(world, leaf, elsewhere):
    for each in (world, leaf):
        await each.node("n1")
    here, other = patch({"metadata": {"labels": {"mine": "here"}}}), patch({"metadata": {"labels": {"mine": "there"}}})
    plan = planned((action("a", object=node_ref("n1")), here), (there("b"), other))
    outcome = await world.apply(plan)
    assert outcome.is_complete
    assert [(await labels(each))["mine"] for each in (world, leaf)] == ["here", "there"]
    assert elsewhere.written == ["n1"]


async def test_a_remote_deletion_is_passed_to_the_remote_cache(world, leaf, elsewhere):
    await leaf.node("n1")
    await world.node("n1")
    outcome = await world.apply(planned((there("a", Verb.DELETE), Write())))
    assert outcome.is_complete
    assert elsewhere.deleted == ["Node leaf-1:n1"]
    assert await labels(world) == {}


@pytest.mark.parametrize(
    ("cluster", "why", "says"),
    [
        ("leaf-1", "connection refused", "cluster leaf-1 is not connected: connection refused"),
        ("leaf-2", "", "cluster leaf-2 is not connected: it is not named"),
    ],
    ids=["out-of-reach", "unknown"],
)
async def test_an_action_on_a_cluster_out_of_reach_fails_with_the_reason(world, elsewhere, cluster, why, says):
    await world.node("n1")
    elsewhere.why = why
    plan = planned((there("a", cluster=cluster), patch()), (action("b", object=node_ref("n1")), patch()))
    outcome = await world.apply(plan)
    failed, done = outcome.results
    assert (failed.result, failed.message) == (Result.FAILED, says)
    assert done.result is Result.DONE


async def test_without_remote_clusters_nothing_is_sent_to_our_own_by_mistake(world):
    await world.node("n1")
    outcome = await world.apply(planned((there("a"), patch())))
    [result] = outcome.results
    assert result.result is Result.FAILED
    assert world.transport.count("PATCH") == 0


async def test_a_lost_answer_is_confirmed_by_a_get_in_that_cluster(world, leaf, elsewhere):
    await leaf.node("n1")
    leaf.transport.watch_error["PATCH"] = [NoAnswer(after_sending=True)]
    outcome = await world.apply(planned((there("a"), patch())))
    assert outcome.is_complete
    assert [method for method, path, _ in leaf.transport.sent if path.endswith("/n1")] == ["PATCH", "GET"]
    assert world.transport.count("GET") == 0


async def test_a_connection_lost_between_two_attempts_ends_the_action(world, leaf, elsewhere):
    await leaf.node("n1")
    leaf.transport.watch_error["PATCH"] = [NoAnswer(after_sending=False, may_have_run=False)] * 9
    leaf.transport.before = lambda _method, _path: setattr(elsewhere, "why", "gone")
    outcome = await world.apply(planned((there("a"), patch())))
    [result] = outcome.results
    assert (result.result, result.message) == (Result.FAILED, "cluster leaf-1 is not connected: gone")
    assert leaf.transport.count("PATCH") == 1


async def test_a_plan_is_not_sent_to_a_cluster_that_was_swapped_since_its_snapshot(world, leaf, elsewhere):
    await leaf.node("n1")
    elsewhere.swap(5.0)
    early = await world.apply(planned((there("a"), patch())), seen_at=4.0)
    [result] = early.results
    assert (result.result, result.message) == (
        Result.HELD,
        "cluster leaf-1 may have been replaced since this was planned",
    )
    assert leaf.transport.sent == []
    assert (await world.apply(planned((there("a"), patch())), seen_at=5.0)).is_complete


async def test_a_waiting_write_is_not_sent_to_a_swapped_cluster(world, leaf, elsewhere):
    await leaf.node("n1")
    leaf.transport.turn = asyncio.Event()
    plan = planned((there("a"), patch()))
    running = asyncio.ensure_future(world.applier.apply(plan, may_write=lambda: True, seen_at=4.0))
    await settle()
    elsewhere.swap(5.0)
    leaf.transport.turn.set()
    [result] = (await running).results
    assert result.result is Result.HELD
    assert leaf.transport.sent == []
