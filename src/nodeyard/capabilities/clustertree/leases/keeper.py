"""Looks after one leaf: asks it every ten seconds whether it lives, and keeps the leases of its nodes fresh meanwhile.

Nothing here waits for another leaf: each has a task, connections and a moment in the period of its own. What goes to
the root is bounded by the connections that all share, and taken in turns, so that a leaf of a thousand nodes does not
stand before one of ten. A round ends when the next is due, whatever the root has not answered by then; the leases that
are oldest go first, so that none is always the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.briefs import Brief, LeaseNode
from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics, Result
from nodeyard.capabilities.clustertree.leases.node_lease import NodeLease
from nodeyard.capabilities.clustertree.leases.probe import Probe
from nodeyard.capabilities.clustertree.leases.rounds import PERIOD_SECONDS, next_round
from nodeyard.capabilities.clustertree.liveness import Failed, Finding, Health
from nodeyard.process.logs import get_logger
from nodeyard.runtime.leader import first_of
from nodeyard.runtime.loops import LoopContext

IN_FLIGHT: Final = 32
"""Renewals of one leaf at once, at most: as many as the connections to the root let through of all leaves together."""
SAMPLE: Final = 4
"""Leases that are looked at in a round while we may not write: enough to see whether somebody else renews them."""
LATE: Final = "the root did not answer before the round was over"

_log = get_logger("leases")


class Keeper:
    def __init__(self, context: LoopContext, brief: Brief, metrics: LeaseMetrics | None = None) -> None:
        self._context = context
        self._clock = context.clock
        self._client = context.client.managed_by(names.MANAGER)
        self._metrics = metrics
        self._name = brief.cluster
        self._brief = brief
        self._used = b""
        """The kubeconfig that was last probed with."""
        self._wake = asyncio.Event()
        self._probe = Probe(brief.cluster, context.connect, self._clock)
        self._health = _first_health(brief, self._clock.now())
        self._skew = 0.0
        self._leases: Mapping[str, NodeLease] = {}
        """By node. Replaced, never changed: metrics look at it from another thread."""
        self._began = self._clock.monotonic()
        self._contact_at = self._began
        self._renewed_at: datetime | None = None
        self._published: Finding | None = None
        self._take_on(brief)

    def give(self, brief: Brief) -> None:
        """The brief as it is now."""
        if brief != self._brief:
            self._brief = brief
            self._take_on(brief)
            self._wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        is_early = False
        try:
            while True:
                began = self._clock.monotonic()
                try:
                    await self._round(began, is_early=is_early)
                except Exception:
                    # A fault of ours; the other leaves, and the next round, are not to suffer from it.
                    _log.exception("round failed", cluster=self._name)
                is_early = await self._rest(next_round(self._name, began))
        finally:
            await self._probe.close()

    def contact_age(self) -> float:
        """Seconds since it last answered, or since we began to ask; any thread."""
        return self._clock.monotonic() - self._contact_at

    def lease_age(self) -> float:
        """Seconds since the longest that a live node's lease was not renewed, or since we began; any thread."""
        now, leases, nodes = self._clock.monotonic(), self._leases, self._brief.nodes
        live = [leases[each.name].renewed_at for each in _alive(nodes) if each.name in leases]
        return max((now - (self._began if renewed is None else renewed) for renewed in live), default=0.0)

    # rounds

    async def _round(self, began: float, *, is_early: bool) -> None:
        brief = self._brief
        self._used = brief.kubeconfig
        reading = await self._probe.ask(brief.kubeconfig)
        if is_early and isinstance(reading.answer, Failed):
            # Counted when its time comes: three kubeconfigs in a second are not half a minute without an answer.
            return
        before = self._health
        self._health = before.after(reading.answer, self._clock.now(), brief.credential_grace)
        if not isinstance(reading.answer, Failed):
            self._contact_at = self._clock.monotonic()
        if reading.skew_seconds is not None:
            self._skew = reading.skew_seconds
        self._tell(before)
        if self._health.may_renew:
            now, nodes = self._clock.now(), _alive(self._brief.nodes)
            if await self._renew(nodes, began + PERIOD_SECONDS):
                self._renewed_at = now if nodes else None
        self._report()

    async def _rest(self, due: float) -> bool:
        """Until the next round is due, or before that a new kubeconfig is there to be tried: whether it is early.

        New nodes get their leases meanwhile."""
        while (left := due - self._clock.monotonic()) > 0:
            self._wake.clear()
            await first_of(self._wake.wait(), self._clock.sleep(left))
            if self._brief.kubeconfig != self._used:
                return True
            fresh = [each for each in _alive(self._brief.nodes) if self._leases[each.name].renewed_at is None]
            if fresh and self._wake.is_set() and self._health.may_renew:
                now = self._clock.now()
                if await self._renew(fresh, due):
                    # Of the others the last round tells.
                    self._renewed_at = self._renewed_at or now
                self._report()
        return False

    # leases

    def _take_on(self, brief: Brief) -> None:
        known = self._leases
        self._leases = {each.name: known.get(each.name) or self._lease(each) for each in brief.nodes}

    def _lease(self, node: LeaseNode) -> NodeLease:
        return NodeLease(node.name, self._client, self._clock, is_foreign=not node.is_adopted)

    async def _renew(self, nodes: Iterable[LeaseNode], until: float) -> bool:
        """These, the oldest first, as far as there is time; whether all of them are."""
        gate, leases = self._context.gate_of(self._name), self._leases
        if not gate.may_write():
            await self._look(until)
            return False
        order = sorted(nodes, key=lambda each: leases[each.name].renewed_at or 0.0)
        for each in order:
            leases[each.name].error = LATE
        waiting = iter(order)

        async def work() -> None:
            for each in waiting:
                if not gate.may_write():
                    return
                await self._renew_one(leases[each.name], each.uid)

        workers = asyncio.gather(*(work() for _ in range(min(IN_FLIGHT, len(order)))))
        await first_of(workers, self._clock.sleep(until - self._clock.monotonic()))
        errors = [leases[each.name].error for each in order]
        self._count(Result.FAILED, errors.count(LATE))
        return not any(errors)

    async def _renew_one(self, lease: NodeLease, uid: str) -> None:
        """Its trouble is its own."""
        try:
            is_new = await lease.renew(uid)
            lease.error = ""
            if is_new is None:
                return
            result = Result.CREATED if is_new else Result.RENEWED
        except Exception as error:
            result = Result.FAILED
            lease.error = str(error) or type(error).__name__
        self._count(result)

    async def _look(self, until: float) -> None:
        """We only observe: is it still somebody else who renews them?"""
        sample = sorted(self._leases.values(), key=lambda lease: not lease.is_foreign)[:SAMPLE]
        looking = asyncio.gather(*(lease.look() for lease in sample), return_exceptions=True)
        await first_of(looking, self._clock.sleep(until - self._clock.monotonic()))
        for lease in self._leases.values():
            lease.error = ""

    def _count(self, result: Result, times: int = 1) -> None:
        if self._metrics is not None and times:
            self._metrics.count(self._name, result, times)

    # telling

    def _report(self) -> None:
        health, leases = self._health, self._leases
        live = {each.name for each in _alive(self._brief.nodes)} if health.may_renew else set()
        finding = Finding(
            state=health.state,
            since=health.since,
            last_contact=health.last_contact,
            message=health.message,
            skew_seconds=self._skew,
            renewed_at=self._renewed_at,
            failed=tuple((node, lease.error) for node, lease in leases.items() if lease.error and node in live),
            moved=tuple(node for node, lease in leases.items() if lease.is_moved),
            is_rejected=health.is_rejected,
            rejected_since=health.rejected_since,
        )
        is_news = finding.is_news(self._published)
        self._published = finding
        self._context.publish(names.finding(self._name), finding, (self._name,) if is_news else ())

    def _tell(self, before: Health) -> None:
        health = self._health
        if health.state is before.state and health.is_rejected == before.is_rejected:
            return
        say = _log.info if not health.message else _log.warning
        say("leaf is " + health.state.value, cluster=self._name, reason=health.message or "it answers")


def _first_health(brief: Brief, now: datetime) -> Health:
    if brief.is_given_up:
        return Health.given_up(now, is_rejected=brief.is_rejected, rejected_since=brief.rejected_since)
    return Health.new(now, rejected_since=brief.rejected_since)


def _alive(nodes: Iterable[LeaseNode]) -> list[LeaseNode]:
    return [each for each in nodes if each.is_alive]
