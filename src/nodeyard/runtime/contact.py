"""Contact with one further cluster: made, watched over, lost and made again, for as long as the cluster is named.

    given ──▶ connect ──▶ probe ──answered──▶ connected: probe every 15 s, and at once after trouble
                 ▲          │                     │
              backoff ◀── failed ◀────────────────┴── two failures in a row, a 401, another cluster

The probe is a GET of the Namespace kube-system: its uid says which cluster answers. As long as it is the same, what is
known stays, whatever credentials or address brought us there; when it is another, everything is forgotten. A refusal to
show that Namespace (403) is an answer too, only one that does not say who answers. A kubeconfig that was replaced is
used until the new one has been tried, and never after.

Which version the server is of is asked when contact is made, and with each probe after until it has said so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from random import Random
from typing import Final, Protocol, TypeVar

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ConfigError, Forbidden, NotFound, TooManyRequests, Unauthorized
from nodeyard.client.resources import NAMESPACES
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Elsewhere
from nodeyard.runtime.leader import first_of
from nodeyard.runtime.line import Line
from nodeyard.runtime.reaching import Connect
from nodeyard.watch.backoff import Backoff
from nodeyard.watch.inquiring import SYSTEM_NAMESPACE

PROBE_SECONDS: Final = 15.0
"""Between two probes while all is well, at most."""
TROUBLE_SECONDS: Final = 1.0
"""Between two probes while it is in doubt."""
ANSWER_SECONDS: Final = 5.0
"""How long a probe waits for its answer."""
FAILURES: Final = 2
"""In a row, before contact counts as lost."""

T = TypeVar("T")

_log = get_logger("clusters")


class NoAnswer(Exception):
    """What was asked was not answered in time."""


class Follower(Protocol):
    """What follows the contact: the watches and the view of the cluster."""

    async def forget(self) -> None:
        """What is known may be of another cluster than the one that answers now."""

    def learned(self, version: str) -> None:
        """The version of the API server that answers; where it says so at all, before `made`."""

    async def made(self, uid: str) -> None:
        """The cluster of this uid answers."""

    def lost(self, why: str) -> None:
        """Nothing is to be expected of it for now."""


class Contact:
    def __init__(
        self,
        given: Elsewhere,
        connect: Connect,
        line: Line,
        follower: Follower,
        *,
        clock: Clock,
        random: Random,
        connecting: asyncio.Semaphore,
        backoff: Backoff | None = None,
    ) -> None:
        """`connecting` bounds how many clusters are being connected at once."""
        self._given = given
        self._connect = connect
        self._line = line
        self._follower = follower
        self._clock = clock
        self._random = random
        self._connecting = connecting
        self._backoff = backoff or Backoff(first=1.0, most=PROBE_SECONDS)
        self._used: Elsewhere | None = None
        self._client: Client | None = None
        self._is_joined = False
        """Whether this client is the one behind the line."""
        self._uid = ""
        self._version = ""
        self._failures = 0
        self._why = ""
        """Why there is no contact, as last said."""
        self._wake = asyncio.Event()

    def give(self, given: Elsewhere) -> None:
        """The kubeconfig as it is now; another one is used at once."""
        if given != self._given:
            self._given = given
            self._wake.set()

    def doubt(self) -> None:
        """Something went unanswered: probe soon."""
        if self._is_joined:
            self._wake.set()

    async def run(self) -> None:
        """Until cancelled; then the line is cut."""
        try:
            while True:
                self._wake.clear()
                await self._rest(await self._step())
        finally:
            await self._drop()

    async def _step(self) -> float | None:
        """One look at the cluster; in how many seconds the next is due, None where only a new kubeconfig helps."""
        if self._used != self._given:
            self._used, self._client, self._is_joined, self._failures = self._given, None, False, 0
        try:
            uid = await self._look()
        except (ConfigError, ValueError) as error:
            if not isinstance(error, msgspec.MsgspecError):
                await self._lose(f"the kubeconfig is refused: {error}")
                return None
            return await self._fail(error)
        except Exception as error:
            # Whatever a stranger's server makes our client raise concerns this cluster alone.
            return await self._fail(error)
        self._failures = 0
        return await self._answered(uid)

    async def _look(self) -> str:
        """The uid of the cluster; empty where it answers and does not say."""
        if self._is_joined:
            return await self._probe()
        async with self._connecting:
            return await self._probe()

    async def _probe(self) -> str:
        if self._client is None:
            self._client = Client(self._connect(self._given), timeout=ANSWER_SECONDS)
        try:
            namespace = await self._within_time(self._client.get(NAMESPACES, SYSTEM_NAMESPACE))
            return str(namespace["metadata"]["uid"])
        except (Forbidden, NotFound):
            return ""
        except TooManyRequests:
            if not self._is_joined:
                raise
            return self._uid

    async def _within_time(self, question: Awaitable[T]) -> T:
        asking = asyncio.ensure_future(question)
        await first_of(asking, self._clock.sleep(ANSWER_SECONDS))
        if asking.cancelled():
            raise NoAnswer(f"no answer in {ANSWER_SECONDS:g} s")
        return asking.result()

    async def _answered(self, uid: str) -> float:
        was_joined, known = self._is_joined, self._uid
        if was_joined and (uid == known or not uid):
            await self._learn_version()
            return self._until_next()
        if was_joined and known:
            await self._lose("another cluster answers at its address")
            return 0.0
        if self._client is not None and not was_joined:
            await self._join(self._client, is_same=uid == known != "")
        self._is_joined, self._uid, self._why = True, uid, ""
        self._version = ""
        await self._learn_version()
        _log.info("connected", uid=uid, version=self._version)
        await self._follower.made(uid)
        return self._until_next()

    async def _learn_version(self) -> None:
        """A server that does not say is in contact all the same."""
        if self._version or self._client is None:
            return
        try:
            self._version = str((await self._within_time(self._client.server_version()))["gitVersion"])
        except Exception as error:
            _log.info("version not known", reason=_said(error))
            return
        self._follower.learned(self._version)

    def _until_next(self) -> float:
        """Spread, so that a process with many clusters does not probe all of them at once."""
        return PROBE_SECONDS * (0.8 + self._random.random() / 5)

    async def _join(self, client: Client, *, is_same: bool) -> None:
        if not is_same:
            # Nothing that was meant for the one may go to the other.
            await self._line.cut()
            await self._follower.forget()
        await self._line.join(client.transport)

    async def _fail(self, error: Exception) -> float:
        self._failures += 1
        is_final = isinstance(error, Unauthorized) or self._failures >= FAILURES
        if self._is_joined and not is_final:
            return TROUBLE_SECONDS
        await self._lose(_said(error))
        return self._backoff.seconds(self._failures, self._random, getattr(error, "retry_after", None) or 0.0)

    async def _lose(self, why: str) -> None:
        if why != self._why:
            self._why = why
            _log.warning("no contact", reason=why)
        self._follower.lost(why)
        await self._drop()

    async def _drop(self) -> None:
        client, self._client, self._is_joined = self._client, None, False
        await self._line.cut()
        if client is not None:
            await client.close()

    async def _rest(self, seconds: float | None) -> None:
        if seconds is None:
            await self._wake.wait()
            return
        begun = self._clock.monotonic()
        await first_of(self._wake.wait(), self._clock.sleep(seconds))
        if self._used == self._given and self._clock.monotonic() - begun < TROUBLE_SECONDS <= seconds:
            # Doubts come in swarms: one for each watch that broke.
            await first_of(self._changed(), self._clock.sleep(TROUBLE_SECONDS))

    async def _changed(self) -> None:
        while self._used == self._given:
            self._wake.clear()
            await self._wake.wait()


def _said(error: Exception) -> str:
    if isinstance(error, Unauthorized):
        return f"the credentials are rejected: {error}"
    return str(error) or type(error).__name__
