"""Profiles on a real kube-apiserver: cost of editing a node and of editing a role.

node edit   single nodes choose another profile, one after another, in a fleet of 1,000 and then of 5,000: the cost of
            one edit must not grow with the fleet. Medians of three series of edits.
role edit   one of 20 roles of 5,000 nodes chooses another profile with maxUnavailable 100 %: one write each for service
            object, configuration and status of each affected node, none for other nodes. The operator is compared with
            its ceiling: its recorded writes, replayed raw at the same concurrency on the same objects, which are
            restored before. An independent watch on nodes takes the time in both cases, from the edit (the first
            replayed write) to the last status. The role is changed to the second profile and back; the mean counts.

Admission webhooks are off, because the ceiling has none.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from bench import profiles_fleet as fleet
from bench.harness import Contestant, Numbers, Requirement, Result, compare
from bench.load import Call, connect
from bench.operator import Operator, run_operator
from bench.profiles_fleet import FIRST, SECOND, Cost
from bench.replay import Replay, drop_preconditions, replayer
from bench.servers import RunningServer, cpu_seconds, install_crds, real
from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.client.flow_control import IN_FLIGHT

OPERATOR = "operator"
CEILING = "ceiling"
SMALL, LARGE = 1_000, 5_000
ROLES = 20
EDITED_ROLE = 7
EDITS = 50
SERIES = 3
ROUNDS = 9
TIMEOUT_SECONDS = 900.0

SECONDS = "seconds until all affected nodes report"
COMPUTES = "writes of service objects per affected node"
CONFIGURATIONS = "writes of configurations per affected node"
STATUSES = "writes of node statuses per affected node"
PROFILE_STATUSES = "status writes of profiles and roles"
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
    with _fleet() as env:
        yield _node_edits(env, small, large)
        yield _role_edits(env, large, rounds)


def _node_edits(env: Environment, small: int, large: int) -> Result:
    few, many = f"{small:,} nodes", f"{large:,} nodes"
    return compare(
        "profiles-node-edit",
        [
            Contestant(few, lambda: env.run(lambda session: _edit_nodes(env, session, small))),
            Contestant(many, lambda: env.run(lambda session: _edit_nodes(env, session, large))),
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


def _role_edits(env: Environment, nodes: int, rounds: int) -> Result:
    sent = Sent()
    return compare(
        f"profiles-role-edit-{nodes}",
        [
            Contestant(OPERATOR, lambda: env.run(lambda session: _edit_role(env, session, sent))),
            Contestant(CEILING, lambda: env.run(lambda session: _replay_role(env, session, sent))),
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
    """The operator's writes of the latest change to the second profile, and of the change back."""

    there: Sequence[Call] = field(default_factory=list)
    back: Sequence[Call] = field(default_factory=list)


@dataclass
class Environment:
    """One server for all rounds. Between measurements all nodes have the first profile."""

    server: RunningServer
    nodes: int = 0

    def run(self, work: Callable[[aiohttp.ClientSession], Coroutine[Any, Any, Numbers]]) -> Numbers:
        async def connected() -> Numbers:
            async with connect(self.server.target, fleet.IN_FLIGHT + 8) as session:
                return await work(session)

        return asyncio.run(connected())

    @property
    def affected(self) -> list[str]:
        return fleet.members(EDITED_ROLE, range(self.nodes), ROLES)


# runs


