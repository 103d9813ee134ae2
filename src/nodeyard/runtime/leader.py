"""Leader election by Lease: at most one of us writes at any moment.

    follower ──free, or stood still for its duration──▶ leader ──not renewed in time──▶ follower
                                                          └──stop──▶ released

The right to write ends `margin` before others may take the lease, by our own monotonic clock and counted from when the
last renewal was *sent*: a stalled process finds itself without the right before anyone else can have it. `may_write` is
one comparison and may be asked by any thread. Every request has a deadline of its own.

The election knows nothing of threads; `lease_thread` runs it where no plan can hold it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, ClientError, Conflict, NotFound, TransportTimeout
from nodeyard.client.resources import LEASES, NAMESPACES
from nodeyard.kube.names import NAMESPACE
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.lease import Lease, LeaseSpec, Marks, acquired, manifest, released, renewed

T = TypeVar("T")

_LEASES: Final = LEASES.decoded_as(Lease)

# The last: an answer that makes no sense, from whatever stands in front of the server.
_FORESEEN: Final = (ClientError, TimeoutError, msgspec.MsgspecError)

_log = get_logger("leader")


@dataclass(frozen=True)
class Timing:
    """In seconds. What client-go made customary: two renewals may fail and nobody notices."""

    duration: int = 15
    margin: float = 5.0
    """Writes stop this long before others may take over: enough for those in flight to end."""
    interval: float = 2.0
    """Between two renewals, or two looks at another's lease."""
    deadline: float = 4.0
    """Of each request."""
    retry: float = 2.0
    """After a request that failed; no longer than `interval`."""


