"""Probes a leaf: GET /readyz on a dedicated connection.

200 is alive; 401 and 403 mean that the server is up but rejects the credentials. Every other status is a failure, and
so is an unusable kubeconfig. The Date header gives the clock skew.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from nodeyard.capabilities.clustertree.leases.liveness import Alive, Answer, Failed, Rejected
from nodeyard.client.errors import ClientError, ConfigError
from nodeyard.client.transport import Request, Response, Transport
from nodeyard.process.aio import first_of
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import RemoteClusterRef
from nodeyard.runtime.remote.connect import Connect

PATH: Final = "/readyz"
ANSWER_SECONDS: Final = 5.0

_log = get_logger("leases")


class ProbeResult(NamedTuple):
    answer: Answer
    skew_seconds: float | None = None
    """Clock skew: how far the leaf's clock is ahead; None without a Date header."""


class Probe:
    def __init__(self, cluster: str, connect: Connect, clock: Clock) -> None:
        self._cluster = cluster
        self._connect = connect
        self._clock = clock
        self._kubeconfig = b""
        self._transport: Transport | None = None

    async def ask(self, kubeconfig: bytes) -> ProbeResult:
        """Send one probe, with a timeout of five seconds. Raises only CancelledError."""
        if not kubeconfig:
            return ProbeResult(Failed("no kubeconfig"))
        try:
            return await self._ask(await self._connected(kubeconfig))
        except (ConfigError, ValueError) as error:
            return ProbeResult(Failed(f"the kubeconfig is refused: {error}"))
        except ClientError as error:
            return ProbeResult(Failed(str(error)))
        except Exception as error:
            # A hostile server may make the client raise anything; it must only affect this leaf.
            return ProbeResult(Failed(str(error) or type(error).__name__))

    async def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is None:
            return
        try:
            await transport.close()
        except Exception as error:
            _log.warning("leaf connection not closed", cluster=self._cluster, reason=str(error) or type(error).__name__)

    async def _connected(self, kubeconfig: bytes) -> Transport:
        """Return a transport for this kubeconfig, and close that of an older one first."""
        if self._transport is None or kubeconfig != self._kubeconfig:
            await self.close()
            self._transport, self._kubeconfig = self._connect(RemoteClusterRef(self._cluster, kubeconfig)), kubeconfig
        return self._transport

    async def _ask(self, transport: Transport) -> ProbeResult:
        asking = asyncio.ensure_future(transport.send(Request("GET", PATH, timeout=ANSWER_SECONDS, retry=False)))
        await first_of(asyncio.wait({asking}), self._clock.sleep(ANSWER_SECONDS))
        if not asking.done():
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return ProbeResult(Failed(f"GET {PATH}: no answer in {ANSWER_SECONDS:g} s"))
        response = asking.result()
        return ProbeResult(_answer(response), _skew(response, self._clock.now()))


def _answer(response: Response) -> Answer:
    if response.status == 200:
        return Alive()
    # The body is untrusted, and this text becomes a condition: never quote it.
    if response.status == 401:
        return Rejected(f"GET {PATH} returned 401")
    if response.status == 403:
        return Rejected(f"GET {PATH} returned 403; grant the user get on this nonResourceURL")
    return Failed(f"GET {PATH} returned {response.status}")


def _skew(response: Response, now: datetime) -> float | None:
    try:
        date = parsedate_to_datetime(response.headers.get("date", ""))
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    # The header is truncated to seconds; half a second is missing on average.
    return (date + timedelta(milliseconds=500) - now).total_seconds()
