"""The connection to one remote cluster: connect, probe, lose and reconnect for as long as the cluster is declared.

    declared ──▶ connect ──▶ probe ──response──▶ connected: probe every 15 s, and soon after a failed request
                    ▲          │                     │
                 backoff ◀── failed ◀────────────────┴── two failures in a row, a 401, another cluster

The probe is a GET of the Namespace kube-system, whose uid identifies the cluster. While the uid is the same, caches are
kept, whatever address or credentials led there; if it differs, everything is forgotten. A 403 for that Namespace is a
response too, but without an identity. A replaced kubeconfig is used until the new one has been tried, and never after.
A kubeconfig in a Secret is read at each connect, and every minute while connected.

The server version is read at each connect, and with each later probe until it is known.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable
from dataclasses import replace
from random import Random
from typing import Final, Protocol, TypeVar

import msgspec

from nodeyard.client.api import Client
from nodeyard.client.errors import ConfigError, Forbidden, NotFound, TooManyRequests, Unauthorized
from nodeyard.client.resources import NAMESPACES
from nodeyard.process.aio import first_of
from nodeyard.process.backoff import Backoff
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import RemoteClusterRef, SecretKey
from nodeyard.runtime.remote.client import RemoteClient
from nodeyard.runtime.remote.connect import Connect, KubeconfigUnreadable, Read
from nodeyard.runtime.remote.transport import RemoteTransport
from nodeyard.watch.server_info import SYSTEM_NAMESPACE

PROBE_SECONDS: Final = 15.0
"""Longest time between two probes while healthy."""
RETRY_PROBE_SECONDS: Final = 1.0
"""Time between two probes after a request failed."""
PROBE_TIMEOUT_SECONDS: Final = 5.0
"""Timeout of a probe."""
READ_SECONDS: Final = 60.0
"""Shortest time between two reads of the kubeconfig Secret."""
REJECTED_SECONDS: Final = 300.0
"""Pause before a cluster that exceeded its memory limit is connected again."""
FAILURES: Final = 2
"""Consecutive failures before the cluster counts as disconnected."""

T = TypeVar("T")

_IS_VERSION: Final = re.compile(r"v\d[0-9A-Za-z.+~_-]{0,62}").fullmatch
# Events and conditions show the uid: it must not be a text of the server's choice.
_IS_UID: Final = re.compile(r"[0-9A-Za-z-]{1,64}").fullmatch
_log = get_logger("clusters")


class ProbeTimeout(Exception):
    """A request got no response in time."""


class ConnectionListener(Protocol):
    """Follows the connection: the informers and the view of the cluster."""

    async def forget(self) -> None:
        """Forget the caches: they may be of another cluster than the one that responds now."""

    def on_version(self, version: str) -> None:
        """Handle the version of the API server; called before `on_connected` if it is known."""

    async def on_connected(self, uid: str) -> None:
        """Handle a connect to the cluster of this uid."""

    def on_disconnected(self, why: str) -> None:
        """Handle a disconnect."""


class Connection:
    def __init__(
        self,
        ref: RemoteClusterRef,
        connect: Connect,
        transport: RemoteTransport,
        listener: ConnectionListener,
        *,
        clock: Clock,
        random: Random,
        connecting: asyncio.Semaphore,
        backoff: Backoff | None = None,
        read: Read | None = None,
    ) -> None:
        """`connecting` bounds the clusters that connect at once; `read` reads kubeconfigs from Secrets."""
        self._ref = ref
        self._connect = connect
        self._transport = transport
        self._listener = listener
        self._clock = clock
        self._random = random
        self._connecting = connecting
        self._backoff = backoff or Backoff(first=1.0, most=PROBE_SECONDS)
        self._read = read
        self._read_at = 0.0
        self._kubeconfig = b""
        """The kubeconfig as last read from its Secret."""
        self._used: RemoteClusterRef | None = None
        self._client: Client | None = None
        self._is_attached = False
        """True if the client is attached to the transport."""
        self._uid = ""
        self._version = ""
        self._failures = 0
        self._why = ""
        """The reason of the last disconnect that was logged."""
        self._rejection = ""
        """Why the cluster is to be disconnected for a while."""
        self._wake = asyncio.Event()

    def update(self, ref: RemoteClusterRef) -> None:
        """Take the current reference; a changed kubeconfig is used at once."""
        if ref != self._ref:
            self._ref = ref
            self._wake.set()

    def reject(self, why: str) -> None:
        """Disconnect, forget the caches and pause before the next connect: the cluster would exhaust our memory."""
        self._rejection = why
        self._wake.set()

    def probe_soon(self) -> None:
        """Probe soon: a request got no response."""
        if self._is_attached:
            self._wake.set()

    async def run(self) -> None:
        """Run until cancelled; then disconnect."""
        try:
            while True:
                self._wake.clear()
                await self._sleep(await self._step())
        finally:
            await self._drop()

    async def _step(self) -> float | None:
        """Probe the cluster once. Returns the seconds until the next probe; None if only a new kubeconfig helps."""
        if self._rejection:
            why, self._rejection, self._uid = self._rejection, "", ""
            await self._lose(why)
            await self._listener.forget()
            return REJECTED_SECONDS
        if self._used != self._ref:
            self._used, self._client, self._is_attached, self._failures = self._ref, None, False, 0
        elif await self._is_replaced():
            self._client, self._is_attached, self._failures = None, False, 0
        try:
            uid = await self._identify()
        except (ConfigError, ValueError) as error:
            if not isinstance(error, msgspec.MsgspecError):
                await self._lose(f"the kubeconfig is refused: {error}")
                return None if self._ref.secret is None else READ_SECONDS
            return await self._fail(error)
        except Exception as error:
            # Any exception that an untrusted server causes in our client affects only this cluster.
            return await self._fail(error)
        self._failures = 0
        return await self._on_response(uid)

    async def _identify(self) -> str:
        """Return the uid of the cluster; empty if the response lacks it."""
        if self._is_attached:
            return await self._probe()
        async with self._connecting:
            return await self._probe()

    async def _probe(self) -> str:
        if self._client is None:
            self._client = RemoteClient(self._connect(await self._resolve_kubeconfig()), timeout=PROBE_TIMEOUT_SECONDS)
        try:
            namespace = await self._within_time(self._client.get(NAMESPACES, SYSTEM_NAMESPACE))
            uid = str(namespace["metadata"]["uid"])
            return uid if _IS_UID(uid) else ""
        except (Forbidden, NotFound):
            return ""
        except TooManyRequests:
            if not self._is_attached:
                raise
            return self._uid

    async def _resolve_kubeconfig(self) -> RemoteClusterRef:
        """Return the reference with its kubeconfig, read from the Secret if needed."""
        if self._ref.secret is None:
            return self._ref
        self._kubeconfig = await self._read_secret(self._ref.secret)
        return replace(self._ref, kubeconfig=self._kubeconfig)

    async def _is_replaced(self) -> bool:
        """Return True if the Secret has another kubeconfig than the one in use."""
        secret = self._ref.secret
        if secret is None or not self._is_attached or self._clock.monotonic() < self._read_at + READ_SECONDS:
            return False
        try:
            return await self._read_secret(secret) != self._kubeconfig
        except Exception as error:
            # The current kubeconfig stays in use for as long as it works.
            _log.info("kubeconfig read failed", reason=_describe(error))
            return False

    async def _read_secret(self, secret: SecretKey) -> bytes:
        if self._read is None:
            raise KubeconfigUnreadable(
                f"{secret} with its kubeconfig cannot be read: no reader of Secrets is configured"
            )
        self._read_at = self._clock.monotonic()
        return await self._within_time(self._read(secret))

    async def _within_time(self, request: Awaitable[T]) -> T:
        task = asyncio.ensure_future(request)
        await first_of(task, self._clock.sleep(PROBE_TIMEOUT_SECONDS))
        if task.cancelled():
            raise ProbeTimeout(f"no answer in {PROBE_TIMEOUT_SECONDS:g} s")
        return task.result()

    async def _on_response(self, uid: str) -> float:
        was_attached, known = self._is_attached, self._uid
        if was_attached and (uid == known or not uid):
            await self._learn_version()
            return self._next_probe()
        if was_attached and known:
            await self._lose("another cluster responds at its address")
            return 0.0
        if self._client is not None and not was_attached:
            await self._attach(self._client, is_same=uid == known != "")
        self._is_attached, self._uid, self._why = True, uid, ""
        self._version = ""
        await self._learn_version()
        _log.info("cluster connected", uid=uid, version=self._version)
        await self._listener.on_connected(uid)
        return self._next_probe()

    async def _learn_version(self) -> None:
        """Read the server version. A server that does not report it stays connected."""
        if self._version or self._client is None:
            return
        try:
            version = str((await self._within_time(self._client.server_version()))["gitVersion"])
            self._version = version if _IS_VERSION(version) else ""
        except Exception as error:
            _log.info("server version unknown", reason=_describe(error))
            return
        self._listener.on_version(self._version)

    def _next_probe(self) -> float:
        """Return the seconds until the next probe, with jitter so that many clusters are not probed at once."""
        seconds = PROBE_SECONDS * (0.8 + self._random.random() / 5)
        return seconds if self._ref.secret is None else min(seconds, READ_SECONDS)

    async def _attach(self, client: Client, *, is_same: bool) -> None:
        if not is_same:
            # Requests for the old cluster must not reach the new one.
            await self._transport.detach()
            await self._listener.forget()
        await self._transport.attach(client.transport)

    async def _fail(self, error: Exception) -> float:
        self._failures += 1
        is_final = isinstance(error, Unauthorized) or self._failures >= FAILURES
        if self._is_attached and not is_final:
            return RETRY_PROBE_SECONDS
        await self._lose(_describe(error))
        return self._backoff.seconds(self._failures, self._random, getattr(error, "retry_after", None) or 0.0)

    async def _lose(self, why: str) -> None:
        if why != self._why:
            self._why = why
            _log.warning("cluster disconnected", reason=why)
        self._listener.on_disconnected(why)
        await self._drop()

    async def _drop(self) -> None:
        client, self._client, self._is_attached = self._client, None, False
        await self._transport.detach()
        if client is not None:
            await client.close()

    async def _sleep(self, seconds: float | None) -> None:
        if seconds is None:
            await self._wake.wait()
            return
        begun = self._clock.monotonic()
        await first_of(self._wake.wait(), self._clock.sleep(seconds))
        if self._used == self._ref and self._clock.monotonic() - begun < RETRY_PROBE_SECONDS <= seconds:
            # Failures come in bursts, one per broken watch: debounce them.
            await first_of(self._wait_for_update(), self._clock.sleep(RETRY_PROBE_SECONDS))

    async def _wait_for_update(self) -> None:
        while self._used == self._ref:
            self._wake.clear()
            await self._wake.wait()


def _describe(error: Exception) -> str:
    if isinstance(error, Unauthorized):
        return f"the credentials are rejected: {error}"
    return str(error) or type(error).__name__
