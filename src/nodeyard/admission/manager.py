"""Manages the webhooks of one process: server, certificates and webhook configurations, from start to stop.

    bind ─▶ certificates ─▶ listen ─▶ caches synced ─▶ registered          repeated every few seconds

Every replica serves; only the leader of a capability writes its webhook configurations. In observe-only mode only the
certificates and CA bundles of webhooks that are already registered are renewed. A failed step is retried in the next
round and reported by /readyz, which fails only while nothing listens or once the certificate has expired.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from nodeyard.admission.certificates import BadCertificate, FileCertificates, RotationPolicy, ServingCertificate
from nodeyard.admission.client_config import Reach
from nodeyard.admission.lookups import Lookups
from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.admission.registrar import Paths, Registrar
from nodeyard.admission.reviewer import Reviewer
from nodeyard.admission.secret_certs import SharedCertificates
from nodeyard.admission.server import ClientTrust, WebhookServer
from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.health import Address, Health
from nodeyard.runtime.rbac import remedy
from nodeyard.runtime.reconcile.controller import Controller
from nodeyard.runtime.webhooks import Webhook

# How often leadership and cache sync are polled; this sends no request.
POLL_SECONDS: Final = 0.25
# Minimum interval between reads of the webhook configurations because of unknown paths.
REREAD_SECONDS: Final = 1.0

_State: TypeAlias = tuple[bool, bool, tuple[Webhook, ...]]
"""For one capability: may it write, are its caches synced, and its current webhooks."""

_log = get_logger("admission")


@dataclass(frozen=True)
class Webhooks:
    """The --webhook options."""

    bind: Address
    reach: Reach | None = None
    """Address at which the API server reaches the webhooks; None serves them without registering them."""
    folder: Path | None = None
    """Directory of user-managed certificates; None generates them into a Secret."""
    rotation: RotationPolicy = field(default_factory=RotationPolicy)
    client_authority: Path | None = None
    """CA of the API servers' client certificates; None identifies API servers by the token in the path."""
    client_names: tuple[str, ...] = ()


class Certificates(Protocol):
    async def refresh(self, published: Sequence[bytes]) -> ServingCertificate: ...


