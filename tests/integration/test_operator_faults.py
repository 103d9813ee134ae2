"""The operator behind a faulty connection converges, and stays converged."""

import pytest
from tests.builders.operators import fleet as fleet_on
from tests.builders.operators import operator, until

from nodeyard.testing.faults import DoubleEvents, Drop, Latency, Status, TruncateEvents

WATCH = "watch=true"


@pytest.fixture
async def fleet(api):
    async with fleet_on(api.kubeconfig) as fleet:
        yield fleet


async def test_watches_that_break_and_repeat_themselves_lose_nothing(api, faults, fleet):
    faults.add(TruncateEvents(), path=WATCH, chance=0.05)
    faults.add(DoubleEvents(), path=WATCH, chance=0.3)
    async with operator(faults.kubeconfig):
        await fleet.add_rule("a", "team0")
        for round in range(3):
            await fleet.add_nodes("a", 5)
            await fleet.are_all(f"team{round}")
            await fleet.change("a", team=f"team{round + 1}")
        await fleet.are_all("team3")


@pytest.mark.parametrize(
    "fault",
    [Status(429, retry_after=1), Status(500), Status(503), Drop(), Drop(after_sending=True), Latency(0.3)],
    ids=["throttled", "error", "unavailable", "cut-before", "answer-lost", "slow"],
)
async def test_failed_writes_are_retried(api, faults, fleet, fault):
    async with operator(faults.kubeconfig):
        await fleet.add_rule("a", "blue")
        rule = faults.add(fault, method="PATCH", path="/nodes/", times=6)
        await fleet.add_nodes("a", 8)
        await fleet.are_all("blue")
        assert rule.hits == 6


async def test_a_conflict_is_planned_again(api, faults, fleet):
    async with operator(faults.kubeconfig):
        await fleet.add_rule("a", "blue")
        rule = faults.add(Status(409), method="PATCH", path="/nodes/", times=10)
        await fleet.add_nodes("a", 4)
        await fleet.are_all("blue")
        assert rule.hits == 10


async def test_a_status_that_could_not_be_written_is_written_later(api, faults, fleet):
    async with operator(faults.kubeconfig):
        rule = faults.add(Status(500), method="PATCH", path="/status", times=6)
        await fleet.add_rule("a", "blue")
        await fleet.add_nodes("a", 2)

        async def is_told():
            return (await fleet.rule("a")).status.labelled == 2

        await until(is_told, "the status says so")
        assert rule.hits == 6
