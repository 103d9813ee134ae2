"""Leader election by Lease: at most one replica writes at any time.

    follower ──Lease free, or unchanged for its duration──▶ leader ──not renewed in time──▶ follower
                                                              └──stop──▶ released

The right to write ends `margin` before another replica may take the Lease. It is measured by our monotonic clock from
the time at which the last renewal was *sent*, so a stalled process loses the right before anyone else can gain it.
`may_write` is one comparison and safe on any thread. Every request has its own deadline.

The election knows nothing about threads; `ThreadElections` runs it where no plan can delay it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final, TypeVar

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, ClientError, Conflict, NotFound, TransportTimeout
from nodeyard.client.outages import OUTAGES
from nodeyard.client.resources import LEASES, NAMESPACES
from nodeyard.kube.names import NAMESPACE, OPERATOR
from nodeyard.process.aio import first_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.leader.lease import Lease, LeaseMetadata, LeaseSpec, acquire, manifest, release, renew

T = TypeVar("T")

_LEASES: Final = LEASES.decoded_as(Lease)

# MsgspecError: a response that is no Kubernetes object, from a proxy in front of the server.
_EXPECTED_ERRORS: Final = (ClientError, TimeoutError, msgspec.MsgspecError)

_log = get_logger("leader")


@dataclass(frozen=True)
class Timing:
    """Lease timing in seconds, close to client-go's defaults: two renewals may fail unnoticed."""

    duration: int = 15
    margin: float = 5.0
    """Writes stop this long before others may take over, so that requests in flight can end."""
    interval: float = 2.0
    """Time between two renewals, or between two reads of another replica's Lease."""
    deadline: float = 4.0
    """Deadline of each request."""
    retry: float = 2.0
    """Pause after a failed request; at most `interval`."""


def lease_name(capability: str) -> str:
    return f"nodeyard-{capability}"


def unelected_lease_name(capability: str) -> str:
    """Return the name of the Lease of a process without leader election: it shows that the process lives and grants
    nothing."""
    return f"nodeyard-unelected-{capability}"