class Admission:
    def __init__(
        self, client: Client, controllers: Sequence[Controller], metrics: Metrics, clock: Clock, *, observes: bool
    ) -> None:
        """`observes`: register nothing; only renew certificates of webhooks that are already registered."""
        self._controllers = [each for each in controllers if each.capability.admission.webhooks]
        self._metrics = AdmissionMetrics(metrics)
        self._paths = Paths(clock)
        self._registrar = Registrar(client, self._metrics, clock, self._paths)
        self._client = client
        self._clock = clock
        self._observes = observes
        self._lookups = [
            Lookups(client, each.mapper, remedy(each.capability), each.view.record_lookup) for each in self._controllers
        ]
        reviewers = [
            Reviewer(each, webhook, self._metrics, lookups)
            for each, lookups in zip(self._controllers, self._lookups, strict=True)
            for webhook in each.capability.admission.webhooks
        ]
        self._server = WebhookServer(reviewers, self)
        self._read_at = -REREAD_SECONDS
        self._reading = asyncio.Lock()
        self._error = "starting"
        self._expires: datetime | None = None
        """Expiry of the presented certificate."""
        self._task: asyncio.Task[None] | None = None

    def bind(self, address: Address) -> int:
        """Bind the address before anything else starts; return the port. Raises OSError if the address is in use."""
        return self._server.bind(address)

    @asynccontextmanager
    async def running(self, options: Webhooks) -> AsyncIterator[None]:
        self._task = asyncio.create_task(self._run(options), name="webhooks")
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._server.close()
            await asyncio.gather(*(each.close() for each in self._lookups))

    def add_checks(self, health: Health) -> Health:
        """Add the checks of the webhooks to other checks."""
        return Health(
            live={**health.live, "webhooks": self._find_stopped},
            ready={**health.ready, "webhooks": self._find_not_serving},
            warnings={**health.warnings, "webhooks": self._warn},
        )

    def __contains__(self, path: str) -> bool:
        """Return whether this path is registered."""
        return path in self._paths

    async def refresh(self) -> None:
        """Read the webhook configurations again: another replica may have changed a token a moment ago."""
        async with self._reading:
            if self._clock.monotonic() - self._read_at < REREAD_SECONDS:
                return
            self._read_at = self._clock.monotonic()
            with suppress(ClientError):
                await self._read()

    def _find_stopped(self) -> str:
        return "the webhook manager has stopped" if self._task is not None and self._task.done() else ""

    def _find_not_serving(self) -> str:
        if not self._server.is_listening:
            return f"not listening: {self._error}"
        is_over = self._expires is not None and self._expires <= self._clock.now()
        return f"the certificate expired at {self._expires}" if is_over else ""

    def _warn(self) -> str:
        if not self._server.is_listening or not self._error:
            return ""
        return f"not maintained, certificate valid until {self._expires}: {self._error}"

    # maintenance

    async def _run(self, options: Webhooks) -> None:
        certificates = self._certificates(options)
        while True:
            state = self._state()
            try:
                await self._maintain(certificates, options)
                self._error = ""
            except (ClientError, BadCertificate, OSError) as error:
                self._error = str(error)
                _log.warning("webhook maintenance failed", reason=str(error))
            except Exception as error:
                self._error = f"{type(error).__name__}: {error}"
                _log.exception("webhook maintenance failed")
            await self._sleep(state, options.rotation.interval)

    async def _maintain(self, certificates: Certificates, options: Webhooks) -> None:
        reach = options.reach
        published = await self._read()
        served = await certificates.refresh(published)
        if await self._server.present(served.pair, await self._trust(options)):
            _log.info("certificate presented", expires=str(served.expires))
            self._metrics.expiry.set(served.expires.timestamp())
        self._expires = served.expires
        for controller in self._controllers:
            if not controller.fence.may_write():
                continue
            if self._observes or (controller.is_synced and controller.observes()):
                await self._renew(controller, served.bundle)
            elif reach is not None and controller.is_synced:
                await self._register(controller, reach, served.bundle)

    async def _read(self) -> list[bytes]:
        return [bundle for each in self._controllers for bundle in await self._registrar.read(each.capability)]

    async def _register(self, controller: Controller, reach: Reach, bundle: bytes) -> None:
        """Register one capability. An error is logged, so that the others are registered all the same."""
        capability = _with_current_rules(controller)
        try:
            await self._registrar.register(capability, reach, bundle, controller.fence.may_write)
        except ClientError as error:
            _log.warning("webhook registration failed", capability=capability.name, reason=str(error))

    async def _renew(self, controller: Controller, bundle: bytes) -> None:
        """Renew the CA bundles in observe-only mode: registered webhooks would fail when their certificate expires."""
        capability = controller.capability
        try:
            await self._registrar.renew(capability, bundle, controller.fence.may_write)
        except ClientError as error:
            _log.warning("CA bundle renewal failed", capability=capability.name, reason=str(error))

    async def _trust(self, options: Webhooks) -> ClientTrust | None:
        path = options.client_authority
        if path is None:
            return None
        try:
            return ClientTrust(await asyncio.to_thread(path.read_bytes), frozenset(options.client_names))
        except OSError as error:
            raise BadCertificate(f"{path}: cannot be read: {error.strerror or error}") from None

    def _certificates(self, options: Webhooks) -> Certificates:
        if options.folder is not None:
            return FileCertificates(options.folder)
        host = (options.bind.host or "localhost") if options.reach is None else options.reach.host
        return SharedCertificates(self._client, host, options.rotation, self._clock, may_write=not self._observes)

    def _state(self) -> list[_State]:
        return [
            (each.fence.may_write(), each.is_synced, _with_current_rules(each).admission.webhooks)
            for each in self._controllers
        ]

    async def _sleep(self, state: list[_State], seconds: float) -> None:
        """Sleep until the next round, or until leadership, cache sync or the webhooks change."""
        deadline = self._clock.monotonic() + seconds
        while self._clock.monotonic() < deadline and self._state() == state:
            await self._clock.sleep(min(POLL_SECONDS, seconds))


def _with_current_rules(controller: Controller) -> Capability:
    """Return the capability with its current webhooks: rules follow the kinds that users declare."""
    capability = controller.capability
    if not controller.is_synced or not any(each.further for each in capability.admission.webhooks):
        return capability
    try:
        webhooks = tuple(each.as_of(controller.view) for each in capability.admission.webhooks)
        return replace(capability, admission=replace(capability.admission, webhooks=webhooks))
    except Exception:
        # A user's declaration must not keep the other webhooks from being registered.
        _log.exception("webhook rules failed", capability=capability.name)
        return capability
