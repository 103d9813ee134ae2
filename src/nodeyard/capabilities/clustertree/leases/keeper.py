"""Keeps the node leases of one leaf: probes the leaf every ten seconds and renews the leases while it responds.

Leaves do not wait for each other: each has its own task, connections and offset in the period. All leaves share the
connections to the root fairly, so that a leaf with a thousand nodes does not delay one with ten. A round ends when the
next one is due, even if the root has not responded. The oldest leases are renewed first, so that none is always last.

The background loop that clustertree registers has one keeper for each leaf that this replica owns. It measures with the
`leases` attribute (a `LeaseMetrics`) of the capability's metrics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final
from zlib import crc32

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.leases.inputs import LeaseInput, NodeLeaseInput
from nodeyard.capabilities.clustertree.leases.liveness import Alive, Failed, LeafHealth, Liveness, Rejected
from nodeyard.capabilities.clustertree.leases.metrics import LeaseMetrics, Result
from nodeyard.capabilities.clustertree.leases.node_lease import GatedTransport, NodeLease
from nodeyard.capabilities.clustertree.leases.probe import Probe
from nodeyard.client.errors import Withheld
from nodeyard.process.aio import first_of
from nodeyard.process.logs import get_logger
from nodeyard.runtime.background import LoopContext

PERIOD_SECONDS: Final = 10.0
"""A quarter of the lease duration, as in the kubelet."""
REST_SECONDS: Final = 2.0
"""Minimum time between two rounds."""

_STEPS: Final = 10_000
IN_FLIGHT: Final = 32
"""Maximum concurrent renewals of one leaf, the same as the connections to the root that all leaves share."""
SAMPLE: Final = 4
"""Leases that are read in a round without write permission, to see whether another process renews them."""
WITHHELD: Final = "another replica owns the leaf, or this one runs in observe-only mode"
OTHER: Final = "the kubeconfig points to another cluster than the one that the nodes mirror"
LATE: Final = "the root did not respond before the end of the round"

_log = get_logger("leases")


def offset(name: str) -> float:
    """Return the offset of a leaf's rounds in the period, a hash of its name that spreads leaves over the period."""
    return crc32(name.encode()) % _STEPS / _STEPS * PERIOD_SECONDS


def next_round(name: str, began: float) -> float:
    """Return when the next round is due. The offset is fixed, so an early or late round does not shift later ones."""
    earliest = began + REST_SECONDS
    return earliest + (offset(name) - earliest) % PERIOD_SECONDS


