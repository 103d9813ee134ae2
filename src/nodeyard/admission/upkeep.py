"""Admission in one process: the server, its certificates and its registration, kept up from start to stop.

    bind ─▶ certificates ─▶ listen ─▶ caches synced ─▶ registered          and again, every few seconds

Every replica serves, also one that follows; only the leader of a capability writes its configurations, and nobody does
while that capability only observes. What fails is tried again at the next turn and meanwhile told by /readyz, which
fails for it while nothing listens and once the certificate has run out: until then, who asks is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from nodeyard.admission.certificates import BadCertificate, Served, Terms
from nodeyard.admission.files import FileCertificates
from nodeyard.admission.kinds import Kinds
from nodeyard.admission.lookups import Lookups
from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.admission.reach import Reach
from nodeyard.admission.registrar import Registrar
from nodeyard.admission.reviewer import Reviewer
from nodeyard.admission.server import WebhookServer
from nodeyard.admission.shared import SharedCertificates
from nodeyard.client.api import Client
from nodeyard.client.errors import ClientError
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.controller import Controller
from nodeyard.runtime.health import Address, Health
from nodeyard.runtime.rbac import remedy
from nodeyard.runtime.webhooks import Webhook

# How soon a change of the leader or a cache that is synced is acted on; asks nobody but ourselves.
GLANCE_SECONDS: Final = 0.25

_State: TypeAlias = tuple[bool, bool, tuple[Webhook, ...]]
"""Of a capability: whether it may write, whether it knows the cluster, and its webhooks as they are now."""

_log = get_logger("admission")


@dataclass(frozen=True)
class Webhooks:
    """What a person chooses about them."""

    bind: Address
    reach: Reach | None = None
    """None: they are served, but the API server is not told of them."""
    folder: Path | None = None
    """Certificates that the user manages; else our own, in a Secret."""
    terms: Terms = field(default_factory=Terms)


class Certificates(Protocol):
    async def refresh(self, published: Sequence[bytes]) -> Served: ...


class Admission:
    def __init__(
        self, client: Client, controllers: Sequence[Controller], metrics: Metrics, clock: Clock, *, observes: bool
    ) -> None:
        """`observes`: nothing is written, neither certificates nor registrations."""
        self._controllers = [each for each in controllers if each.capability.webhooks]
        self._metrics = AdmissionMetrics(metrics)
        self._registrar = Registrar(client, self._metrics)
        self._client = client
        self._clock = clock
        self._observes = observes
        self._lookups = [self._lookups_of(each) for each in self._controllers]
        self._server = WebhookServer(
            Reviewer(each, webhook, self._metrics, lookups)
            for each, lookups in zip(self._controllers, self._lookups, strict=True)
            for webhook in each.capability.webhooks
        )
        self._wrong = "starting"
        self._expires: datetime | None = None
        """When the certificate runs out that is presented."""
        self._task: asyncio.Task[None] | None = None

    def bind(self, address: Address) -> int:
        """Take the address before anything else starts; its port. Raises OSError where it is taken."""
        return self._server.bind(address)

    @asynccontextmanager
    async def running(self, chosen: Webhooks) -> AsyncIterator[None]:
        self._task = asyncio.create_task(self._run(chosen), name="webhooks")
        try:
            yield
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._server.close()
            await asyncio.gather(*(each.close() for each in self._lookups))

    def _lookups_of(self, controller: Controller) -> Lookups:
        kinds = Kinds(self._client, controller.served, self._clock)
        return Lookups(self._client, kinds, remedy(controller.capability), controller.view.see)

    def joined_to(self, health: Health) -> Health:
        """Its checks beside those of others."""
        return Health(
            live={**health.live, "webhooks": self._ended},
            ready={**health.ready, "webhooks": self._not_serving},
            telling={**health.telling, "webhooks": self._troubled},
        )

    def _ended(self) -> str:
        return "their upkeep has ended" if self._task is not None and self._task.done() else ""

    def _not_serving(self) -> str:
        if not self._server.is_listening:
            return f"not listening: {self._wrong}"
        is_over = self._expires is not None and self._expires <= self._clock.now()
        return f"the certificate ran out at {self._expires}" if is_over else ""

    def _troubled(self) -> str:
        if not self._server.is_listening or not self._wrong:
            return ""
        return f"not looked after, with a certificate until {self._expires}: {self._wrong}"

    # the turns

    async def _run(self, chosen: Webhooks) -> None:
        certificates = self._certificates(chosen)
        while True:
            state = self._state()
            try:
                await self._turn(certificates, chosen.reach)
                self._wrong = ""
            except (ClientError, BadCertificate, OSError) as error:
                self._wrong = str(error)
                _log.warning("webhooks are looked after later", reason=str(error))
            except Exception as error:
                self._wrong = f"{type(error).__name__}: {error}"
                _log.exception("webhooks are looked after later")
            await self._rest(state, chosen.terms.interval)

    async def _turn(self, certificates: Certificates, reach: Reach | None) -> None:
        published = [bundle for each in self._controllers for bundle in await self._registrar.look(each.capability)]
        served = await certificates.refresh(published)
        if await self._server.present(served.pair):
            _log.info("presenting a certificate", expires=str(served.expires))
            self._metrics.expiry.set(served.expires.timestamp())
        self._expires = served.expires
        if reach is None or self._observes:
            return
        for controller in self._controllers:
            if controller.gate.may_write() and controller.is_synced and not controller.observes():
                await self._register(_present(controller), reach, served.bundle)

    async def _register(self, capability: Capability, reach: Reach, bundle: bytes) -> None:
        """What fails for one capability does not keep the others from being registered."""
        try:
            await self._registrar.register(capability, reach, bundle)
        except ClientError as error:
            _log.warning("webhooks are registered later", capability=capability.name, reason=str(error))

    def _certificates(self, chosen: Webhooks) -> Certificates:
        if chosen.folder is not None:
            return FileCertificates(chosen.folder)
        host = (chosen.bind.host or "localhost") if chosen.reach is None else chosen.reach.host
        return SharedCertificates(self._client, host, chosen.terms, self._clock, may_write=not self._observes)

    def _state(self) -> list[_State]:
        return [(each.gate.may_write(), each.is_synced, _present(each).webhooks) for each in self._controllers]

    async def _rest(self, state: list[_State], seconds: float) -> None:
        """Until the next look, or until what one may do has changed."""
        deadline = self._clock.monotonic() + seconds
        while self._clock.monotonic() < deadline and self._state() == state:
            await self._clock.sleep(min(GLANCE_SECONDS, seconds))


def _present(controller: Controller) -> Capability:
    """With the webhooks as they are to be registered now: what users declare may have come or gone."""
    capability = controller.capability
    if not controller.is_synced or not any(each.further for each in capability.webhooks):
        return capability
    try:
        return replace(capability, webhooks=tuple(each.as_of(controller.view) for each in capability.webhooks))
    except Exception:
        # What somebody declares must not keep the others from being registered.
        _log.exception("registering what is known beforehand", capability=capability.name)
        return capability
