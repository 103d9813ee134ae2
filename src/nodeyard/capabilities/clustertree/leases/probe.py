"""Asking a leaf whether it lives: GET /readyz, on connections that nothing else uses.

Any answer but these three is a failure, and so is a kubeconfig that cannot be used: 200 is alive, 401 and 403 are a
living server that does not take our credentials. The clock of the leaf is read from the answer by the way.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from nodeyard.capabilities.clustertree.liveness import Alive, Answer, Failed, Rejected
from nodeyard.client.errors import ClientError, ConfigError, error_from_answer
from nodeyard.client.transport import Response, Transport
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Elsewhere
from nodeyard.runtime.leader import first_of
from nodeyard.runtime.reaching import Connect

PATH: Final = "/readyz"
ANSWER_SECONDS: Final = 5.0
_QUOTED: Final = 200
"""How much of an answer that nobody can foresee is told."""

_log = get_logger("leases")


class Reading(NamedTuple):
    answer: Answer
    skew_seconds: float | None = None
    """How far the leaf's clock is ahead of ours; None where it did not say."""


class Probe:
    def __init__(self, cluster: str, connect: Connect, clock: Clock) -> None:
        self._cluster = cluster
        self._connect = connect
        self._clock = clock
        self._kubeconfig = b""
        self._transport: Transport | None = None

    async def ask(self, kubeconfig: bytes) -> Reading:
        """One question, within five seconds; never raises but when cancelled."""
        if not kubeconfig:
            return Reading(Failed("there is no kubeconfig"))
        try:
            return await self._ask(await self._connected(kubeconfig))
        except (ConfigError, ValueError) as error:
            return Reading(Failed(f"the kubeconfig is refused: {error}"))
        except ClientError as error:
            return Reading(Failed(str(error)))
        except Exception as error:
            # Whatever a stranger's server makes our client raise concerns this leaf alone.
            return Reading(Failed(str(error) or type(error).__name__))

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        try:
            await transport.close()
        except Exception as error:
            _log.warning("connections not closed", cluster=self._cluster, reason=str(error) or type(error).__name__)

    async def _connected(self, kubeconfig: bytes) -> Transport:
        """By this kubeconfig: what another one has opened is closed first."""
        if self._transport is None or kubeconfig != self._kubeconfig:
            await self.close()
            self._transport, self._kubeconfig = self._connect(Elsewhere(self._cluster, kubeconfig)), kubeconfig
        return self._transport

    async def _ask(self, transport: Transport) -> Reading:
        asking = asyncio.ensure_future(transport.request("GET", PATH, timeout=ANSWER_SECONDS, retry=False))
        await first_of(asyncio.wait({asking}), self._clock.sleep(ANSWER_SECONDS))
        if not asking.done():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return Reading(Failed(f"GET {PATH}: no answer in {ANSWER_SECONDS:g} s"))
        response = asking.result()
        return Reading(_answer(response), _skew(response, self._clock.now()))


def _answer(response: Response) -> Answer:
    if response.status == 200:
        return Alive()
    said = error_from_answer(response.status, response.headers, response.body).message[:_QUOTED]
    if response.status == 401:
        return Rejected(f"GET {PATH} answered 401: {said}")
    if response.status == 403:
        return Rejected(f"GET {PATH} answered 403: {said}; allow the user to get this nonResourceURL")
    return Failed(f"GET {PATH} answered {response.status}: {said}")


def _skew(response: Response, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    # The header has whole seconds, cut: half of one is missing on average.
    return (date + timedelta(milliseconds=500) - now).total_seconds()