class Keeper:
    def __init__(self, context: LoopContext, lease_input: LeaseInput, metrics: LeaseMetrics | None = None) -> None:
        self._context = context
        self._clock = context.clock
        self._client = context.client.managed_by(names.MANAGER)
        self._client.transport = GatedTransport(self._client.transport, self._hold)
        self._metrics = metrics
        self._name = lease_input.cluster
        self._input = lease_input
        self._used = b""
        """Kubeconfig of the last probe."""
        self._wake = asyncio.Event()
        self._probe = Probe(lease_input.cluster, context.connect, self._clock)
        self._liveness = _first_liveness(lease_input, self._clock.now())
        self._skew = 0.0
        self._leases: Mapping[str, NodeLease] = {}
        """By node. Replaced, never mutated: metrics read it from another thread."""
        self._started_at = self._clock.monotonic()
        self._contact_at = self._started_at
        self._renewed_at: datetime | None = None
        self._published: LeafHealth | None = None
        self._update_leases(lease_input)

    def update(self, lease_input: LeaseInput) -> None:
        """Take over a changed input."""
        if lease_input != self._input:
            self._input = lease_input
            self._update_leases(lease_input)
            self._wake.set()

    async def run(self) -> None:
        """Run rounds until cancelled."""
        is_early = False
        try:
            while True:
                began = self._clock.monotonic()
                try:
                    await self._round(began, is_early=is_early)
                except Exception:
                    # A bug here must affect neither other leaves nor the next round.
                    _log.exception("lease round failed", cluster=self._name)
                is_early = await self._wait(next_round(self._name, began))
        finally:
            await self._probe.close()

    def contact_age(self) -> float:
        """Seconds since the last response, or since the start. Thread-safe."""
        return self._clock.monotonic() - self._contact_at

    def lease_age(self) -> float:
        """Seconds since the oldest lease of a live node was renewed, or since the start. Thread-safe."""
        now, leases, nodes = self._clock.monotonic(), self._leases, self._input.nodes
        live = [leases[each.name].renewed_at for each in _alive(nodes) if each.name in leases]
        return max((now - (self._started_at if renewed is None else renewed) for renewed in live), default=0.0)

    def _hold(self) -> str:
        """Return why writing is not allowed, or an empty string. Checked when the request gets its connection."""
        return "" if self._context.fence_of(self._name).may_write() else WITHHELD

    # rounds

    async def _round(self, began: float, *, is_early: bool) -> None:
        lease_input = self._input
        self._used = lease_input.kubeconfig
        result = await self._probe.ask(lease_input.kubeconfig)
        if is_early and isinstance(result.answer, Failed):
            # Early rounds do not count failures: three new kubeconfigs within a second are not 30 s without a response.
            return
        before = self._liveness
        answer = Rejected(OTHER) if lease_input.is_other and isinstance(result.answer, Alive) else result.answer
        self._liveness = before.after(answer, self._clock.now(), lease_input.credential_grace)
        if not isinstance(result.answer, Failed):
            self._contact_at = self._clock.monotonic()
        if result.skew_seconds is not None:
            self._skew = result.skew_seconds
        self._log_transition(before)
        if self._liveness.may_renew:
            now, nodes = self._clock.now(), _alive(self._input.nodes)
            if await self._renew(nodes, began + PERIOD_SECONDS):
                self._renewed_at = now if nodes else None
        self._publish()

    async def _wait(self, due: float) -> bool:
        """Wait for the next round, and renew the leases of new nodes meanwhile.

        Return True if a new kubeconfig starts the round early.
        """
        while (left := due - self._clock.monotonic()) > 0:
            self._wake.clear()
            await first_of(self._wake.wait(), self._clock.sleep(left))
            if self._input.kubeconfig != self._used:
                return True
            fresh = [each for each in _alive(self._input.nodes) if self._leases[each.name].renewed_at is None]
            if fresh and self._wake.is_set() and self._liveness.may_renew:
                now = self._clock.now()
                if await self._renew(fresh, due):
                    # The last round determines the others.
                    self._renewed_at = self._renewed_at or now
                self._publish()
        return False

    # leases

    def _update_leases(self, lease_input: LeaseInput) -> None:
        known = self._leases
        self._leases = {each.name: known.get(each.name) or self._lease(each) for each in lease_input.nodes}

    def _lease(self, node: NodeLeaseInput) -> NodeLease:
        return NodeLease(node.name, self._client, self._clock, is_foreign=not node.is_adopted)

    async def _renew(self, nodes: Iterable[NodeLeaseInput], until: float) -> bool:
        """Renew the leases, oldest first, until the deadline. Return True if all were renewed."""
        fence, leases = self._context.fence_of(self._name), self._leases
        if not fence.may_write():
            await self._observe(until)
            return False
        order = sorted(nodes, key=lambda each: leases[each.name].renewed_at or 0.0)
        for each in order:
            leases[each.name].error = LATE
        waiting = iter(order)

        async def work() -> None:
            for each in waiting:
                if not fence.may_write():
                    return
                await self._renew_one(leases[each.name], each.uid)

        workers = asyncio.gather(*(work() for _ in range(min(IN_FLIGHT, len(order)))))
        await first_of(workers, self._clock.sleep(until - self._clock.monotonic()))
        errors = [leases[each.name].error for each in order]
        self._count(Result.FAILED, errors.count(LATE))
        return not any(errors)

    async def _renew_one(self, lease: NodeLease, uid: str) -> None:
        """Record the error on the lease; it does not affect other leases."""
        try:
            is_new = await lease.renew(uid)
            lease.error = ""
            if is_new is None:
                return
            result = Result.CREATED if is_new else Result.RENEWED
        except Withheld as error:
            lease.error = str(error)
            return
        except Exception as error:
            result = Result.FAILED
            lease.error = str(error) or type(error).__name__
        self._count(result)

    async def _observe(self, until: float) -> None:
        """Without write permission only check whether another process renews the leases."""
        sample = sorted(self._leases.values(), key=lambda lease: not lease.is_foreign)[:SAMPLE]
        looking = asyncio.gather(*(lease.observe() for lease in sample), return_exceptions=True)
        await first_of(looking, self._clock.sleep(until - self._clock.monotonic()))
        for lease in self._leases.values():
            lease.error = ""

    def _count(self, result: Result, times: int = 1) -> None:
        if self._metrics is not None and times:
            self._metrics.count(self._name, result, times)

    # reporting

    def _publish(self) -> None:
        liveness, leases = self._liveness, self._leases
        live = {each.name for each in _alive(self._input.nodes)} if liveness.may_renew else set()
        report = LeafHealth(
            state=liveness.state,
            since=liveness.since,
            last_contact=liveness.last_contact,
            message=liveness.message,
            skew_seconds=self._skew,
            renewed_at=self._renewed_at,
            failed=tuple((node, lease.error) for node, lease in leases.items() if lease.error and node in live),
            moved=tuple(node for node, lease in leases.items() if lease.is_moved),
            is_rejected=liveness.is_rejected,
            rejected_since=liveness.rejected_since,
        )
        is_news = report.is_news(self._published)
        self._published = report
        self._context.publish(names.leaf_health(self._name), report, (self._name,) if is_news else ())

    def _log_transition(self, before: Liveness) -> None:
        liveness = self._liveness
        if liveness.state is before.state and liveness.is_rejected == before.is_rejected:
            return
        say = _log.info if not liveness.message else _log.warning
        say("leaf " + liveness.state.value, cluster=self._name, reason=liveness.message or "probe succeeded")


