"""Profiles on a real kube-apiserver: what the edit of a role costs, and what that of a node does.

node edit   nodes choose another profile for themselves, one after another, in a fleet of 1,000 and then of 5,000: the
            work for one must not grow with the fleet. Medians of three series of edits.
role edit   one of 20 roles of 5,000 nodes chooses another profile, all of which may be disturbed at once: one write for
            each concerned node's service object, configuration and status, none for the other nodes. Beside the
            operator stands its ceiling: the very bodies it sent, replayed raw at the same concurrency on the same
            objects, which were brought back before. The time is taken by another watcher of nodes, which both have
            alike, from the edit (the first body) to the last status it sees: on the way there and on the way back, and
            the mean of both counts.

Admission webhooks are off: nobody is there to answer for the ceiling.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench import profiles_fleet as fleet
from bench.harness import Contestant, Numbers, Requirement, Result, compete
from bench.load import Call, session
from bench.operator import Operator, operator
from bench.profiles_fleet import FIRST, SECOND, Cost
from bench.replay import Replay, replayer, unbound
from bench.servers import Running, cpu_seconds, real
from nodeyard.apply.applier import IN_FLIGHT
from nodeyard.capabilities.profiles import names

OPERATOR = "operator"
CEILING = "ceiling"
SMALL, LARGE = 1_000, 5_000
ROLES = 20
EDITED_ROLE = 7
EDITS = 50
SERIES = 3
ROUNDS = 9
PATIENCE_SECONDS = 900.0

SECONDS = "seconds until all concerned nodes report"
COMPUTES = "writes of service objects per concerned node"
CONFIGURATIONS = "writes of configurations per concerned node"
STATUSES = "writes of node statuses per concerned node"
MEMBERSHIPS = "status writes of profiles and roles"
EVENTS = "event writes"
OTHERS = "writes of anything else"
CPU = "CPU seconds"
SERVER_CPU = "CPU seconds of the server meanwhile"
MEMORY = "peak memory, MB"

PLANS_PER_EDIT = "plans per edit"
WRITES_PER_EDIT = "writes per edit"
CPU_PER_EDIT = "CPU per edit, ms"
MEDIAN, SLOWEST = (f"from the edit to the service object, {each}, ms" for each in ("median", "slowest"))


def run(small: int = SMALL, large: int = LARGE, rounds: int = ROUNDS) -> Iterator[Result]:
    with _fleet() as world:
        yield _node_edits(world, small, large)
        yield _role_edits(world, large, rounds)


def _node_edits(world: World, small: int, large: int) -> Result:
    few, many = f"{small:,} nodes", f"{large:,} nodes"
    return compete(
        "profiles-node-edit",
        [
            Contestant(few, lambda: world.run(lambda opened: _edit_nodes(world, opened, small))),
            Contestant(many, lambda: world.run(lambda opened: _edit_nodes(world, opened, large))),
        ],
        requirements=[
            Requirement(PLANS_PER_EDIT, many, few, at_most=1.1),
            Requirement(WRITES_PER_EDIT, many, few, at_most=1.1),
            Requirement(CPU_PER_EDIT, many, few, at_most=1.25),
            Requirement(OTHERS, many, at_most=0),
        ],
        rounds=1,
        warm_up=False,
    )


def _role_edits(world: World, nodes: int, rounds: int) -> Result:
    sent = Sent()
    return compete(
        f"profiles-role-edit-{nodes}",
        [
            Contestant(OPERATOR, lambda: world.run(lambda opened: _edit_role(world, opened, sent))),
            Contestant(CEILING, lambda: world.run(lambda opened: _replay_role(world, opened, sent))),
        ],
        requirements=[
            Requirement(SECONDS, OPERATOR, CEILING, at_most=1.25),
            *(Requirement(each, OPERATOR, at_least=1, at_most=1) for each in (COMPUTES, CONFIGURATIONS, STATUSES)),
            Requirement(OTHERS, OPERATOR, at_most=0),
        ],
        rounds=rounds,
        warm_up=False,
    )


@dataclass
class Sent:
    """What the operator wrote when a role last went over to the second profile, and when it came back."""

    there: Sequence[Call] = field(default_factory=list)
    back: Sequence[Call] = field(default_factory=list)


@dataclass
class World:
    """One server over all rounds; its nodes have the first profile whenever nothing is measured."""

    server: Running
    nodes: int = 0

    def run(self, work: Callable[[aiohttp.ClientSession], Coroutine[Any, Any, Numbers]]) -> Numbers:
        async def connected() -> Numbers:
            async with session(self.server.target, fleet.IN_FLIGHT + 8) as opened:
                return await work(opened)

        return asyncio.run(connected())

    @property
    def concerned(self) -> list[str]:
        return fleet.members(EDITED_ROLE, range(self.nodes), ROLES)


# one run of each


async def _edit_nodes(world: World, opened: aiohttp.ClientSession, nodes: int) -> Numbers:
    """The median of several series: a full pass of the garbage collector falls into one of them, not into most."""
    with _operator(world.server) as running:
        await _grow(world, opened, running, nodes)
        series = [await _edit_series(opened, running, range(first, nodes, nodes // EDITS)) for first in range(SERIES)]
    return {name: statistics.median(each[name] for each in series) for name in series[0]}


async def _edit_series(opened: aiohttp.ClientSession, running: Operator, numbers: Sequence[int]) -> Numbers:
    edited = [fleet.node_name(number) for number in numbers[:EDITS]]
    known, before, cpu = len(await running.written()), running.counters(), running.cpu_seconds()
    waits = [await _edit_node(opened, name) for name in edited]
    await _settle(running)
    after, cpu = running.counters(), running.cpu_seconds() - cpu
    cost = Cost.of((await running.written())[known:], edited)
    for name in edited:
        await fleet.choose(opened, fleet.node_path(name), None)
    await _settle(running)
    return {
        PLANS_PER_EDIT: (after.plans - before.plans) / EDITS,
        WRITES_PER_EDIT: (after.writes - before.writes) / EDITS,
        CPU_PER_EDIT: cpu / EDITS * 1000,
        MEDIAN: statistics.median(waits) * 1000,
        SLOWEST: max(waits) * 1000,
        MEMBERSHIPS: cost.memberships,
        EVENTS: cost.events,
        OTHERS: cost.others,
    }


async def _edit_node(opened: aiohttp.ClientSession, name: str) -> float:
    async with fleet.changes(opened, fleet.COMPUTES) as changed:
        began = time.perf_counter()
        await fleet.choose(opened, fleet.node_path(name), SECOND)
        return await changed.reach(1) - began


async def _edit_role(world: World, opened: aiohttp.ClientSession, sent: Sent) -> Numbers:
    await fleet.forget_events(opened)
    with _operator(world.server) as running:
        await _settle(running)
        there, sent.there = await _choose(world, opened, running, SECOND)
        back, sent.back = await _choose(world, opened, running, FIRST)
        peak = running.peak_mb()
    return _mean(there, back) | {MEMORY: peak}


async def _choose(
    world: World, opened: aiohttp.ClientSession, running: Operator, profile: str
) -> tuple[Numbers, Sequence[Call]]:
    """One way, and what was written for it."""
    known = len(await running.written())
    await fleet.collect_garbage(opened)
    async with fleet.changes(opened, fleet.NODES) as changed:
        server_cpu = cpu_seconds(world.server.processes)
        cpu, began = running.cpu_seconds(), time.perf_counter()
        await fleet.choose(opened, fleet.role_path(EDITED_ROLE), profile)
        ended = await changed.reach(len(world.concerned))
        server_cpu = cpu_seconds(world.server.processes) - server_cpu
        await _settle(running)
    cpu = running.cpu_seconds() - cpu
    calls = (await running.written())[known:]
    return _numbers(ended - began, calls, world.concerned) | {CPU: cpu, SERVER_CPU: server_cpu}, calls


async def _replay_role(world: World, opened: aiohttp.ClientSession, sent: Sent) -> Numbers:
    with replayer() as replay:
        there = await _replay(world, opened, replay, SECOND, list(map(unbound, sent.there)))
        back = await _replay(world, opened, replay, FIRST, list(map(unbound, sent.back)))
    return _mean(there, back) | {MEMORY: back[MEMORY]}


async def _replay(
    world: World, opened: aiohttp.ClientSession, replay: Replay, profile: str, calls: Sequence[Call]
) -> Numbers:
    await fleet.forget_events(opened)
    await fleet.choose(opened, fleet.role_path(EDITED_ROLE), profile)
    await fleet.collect_garbage(opened)
    async with fleet.changes(opened, fleet.NODES) as changed:
        server_cpu = cpu_seconds(world.server.processes)
        replayed = await asyncio.to_thread(replay, world.server.target, calls, IN_FLIGHT)
        ended = await changed.reach(len(world.concerned))
        server_cpu = cpu_seconds(world.server.processes) - server_cpu
    cost = {CPU: replayed.cpu_seconds, SERVER_CPU: server_cpu, MEMORY: replayed.peak_mb}
    return _numbers(ended - replayed.began, calls, world.concerned) | cost


def _mean(there: Numbers, back: Numbers) -> Numbers:
    return {name: statistics.mean((there[name], back[name])) for name in there}


def _numbers(seconds: float, calls: Sequence[Call], concerned: Sequence[str]) -> Numbers:
    cost, count = Cost.of(calls, concerned), len(concerned)
    return {
        SECONDS: seconds,
        COMPUTES: cost.computes / count,
        CONFIGURATIONS: cost.configurations / count,
        STATUSES: cost.statuses / count,
        MEMBERSHIPS: cost.memberships,
        EVENTS: cost.events,
        OTHERS: cost.others,
    }


# around them


@contextmanager
def _fleet() -> Iterator[World]:
    with real() as server:
        world = World(server)
        asyncio.run(fleet.install(server))
        yield world


async def _grow(world: World, opened: aiohttp.ClientSession, running: Operator, nodes: int) -> None:
    """Up to this many nodes, all of which run what they were told."""
    print(f"profiles: bringing up {nodes - world.nodes:,} nodes", file=sys.stderr)
    if not world.nodes:
        await fleet.found(opened, ROLES)
    async with fleet.changes(opened, fleet.COMPUTES) as made:
        await fleet.fill(opened, range(world.nodes, nodes), ROLES)
        await made.reach(nodes - world.nodes, PATIENCE_SECONDS)
    world.nodes = nodes
    await _settle(running)
    await fleet.report(opened)
    await _settle(running)


@contextmanager
def _operator(server: Running) -> Iterator[Operator]:
    with (
        tempfile.TemporaryDirectory() as folder,
        operator(server.kubeconfig, Path(folder), names.CAPABILITY) as running,
    ):
        yield running


async def _settle(running: Operator) -> None:
    """Until two seconds have passed without a write or a plan."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        before, min_interval = (-1.0, -1.0), 0
        while min_interval < 2:
            await asyncio.sleep(1)
            counters = running.counters()
            current = (counters.writes, counters.plans)
            min_interval = min_interval + 1 if current == before else 0
            before = current
