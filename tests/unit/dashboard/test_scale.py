"""Ten thousand nodes: the snapshot is quick, and an event costs the same as with a hundred."""

import sys
import time
from datetime import UTC, datetime
from random import Random

import msgspec
import pytest
from tests.builders.dashboard import signed_in
from tests.builders.spares import node, spare

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.dashboard.feed import BACKLOG
from nodeyard.dashboard.live import Live
from nodeyard.process.clock import VirtualClock
from nodeyard.runtime.reconcile.plan_executor import InlinePlanExecutor
from nodeyard.watch.informers import InformerFactory

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MANY, FEW = 10_000, 100
EVENTS = 200


class Fleet:
    """A dashboard whose caches are filled without a server."""

    def __init__(self, size):
        clock = VirtualClock()
        watches = InformerFactory(None, clock, Random(1))
        self.live = Live(watches, [SPARES], clock, executor=InlinePlanExecutor())
        (informer,) = self.live.nodes.informers()
        self.cache = informer.cache
        self.cache.replace([spare(f"n{number}", zone="abc"[number % 3]) for number in range(size)], "1")
        self.refresh()

    def refresh(self):
        changed, deleted = self.live.board.refresh(NOW, MANY)
        self.live.feed.publish_nodes(changed, deleted)
        self.live.history.record(NOW.timestamp(), changed, deleted)
        return changed

    def claim(self, number, version):
        claimed = node(f"n{number}", labels={names.TEMPLATE_LABEL: "web"})
        metadata = msgspec.structs.replace(claimed.metadata, resource_version=str(version))
        self.cache.deliver(msgspec.structs.replace(claimed, metadata=metadata))


def calls_of(work):
    """Count the function calls of some work: a measure that the load of the machine does not change."""
    count = 0

    def profile(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def cost_of_events(size):
    fleet = Fleet(size)

    def claim():
        for number in range(EVENTS):
            fleet.claim(number % FEW, 2 + number)
            fleet.refresh()

    return calls_of(claim) / EVENTS


def test_an_event_costs_the_same_however_many_nodes_there_are():
    few, many = cost_of_events(FEW), cost_of_events(MANY)
    assert many == pytest.approx(few, rel=0.1)
    assert many < 400


def test_an_event_contains_only_changes():
    fleet = Fleet(MANY)
    fleet.claim(7, 2)
    (row,) = fleet.refresh()
    assert (row.name, row.state, row.template) == ("n7", "claimed", "web")


async def test_the_snapshot_of_ten_thousand_nodes_takes_less_than_a_second_of_work():
    fleet = Fleet(MANY)
    async with signed_in(feed=fleet.live.feed) as (page, _):
        began = time.process_time()
        snapshot = await page.get("snapshot")
        assert time.process_time() - began < 1.0
        assert len(snapshot["nodes"]["rows"]) == MANY


async def test_streams_that_nobody_reads_keep_no_memory_of_their_own():
    fleet = Fleet(FEW)
    async with signed_in(feed=fleet.live.feed) as (page, feed):
        stream = await page.session.get(f"{page.base}/api/v1/stream")
        await stream.content.readline()
        first = feed.seq
        for _ in range(5000):
            feed.publish_nodes([feed.rows["n1"]], [])
        assert feed.since(first) is None
        assert len(feed.since(feed.seq - BACKLOG)) == BACKLOG