def _first_liveness(lease_input: LeaseInput, now: datetime) -> Liveness:
    if lease_input.is_given_up:
        return Liveness.given_up(now, is_rejected=lease_input.is_rejected, rejected_since=lease_input.rejected_since)
    return Liveness.new(now, rejected_since=lease_input.rejected_since)


def _alive(nodes: Iterable[NodeLeaseInput]) -> list[NodeLeaseInput]:
    return [each for each in nodes if each.is_alive]


# one keeper per leaf


async def renew(context: LoopContext) -> None:
    """Run until the context is stopped."""
    keepers = Keepers(context, getattr(context.metrics_recorder, "leases", None))
    try:
        while not context.stopped.is_set():
            context.changed.clear()
            keepers.sync(context.inputs)
            await first_of(context.stopped.wait(), context.changed.wait())
    finally:
        await keepers.close()


class Keepers:
    def __init__(self, context: LoopContext, metrics: LeaseMetrics | None = None) -> None:
        self._context = context
        self._metrics = metrics
        self._working: dict[str, tuple[Keeper, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def sync(self, inputs: Mapping[str, LeaseInput | None]) -> None:
        """Start keepers of new leaves, stop those of leaves that are gone, and update the others."""
        wanted = {key: lease_input for key, lease_input in inputs.items() if lease_input is not None}
        for key in self._working.keys() - wanted.keys():
            self._end(key)
        for key, lease_input in wanted.items():
            if key in self._working:
                self._working[key][0].update(lease_input)
            else:
                self._begin(key, lease_input)

    async def close(self) -> None:
        for key in tuple(self._working):
            self._end(key)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _begin(self, key: str, lease_input: LeaseInput) -> None:
        keeper = Keeper(self._context, lease_input, self._metrics)
        if self._metrics is not None:
            self._metrics.follow(key, keeper.contact_age, keeper.lease_age)
        self._working[key] = keeper, asyncio.create_task(keeper.run(), name=f"leases of {key}")

    def _end(self, key: str) -> None:
        """Do not wait: closing connections to a leaf that does not respond may take a while."""
        _, task = self._working.pop(key)
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        if self._metrics is not None:
            self._metrics.forget(key)
        self._context.publish(names.leaf_health(key), None)
