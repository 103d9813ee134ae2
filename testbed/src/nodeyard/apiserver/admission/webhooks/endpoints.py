"""Endpoints of webhooks: URL, CA bundle, and the address of a Service.

The embedded server has no network for Services. The embedding program may give their addresses
(`Server(services={"NAME.NAMESPACE": "HOST:PORT"})`). Otherwise the Service object is resolved as on the real server,
which works for `type: ExternalName`.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass

from nodeyard.apiserver.admission.webhooks.errors import CallError
from nodeyard.apiserver.resources import GroupResource
from nodeyard.apiserver.store import Store
from nodeyard.kube.goformat import quote
from nodeyard.kube.json import Object

_SERVICES = GroupResource("", "services")

Address = tuple[str, int]


def read_address(text: str) -> Address:
    """Parse `HOST:PORT`; the default port is 443."""
    host, colon, port = text.rpartition(":")
    return (host, int(port)) if colon else (port, 443)


@dataclass(frozen=True, slots=True)
class ServiceReference:
    name: str
    namespace: str
    port: int

    @property
    def host(self) -> str:
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A webhook's clientConfig."""

    url: str
    ca: bytes
    service: ServiceReference | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context that trusts the CA bundle, or the system's if there is none."""
        try:
            context = ssl.create_default_context(cadata=self.ca.decode() or None)
        except (ssl.SSLError, ValueError) as fault:
            raise CallError(
                "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
            ) from fault
        # As in Go, and unlike newer Pythons: any certificate in the bundle is a trust anchor, and one without
        # an authority key identifier is accepted.
        context.verify_flags = ssl.VERIFY_X509_PARTIAL_CHAIN
        return context


def read_endpoint(config: Object) -> Endpoint:
    ca = b64decode(config.get("caBundle") or "")
    service = config.get("service")
    if not service:
        return Endpoint(config.get("url") or "", ca)
    reference = ServiceReference(service["name"], service["namespace"], service.get("port") or 443)
    path = (service.get("path") or "").removeprefix("/")
    return Endpoint(f"https://{reference.host}:{reference.port}/{path}", ca, reference)


class Services:
    """Resolves Services to addresses."""

    def __init__(self, store: Store, addresses: Mapping[str, Address] | None = None) -> None:
        self._store = store
        self._addresses = dict(addresses or {})

    def set(self, name: str, namespace: str, address: Address) -> None:
        """Set the address of a Service."""
        self._addresses[f"{name}.{namespace}"] = address

    def resolve(self, service: ServiceReference) -> Address:
        known = self._addresses.get(f"{service.name}.{service.namespace}")
        if known is not None:
            return known
        stored = self._store.get(_SERVICES, service.namespace, service.name)
        if stored is None:
            raise LookupError(f"service {quote(service.name)} not found")
        spec = stored.object().get("spec") or {}
        if spec.get("type") == "ExternalName":
            return spec.get("externalName", ""), service.port
        if spec.get("clusterIP") in (None, "", "None"):
            raise LookupError('cannot route to service with ClusterIP "None"')
        if service.port not in [port.get("port") for port in spec.get("ports") or ()]:
            raise LookupError(f"no service port {service.port} found for service {quote(service.name)}")
        return spec["clusterIP"], service.port
