"""Connections to a cluster by an untrusted kubeconfig.

The kubeconfig is parsed in restricted mode: it can neither run a program nor read a file here nor set a proxy. Error
messages do not quote it. Response sizes are bounded, since one wrong address must not exhaust the memory that all
clusters share.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from nodeyard.client.api import Client
from nodeyard.client.errors import Forbidden, NotFound
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.client.resources import SECRETS
from nodeyard.client.transport import Transport
from nodeyard.runtime.capability import RemoteClusterRef, SecretKey

RESPONSE_BYTES: Final = 16 << 20
"""Size limit of one response: a list page whose objects have 160 KiB each. Decoded it may take ten times as much."""

Connect: TypeAlias = Callable[[RemoteClusterRef], Transport]
"""Opens a transport to a remote cluster; ConfigError if its kubeconfig is refused. Called on the loop that uses it."""


Read: TypeAlias = Callable[[SecretKey], Awaitable[bytes]]
"""Reads a kubeconfig from a Secret; raises KubeconfigUnreadable."""


class KubeconfigUnreadable(Exception):
    """The kubeconfig cannot be read; the message says why."""


def secret_reader(client: Client) -> Read:
    """Return a function that reads kubeconfigs from Secrets of this server by name."""

    async def read(secret: SecretKey) -> bytes:
        try:
            found = await client.get(SECRETS, secret.name, secret.namespace)
        except NotFound:
            raise KubeconfigUnreadable(f"{secret} with its kubeconfig does not exist") from None
        except Forbidden as error:
            raise KubeconfigUnreadable(
                f"{secret} with its kubeconfig may not be read: {secret.remedy or error}"
            ) from None
        try:
            return b64decode((found.get("data") or {})[secret.key], validate=True)
        except (KeyError, TypeError, ValueError):
            raise KubeconfigUnreadable(f"{secret} has no kubeconfig under the key {secret.key}") from None

    return read


def connect_by_kubeconfig(ref: RemoteClusterRef) -> Transport:
    config = parse_kubeconfig(ref.kubeconfig, source=f"kubeconfig of {ref.name}")
    return HttpTransport(config, largest=RESPONSE_BYTES)
