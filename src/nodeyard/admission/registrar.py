"""Keeps webhook configurations on the server as declared. All replicas read them; the leader writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Final

from nodeyard.admission.client_config import Reach
from nodeyard.admission.configurations import (
    CLUSTER_ROLES,
    RESOURCES,
    bundles,
    configuration,
    drift,
    paths,
    token_in,
    with_bundle,
)
from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.kube.names import CAPABILITY
from nodeyard.process.clock import Clock
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.rbac import registering_role
from nodeyard.runtime.webhooks import configuration_name

TOKEN_BYTES: Final = 16
TOKEN_SECONDS: Final = 3600.0
FORMER_SECONDS: Final = 300.0

_log = get_logger("admission")


@dataclass(frozen=True)
class _Written:
    """Our last write and its resourceVersion. If the answer still differs, somebody else enforces it: do not retry."""

    wanted: Object
    resource_version: str


@dataclass
class Paths:
    """Registered paths, by any replica. A replaced path stays valid for some minutes, because API servers learn of the
    new one with a delay."""

    clock: Clock
    _seen: dict[str, dict[str, float]] = field(default_factory=dict)
    """Paths by capability, with the time each was last read."""

    def __contains__(self, path: str) -> bool:
        return any(path in known for known in self._seen.values())

    def add(self, capability: str, found: Iterable[str]) -> None:
        now = self.clock.monotonic()
        known = {path: at for path, at in self._seen.get(capability, {}).items() if now - at < FORMER_SECONDS}
        self._seen[capability] = known | dict.fromkeys(found, now)


@dataclass
class _Token:
    """The random last segment of a path."""

    text: str
    since: float


@dataclass
class Registrar:
    client: Client
    metrics: AdmissionMetrics
    clock: Clock
    paths: Paths
    _tokens: dict[str, _Token] = field(default_factory=dict)
    _there: dict[tuple[str, str], Object | None] = field(default_factory=dict)
    _written: dict[tuple[str, str], _Written] = field(default_factory=dict)

    async def read(self, capability: Capability) -> list[bytes]:
        """Read the capability's configurations from the server; return their caBundles."""
        found = []
        for resource in RESOURCES:
            there = self._there[resource.kind, capability.name] = await self._get(
                resource, configuration_name(capability.name)
            )
            if there is not None:
                found.append(there)
        self.paths.add(capability.name, paths(found, capability.name))
        return bundles(found, capability.name)

    async def register(
        self, capability: Capability, reach: Reach, bundle: bytes, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        """Write the configurations that differ from those last read. `may_write` is checked right before each write."""
        owner = await self._get(CLUSTER_ROLES, registering_role(capability))
        token = self._token(capability.name)
        for resource in RESOURCES:
            key = (resource.kind, capability.name)
            wanted = configuration(resource, capability, reach, bundle, owner, token=token)
            there = self._there.get(key)
            reason = drift(wanted, there)
            if not reason or self._is_settled(key, wanted, there):
                continue
            if not may_write():
                return
            answered = await self._write(resource, wanted)
            _log.info("webhook configuration written", capability=capability.name, kind=resource.kind,
                      reason=reason)  # fmt: skip
            self._there[key] = answered
            self.paths.add(capability.name, paths([answered], capability.name))
            self._written[key] = _Written(wanted, answered["metadata"]["resourceVersion"])
            self.metrics.registrations.labels(capability.name, "missing" if there is None else "drift").inc()
            if left := drift(wanted, answered):
                _log.warning("webhook configuration differs after write", capability=capability.name,
                             kind=resource.kind, reason=left)  # fmt: skip

    async def renew(self, capability: Capability, bundle: bytes, may_write: Callable[[], bool]) -> None:
        """Replace the caBundle of webhooks that are already registered, and change nothing else."""
        for resource in RESOURCES:
            key = (resource.kind, capability.name)
            there = self._there.get(key)
            entries = None if there is None else with_bundle(there, capability.name, bundle)
            if there is None or entries is None or not may_write():
                continue
            name, version = configuration_name(capability.name), there["metadata"]["resourceVersion"]
            patch: Object = {"metadata": {"resourceVersion": version}, "webhooks": entries}
            answered = await self.client.managed_by(name).patch(resource, name, patch)
            self._there[key] = answered
            _log.info("CA bundle renewed", capability=capability.name, kind=resource.kind)

    def _token(self, capability: str) -> str:
        """Return the registered token, or a new one every hour: API servers show it in errors of failing webhooks."""
        now, token = self.clock.monotonic(), self._tokens.get(capability)
        if token is None:
            there = filter(None, (self._there.get((resource.kind, capability)) for resource in RESOURCES))
            known = next(filter(None, map(token_in, paths(there, capability))), "")
            token = self._tokens[capability] = _Token(known or token_hex(TOKEN_BYTES), now)
        elif now - token.since > TOKEN_SECONDS:
            token = self._tokens[capability] = _Token(token_hex(TOKEN_BYTES), now)
        return token.text

    async def _write(self, resource: Resource[Object], wanted: Object) -> Object:
        """Apply a configuration. An apply keeps list items of other managers; a second write removes them."""
        client = self.client.managed_by(configuration_name(wanted["metadata"]["labels"][CAPABILITY]))
        answered = await client.apply(resource, wanted, force=True)
        if not drift(wanted, answered):
            return answered
        ours = {entry["name"]: entry for entry in wanted["webhooks"]}
        entries = [ours.get(entry["name"], entry) for entry in answered.get("webhooks") or ()]
        metadata = {"resourceVersion": answered["metadata"]["resourceVersion"]}
        return await client.patch(resource, wanted["metadata"]["name"], {"metadata": metadata, "webhooks": entries})

    def _is_settled(self, key: tuple[str, str], wanted: Object, there: Object | None) -> bool:
        written = self._written.get(key)
        if written is None or there is None:
            return False
        return written == _Written(wanted, there["metadata"]["resourceVersion"])

    async def _get(self, resource: Resource[Object], name: str) -> Object | None:
        try:
            return await self.client.get(resource, name)
        except NotFound:
            return None