async def _edit_nodes(env: Environment, session: aiohttp.ClientSession, nodes: int) -> Numbers:
    """Return medians of several series, because a full garbage collection falls into one of them."""
    with run_operator(env.server.kubeconfig, names.CAPABILITY) as operator:
        await _bring_up(env, session, operator, nodes)
        series = [await _edit_series(session, operator, range(first, nodes, nodes // EDITS)) for first in range(SERIES)]
    return {name: statistics.median(each[name] for each in series) for name in series[0]}


async def _edit_series(session: aiohttp.ClientSession, operator: Operator, numbers: Sequence[int]) -> Numbers:
    edited = [fleet.node_name(number) for number in numbers[:EDITS]]
    known, before, cpu = len(await operator.recorded_writes()), operator.counters(), operator.cpu_seconds()
    waits = [await _edit_node(session, name) for name in edited]
    await _wait_until_idle(operator)
    after, cpu = operator.counters(), operator.cpu_seconds() - cpu
    cost = Cost.of((await operator.recorded_writes())[known:], edited)
    for name in edited:
        await fleet.set_profile(session, fleet.node_path(name), None)
    await _wait_until_idle(operator)
    return {
        PLANS_PER_EDIT: (after.plans - before.plans) / EDITS,
        WRITES_PER_EDIT: (after.writes - before.writes) / EDITS,
        CPU_PER_EDIT: cpu / EDITS * 1000,
        MEDIAN: statistics.median(waits) * 1000,
        SLOWEST: max(waits) * 1000,
        PROFILE_STATUSES: cost.profile_statuses,
        EVENTS: cost.events,
        OTHERS: cost.others,
    }


async def _edit_node(session: aiohttp.ClientSession, name: str) -> float:
    async with fleet.observe_changes(session, fleet.COMPUTES) as changed:
        began = time.perf_counter()
        await fleet.set_profile(session, fleet.node_path(name), SECOND)
        return await changed.wait_for(1) - began


async def _edit_role(env: Environment, session: aiohttp.ClientSession, sent: Sent) -> Numbers:
    await fleet.delete_events(session)
    with run_operator(env.server.kubeconfig, names.CAPABILITY) as operator:
        await _wait_until_idle(operator)
        there, sent.there = await _choose(env, session, operator, SECOND)
        back, sent.back = await _choose(env, session, operator, FIRST)
        peak = operator.peak_mb()
    return _mean(there, back) | {MEMORY: peak}


async def _choose(
    env: Environment, session: aiohttp.ClientSession, operator: Operator, profile: str
) -> tuple[Numbers, Sequence[Call]]:
    """Change the role's profile; return the metrics and the writes."""
    known = len(await operator.recorded_writes())
    await fleet.collect_garbage(session)
    async with fleet.observe_changes(session, fleet.NODES) as changed:
        server_cpu = cpu_seconds(env.server.processes)
        cpu, began = operator.cpu_seconds(), time.perf_counter()
        await fleet.set_profile(session, fleet.role_path(EDITED_ROLE), profile)
        ended = await changed.wait_for(len(env.affected))
        server_cpu = cpu_seconds(env.server.processes) - server_cpu
        await _wait_until_idle(operator)
    cpu = operator.cpu_seconds() - cpu
    calls = (await operator.recorded_writes())[known:]
    return _numbers(ended - began, calls, env.affected) | {CPU: cpu, SERVER_CPU: server_cpu}, calls


async def _replay_role(env: Environment, session: aiohttp.ClientSession, sent: Sent) -> Numbers:
    with replayer() as replay:
        there = await _replay(env, session, replay, SECOND, list(map(drop_preconditions, sent.there)))
        back = await _replay(env, session, replay, FIRST, list(map(drop_preconditions, sent.back)))
    return _mean(there, back) | {MEMORY: back[MEMORY]}


async def _replay(
    env: Environment, session: aiohttp.ClientSession, replay: Replay, profile: str, calls: Sequence[Call]
) -> Numbers:
    await fleet.delete_events(session)
    await fleet.set_profile(session, fleet.role_path(EDITED_ROLE), profile)
    await fleet.collect_garbage(session)
    async with fleet.observe_changes(session, fleet.NODES) as changed:
        server_cpu = cpu_seconds(env.server.processes)
        replayed = await asyncio.to_thread(replay, env.server.target, calls, IN_FLIGHT)
        ended = await changed.wait_for(len(env.affected))
        server_cpu = cpu_seconds(env.server.processes) - server_cpu
    cost = {CPU: replayed.cpu_seconds, SERVER_CPU: server_cpu, MEMORY: replayed.peak_mb}
    return _numbers(ended - replayed.began, calls, env.affected) | cost


def _mean(there: Numbers, back: Numbers) -> Numbers:
    return {name: statistics.mean((there[name], back[name])) for name in there}


def _numbers(seconds: float, calls: Sequence[Call], affected: Sequence[str]) -> Numbers:
    cost, count = Cost.of(calls, affected), len(affected)
    return {
        SECONDS: seconds,
        COMPUTES: cost.computes / count,
        CONFIGURATIONS: cost.configurations / count,
        STATUSES: cost.statuses / count,
        PROFILE_STATUSES: cost.profile_statuses,
        EVENTS: cost.events,
        OTHERS: cost.others,
    }


# setup


@contextmanager
def _fleet() -> Iterator[Environment]:
    with real() as server:
        env = Environment(server)
        asyncio.run(install_crds(server, PROFILES))
        yield env


async def _bring_up(env: Environment, session: aiohttp.ClientSession, operator: Operator, nodes: int) -> None:
    """Add nodes up to this number and report their configuration as deployed."""
    print(f"profiles: bringing up {nodes - env.nodes:,} nodes", file=sys.stderr)
    if not env.nodes:
        await fleet.create_profiles_and_roles(session, ROLES)
    async with fleet.observe_changes(session, fleet.COMPUTES) as made:
        await fleet.fill(session, range(env.nodes, nodes), ROLES)
        await made.wait_for(nodes - env.nodes, TIMEOUT_SECONDS)
    env.nodes = nodes
    await _wait_until_idle(operator)
    await fleet.report_all(session)
    await _wait_until_idle(operator)


async def _wait_until_idle(operator: Operator) -> None:
    """Wait until two seconds pass without a write or plan."""
    async with asyncio.timeout(TIMEOUT_SECONDS):
        before, quiet_seconds = (-1.0, -1.0), 0
        while quiet_seconds < 2:
            await asyncio.sleep(1)
            counters = operator.counters()
            current = (counters.writes, counters.plans)
            quiet_seconds = quiet_seconds + 1 if current == before else 0
            before = current