class Leader:
    def __init__(
        self,
        name: str,
        identity: str,
        clock: Clock,
        *,
        timing: Timing = Timing(),  # noqa: B008 - frozen
        random: Random | None = None,
        on_change: Callable[[bool], None] = lambda _leads: None,
        namespace: str = NAMESPACE,
        metadata: LeaseMetadata = LeaseMetadata(),  # noqa: B008 - frozen
        published: Callable[[], str] = str,
    ) -> None:
        """`published` returns the annotation that describes the holder; it is called with each write, is cheap and
        never raises.

        `on_change` is called on the election's loop with True when we become leader and False when we cease to be. True
        is also passed when a right to write that had lapsed unnoticed comes back.
        """
        self.name = name
        self.identity = identity
        self.holder = ""
        """The current holder, as last seen."""
        self.error = ""
        """The error of the last request; empty after a success."""
        self._client: Client
        self._namespace = namespace
        self._clock = clock
        self._timing = timing
        self._random = random or Random(identity)
        self._on_change = on_change
        self._valid_until = 0.0
        self._leads = False
        self._lease: Lease | None = None
        self._seen_at: float | None = None
        """When the Lease was first seen in its current version."""
        self._is_known = False
        self._extra = metadata
        self._published = published

    def may_write(self) -> bool:
        """Return True while the Lease is certainly ours; constant time, any thread."""
        return self._clock.monotonic() < self._valid_until

    @property
    def leads(self) -> bool:
        return self._leads

    @property
    def version(self) -> str:
        """The resourceVersion of the Lease as last seen; empty if it does not exist."""
        return "" if self._lease is None else self._lease.metadata.resource_version

    @property
    def free_for(self) -> float:
        """Seconds since which the Lease could be taken by anyone; negative: until it can be."""
        lease = self._lease
        wait = 0.0 if lease is None or not lease.holder else self._seconds_of(lease)
        return self._unchanged_for - wait

    def observe(self, lease: Lease | None) -> None:
        """Take a Lease that a list request has read while this election does not run; the first step then needs no
        GET."""
        self._remember(lease)

    async def run(self, client: Client, stopped: asyncio.Event) -> None:
        """Run the election until `stopped`; then release the Lease if it is ours."""
        self._client = client
        try:
            while not stopped.is_set():
                await self._step()
                await self._sleep(stopped)
        finally:
            await self._release()

    async def _step(self) -> None:
        sent = self._clock.monotonic()
        try:
            is_ours = await self._within(self._try(), min(self._timing.deadline, self._time_left()))
            self.error = ""
        except Exception as error:
            # Any error may be temporary, even a corrupt token file: nobody restarts an election. It is unknown whether
            # a write arrived, so the Lease is read before the next one.
            self._is_known = False
            is_ours = False
            self._report_failure(error)
        if is_ours:
            # After a stall the Lease may still be ours. Work that was refused meanwhile must be queued again, so the
            # change is reported. The clock is read last: a thread that was refused by the old limit read it before.
            lapsed, self._valid_until = self._valid_until, sent + self._timing.duration - self._timing.margin
            self._leads = self._leads and self._clock.monotonic() < lapsed
        elif not self.may_write() or self.holder != self.identity:
            self._valid_until = 0.0
        self._report_change()

    async def _try(self) -> bool:
        """Read or write the Lease once; return True if it is ours now."""
        if not self._is_known:
            await self._read()
        lease = self._lease
        if lease is None:
            return await self._create()
        if lease.holder == self.identity:
            spec = renew(lease, self._clock.now()) if self._leads else self._claim(lease)
            return await self._replace(lease, spec)
        if not self._is_free(lease):
            self._is_known = False
            return False
        return await self._replace(lease, self._claim(lease))

    def _claim(self, lease: Lease | None) -> LeaseSpec:
        return acquire(lease, self.identity, self._timing.duration, self._clock.now())

    def _is_free(self, lease: Lease) -> bool:
        return not lease.holder or self._unchanged_for >= self._seconds_of(lease)

    @property
    def _unchanged_for(self) -> float:
        """Seconds for which the Lease has been unchanged, by our own clock."""
        now = self._clock.monotonic()
        return now - (now if self._seen_at is None else self._seen_at)

    def _seconds_of(self, lease: Lease) -> float:
        return lease.spec.lease_duration_seconds or self._timing.duration

    async def _read(self) -> None:
        try:
            found: Lease | None = await self._client.get(_LEASES, self.name, self._namespace)
        except NotFound:
            found = None
        self._remember(found)

    async def _create(self) -> bool:
        lease = manifest(self.name, self._namespace, self._claim(None), extra=self._metadata())
        try:
            created = await self._client.create(_LEASES, lease)
        except AlreadyExists:
            self._is_known = False
            return False
        except NotFound:
            await self._create_namespace()
            created = await self._client.create(_LEASES, lease)
        self._remember(created)
        return True

    async def _create_namespace(self) -> None:
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": self._namespace}})
        except AlreadyExists:
            return
        _log.info("namespace created", namespace=self._namespace, reason="the leader Lease needs it")

    async def _replace(self, lease: Lease, spec: LeaseSpec) -> bool:
        body = manifest(self.name, self._namespace, spec, lease.metadata.resource_version, self._metadata())
        try:
            replaced = await self._client.update(_LEASES, body)
        except (Conflict, NotFound):
            self._is_known = False
            await self._read()
            return False
        self._remember(replaced)
        return True

    def _metadata(self) -> LeaseMetadata:
        text = self._published()
        return replace(self._extra, annotations={**self._extra.annotations, OPERATOR: text}) if text else self._extra

    def _remember(self, lease: Lease | None) -> None:
        before, is_first = self.version, self._seen_at is None
        self._lease = lease
        if is_first or self.version != before:
            self._seen_at = self._clock.monotonic()
        self._is_known = True
        self.holder = "" if lease is None else lease.holder

    def _report_change(self) -> None:
        leads = self.may_write()
        if leads == self._leads:
            return
        self._leads = leads
        if leads:
            _log.info("lease acquired", lease=self.name, identity=self.identity)
        else:
            _log.warning("lease lost", lease=self.name, holder=self.holder, reason=self.error or "taken over")
        self._on_change(leads)

    async def _sleep(self, stopped: asyncio.Event) -> None:
        seconds = min(self._timing.interval, self._timing.retry) if self.error else self._timing.interval
        pause = seconds * (0.9 + 0.2 * self._random.random())
        await first_of(stopped.wait(), self._clock.sleep(min(pause, self._time_left())))

    def _time_left(self) -> float:
        """Seconds left of the right to write, so that its end is noticed on time and not after a request timeout."""
        return max(self._valid_until - self._clock.monotonic(), 0.1) if self._leads else self._timing.deadline

    async def _release(self) -> None:
        """Give up the right to write at once, then release the Lease on the server."""
        self._valid_until = 0.0
        if self._leads:
            self._leads = False
            self._on_change(False)
        if self._lease is None or self.holder != self.identity:
            return
        try:
            await self._within(self._release_lease(), self._timing.deadline)
            _log.info("lease released", lease=self.name, identity=self.identity)
        except Exception as error:
            self._report_failure(error)

    async def _release_lease(self) -> None:
        if not self._is_known:
            await self._read()
        if self._lease is not None and self._lease.holder == self.identity:
            await self._replace(self._lease, release(self._lease, self._clock.now()))

    async def _within(self, work: Awaitable[T], seconds: float) -> T:
        return await within(work, seconds, self._clock, f"Lease {self.name}")

    def _report_failure(self, error: Exception) -> None:
        self.error = str(error) or type(error).__name__
        OUTAGES.log(_log, "lease request failed", self.name, error, lease=self.name, **traceback_of(error))


def traceback_of(error: Exception) -> dict[str, Exception]:
    """Return the traceback keyword of a log call for an unexpected error."""
    return {} if isinstance(error, _EXPECTED_ERRORS) else {"exc_info": error}


async def within(work: Awaitable[T], seconds: float, clock: Clock, what: str) -> T:
    """Await the work; raise TransportTimeout if it takes longer than `seconds`."""
    task = asyncio.ensure_future(work)
    await first_of(asyncio.wait({task}), clock.sleep(seconds))
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    raise TransportTimeout(f"{what}: no answer within {seconds:g} s", may_have_run=True)
