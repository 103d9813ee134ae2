"""Keeps webhook configurations on the server as they are declared; read by all replicas, written by the leader."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodeyard.admission.configurations import CLUSTER_ROLES, RESOURCES, bundles, configuration, drift
from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.admission.reach import Reach
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.process.logs import get_logger
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.rbac import registering_role
from nodeyard.runtime.webhooks import configuration_name

_log = get_logger("admission")


@dataclass(frozen=True)
class _Written:
    """What our last write was answered with. Where it still differs, others insist: it is not sent again and again."""

    wanted: Object
    resource_version: str


@dataclass
class Registrar:
    client: Client
    metrics: AdmissionMetrics
    _there: dict[tuple[str, str], Object | None] = field(default_factory=dict)
    _written: dict[tuple[str, str], _Written] = field(default_factory=dict)

    async def look(self, capability: Capability) -> list[bytes]:
        """Read what is on the server; the bundles by which it judges the capability's webhooks."""
        found = []
        for resource in RESOURCES:
            there = self._there[resource.kind, capability.name] = await self._get(
                resource, configuration_name(capability.name)
            )
            if there is not None:
                found.append(there)
        return bundles(found, capability.name)

    async def register(self, capability: Capability, reach: Reach, bundle: bytes) -> None:
        """Write what differs from what was looked at last."""
        owner = await self._get(CLUSTER_ROLES, registering_role(capability))
        for resource in RESOURCES:
            key = (resource.kind, capability.name)
            wanted, there = configuration(resource, capability, reach, bundle, owner), self._there.get(key)
            reason = drift(wanted, there)
            if not reason or self._is_settled(key, wanted, there):
                continue
            _log.info("registering webhooks", capability=capability.name, kind=resource.kind, reason=reason)
            client = self.client.managed_by(configuration_name(capability.name))
            answered = await client.apply(resource, wanted, force=True)
            self._there[key] = answered
            self._written[key] = _Written(wanted, answered["metadata"]["resourceVersion"])
            self.metrics.registrations.labels(capability.name, "missing" if there is None else "drift").inc()
            if left := drift(wanted, answered):
                _log.warning("webhooks are not as declared", capability=capability.name, kind=resource.kind,
                             reason=left)  # fmt: skip

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