def lease_name(capability: str) -> str:
    return f"nodeyard-{capability}"


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
        marks: Marks = Marks(),  # noqa: B008 - frozen
    ) -> None:
        """`on_change` is called where the election runs, when we became leader (True) or ceased to be (False); with
        True also when a right to write comes back that had lapsed unnoticed."""
        self.name = name
        self.identity = identity
        self.holder = ""
        """Who leads, as last seen."""
        self.error = ""
        """Why the last request failed; empty while all is well."""
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
        """When the Lease was first seen as it is."""
        self._is_known = False
        self._marks = marks

    def may_write(self) -> bool:
        """Whether the lease is surely still ours; constant time, any thread."""
        return self._clock.monotonic() < self._valid_until

    @property
    def leads(self) -> bool:
        return self._leads

    @property
    def version(self) -> str:
        """Of the Lease as last seen; empty where there is none."""
        return "" if self._lease is None else self._lease.metadata.resource_version

    @property
    def free_for(self) -> float:
        """Seconds since the Lease, as last seen, could have been taken by anyone; negative: until it can be."""
        lease = self._lease
        return self._stood if lease is None or not lease.holder else self._stood - self._seconds_of(lease)

    def saw(self, lease: Lease | None) -> None:
        """The Lease as somebody else read it, while we do not run: then the first step need not look."""
        self._remember(lease)

    async def run(self, client: Client, stopped: asyncio.Event) -> None:
        """Until `stopped`; then the lease is given back if it is ours."""
        self._client = client
        try:
            while not stopped.is_set():
                await self._step()
                await self._rest(stopped)
        finally:
            await self._release()

    async def _step(self) -> None:
        sent = self._clock.monotonic()
        try:
            is_ours = await self._within(self._try(), min(self._timing.deadline, self._left()))
            self.error = ""
        except Exception as error:
            # Whatever it is, a token file that is no text for example, it may pass: nobody begins an election anew.
            # Whether a write arrived is not known: look before the next one.
            self._is_known = False
            is_ours = False
            self._report_failure(error)
        if is_ours:
            # After a standstill the lease may still be ours: what was due meanwhile was not done, and is due again.
            self._leads = self._leads and self.may_write()
            self._valid_until = sent + self._timing.duration - self._timing.margin
        elif not self.may_write() or self.holder != self.identity:
            self._valid_until = 0.0
        self._settle()

    async def _try(self) -> bool:
        """One look or one write; whether the lease is ours now."""
        if not self._is_known:
            await self._look()
        lease = self._lease
        if lease is None:
            return await self._create()
        if lease.holder == self.identity:
            spec = renewed(lease, self._clock.now()) if self._leads else self._claim(lease)
            return await self._replace(lease, spec)
        if not self._is_free(lease):
            self._is_known = False
            return False
        return await self._replace(lease, self._claim(lease))

    def _claim(self, lease: Lease | None) -> LeaseSpec:
        return acquired(lease, self.identity, self._timing.duration, self._clock.now())

    def _is_free(self, lease: Lease) -> bool:
        return not lease.holder or self._stood >= self._seconds_of(lease)

    @property
    def _stood(self) -> float:
        """For how long the Lease has been as it is, by our own clock."""
        now = self._clock.monotonic()
        return now - (now if self._seen_at is None else self._seen_at)

    def _seconds_of(self, lease: Lease) -> float:
        return lease.spec.lease_duration_seconds or self._timing.duration

    async def _look(self) -> None:
        try:
            found: Lease | None = await self._client.get(_LEASES, self.name, self._namespace)
        except NotFound:
            found = None
        self._remember(found)

    async def _create(self) -> bool:
        lease = manifest(self.name, self._namespace, self._claim(None), marks=self._marks)
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
        _log.info("creating namespace", namespace=self._namespace, reason="the leader's Lease lives there")
        try:
            await self._client.create(NAMESPACES, {"metadata": {"name": self._namespace}})
        except AlreadyExists:
            return

    async def _replace(self, lease: Lease, spec: LeaseSpec) -> bool:
        body = manifest(self.name, self._namespace, spec, lease.metadata.resource_version, self._marks)
        try:
            replaced = await self._client.update(_LEASES, body)
        except (Conflict, NotFound):
            self._is_known = False
            await self._look()
            return False
        self._remember(replaced)
        return True

    def _remember(self, lease: Lease | None) -> None:
        before, is_first = self.version, self._seen_at is None
        self._lease = lease
        if is_first or self.version != before:
            self._seen_at = self._clock.monotonic()
        self._is_known = True
        self.holder = "" if lease is None else lease.holder

    def _settle(self) -> None:
        leads = self.may_write()
        if leads == self._leads:
            return
        self._leads = leads
        if leads:
            _log.info("leading", lease=self.name, identity=self.identity)
        else:
            _log.warning("no longer leading", lease=self.name, holder=self.holder, reason=self.error or "taken over")
        self._on_change(leads)

    async def _rest(self, stopped: asyncio.Event) -> None:
        seconds = min(self._timing.interval, self._timing.retry) if self.error else self._timing.interval
        pause = seconds * (0.9 + 0.2 * self._random.random())
        await first_of(stopped.wait(), self._clock.sleep(min(pause, self._left())))

    def _left(self) -> float:
        """Of the right to write, so that its end is noticed when it comes and not when a request has timed out."""
        return max(self._valid_until - self._clock.monotonic(), 0.1) if self._leads else self._timing.deadline

    async def _release(self) -> None:
        """Nothing is written any more from here on, whether or not the server hears of it."""
        self._valid_until = 0.0
        if self._leads:
            self._leads = False
            self._on_change(False)
        if self._lease is None or self.holder != self.identity:
            return
        try:
            await self._within(self._give_back(), self._timing.deadline)
            _log.info("released", lease=self.name, identity=self.identity)
        except Exception as error:
            self._report_failure(error)

    async def _give_back(self) -> None:
        if not self._is_known:
            await self._look()
        if self._lease is not None and self._lease.holder == self.identity:
            await self._replace(self._lease, released(self._lease, self._clock.now()))

    async def _within(self, work: Awaitable[T], seconds: float) -> T:
        return await within(work, seconds, self._clock, f"Lease {self.name}")

    def _report_failure(self, error: Exception) -> None:
        self.error = str(error) or type(error).__name__
        _log.warning("lease not reached", lease=self.name, reason=self.error, **traceback_of(error))


def traceback_of(error: Exception) -> dict[str, Exception]:
    """What a log needs beside the text: where an error came from that nobody foresaw."""
    return {} if isinstance(error, _FORESEEN) else {"exc_info": error}


async def within(work: Awaitable[T], seconds: float, clock: Clock, what: str) -> T:
    """What the work leads to; TransportTimeout where it takes longer."""
    task = asyncio.ensure_future(work)
    await first_of(asyncio.wait({task}), clock.sleep(seconds))
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    raise TransportTimeout(f"{what}: no answer within {seconds:g} s", may_have_run=True)


async def first_of(*awaitables: Awaitable[object]) -> None:
    """Until one is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in awaitables]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
