"""Builds the clientConfig of our webhooks: a URL, or a Service of the cluster."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults

HTTPS_PORT: Final = 443


class ReachError(ValueError):
    """A URL or Service is invalid; the text has the value and the expected form."""


@dataclass(frozen=True)
class ByUrl:
    base: str
    """`https://host:port`, without a path."""

    @property
    def host(self) -> str:
        """The name that the certificate must have."""
        return urlsplit(self.base).hostname or ""

    def client_config(self, path: str, bundle: bytes) -> Object:
        return {"url": f"{self.base}{path}", **_trust(bundle)}


@dataclass(frozen=True)
class ByService:
    namespace: str
    name: str
    port: int = HTTPS_PORT

    @property
    def host(self) -> str:
        return f"{self.name}.{self.namespace}.svc"

    def client_config(self, path: str, bundle: bytes) -> Object:
        service = {"namespace": self.namespace, "name": self.name, "port": self.port, "path": path}
        return {"service": service, **_trust(bundle)}


Reach = ByUrl | ByService


def parse_url(text: str) -> ByUrl:
    """Parse a URL such as `https://10.0.0.5:9443`."""
    try:
        parts = urlsplit(text)
        is_plain = parts.scheme == "https" and parts.hostname and parts.path in ("", "/") and not parts.query
        port = parts.port
    except ValueError:
        is_plain, port = False, None
    if not is_plain or parts.username or port == 0:
        raise ReachError(f'"{text}" is not a webhook URL; give https://HOST:PORT, for example https://10.0.0.5:9443')
    return ByUrl(f"https://{parts.netloc}")


def parse_service(text: str) -> ByService:
    """Parse `NAMESPACE/NAME[:PORT]`; the default port is 443."""
    place, colon, port = text.partition(":")
    namespace, slash, name = place.partition("/")
    is_port = not colon or (port.isdigit() and 0 < int(port) < 65536)
    if not slash or not is_port or label_faults(namespace) or label_faults(name):
        raise ReachError(f'"{text}" is not a Service; give NAMESPACE/NAME, for example nodeyard-system/nodeyard-pools')
    return ByService(namespace, name, int(port) if colon else HTTPS_PORT)


def _trust(bundle: bytes) -> Object:
    """Without a caBundle the API server trusts the CAs of its host."""
    return {"caBundle": b64encode(bundle).decode()} if bundle else {}
