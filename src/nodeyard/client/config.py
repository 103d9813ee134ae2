"""How to reach one cluster, as a value: where it is, whom to trust, who we are.

A `Config` is read once, from a kubeconfig or from what a pod is given, and does not change. What is behind it may:
token files rotate, exec plugins issue credentials that expire. Reading those is the `Keyring`'s work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodeyard.client.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Material:
    """PEM data, given in place or in a file that may be replaced while we run."""

    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None

    def read(self) -> bytes:
        if self.data is not None:
            return self.data
        if self.path is None:
            raise ConfigError("a certificate or key was given neither as data nor as a file")
        return read_file(self.path)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A command that prints credentials (client.authentication.k8s.io)."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    cluster_info: Mapping[str, object] | None = None
    """What the plugin is told about the cluster, where it asked (`provideClusterInfo`)."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Act as somebody else, where RBAC allows."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who we are. All empty is anonymous; a token file beats a token, and either beats a name and password."""

    token: str = field(default="", repr=False)
    token_file: Path | None = None
    username: str = ""
    password: str = field(default="", repr=False)
    certificate: Material | None = None
    key: Material | None = field(default=None, repr=False)
    plugin: ExecPlugin | None = None
    impersonate: Impersonation | None = None


@dataclass(frozen=True, slots=True)
class Config:
    server: str
    """The base URL; it may have a path, under which the API then lies."""
    namespace: str = "default"
    authority: Material | None = None
    """Whom to trust; the system's roots when absent."""
    verify: bool = True
    server_name: str = ""
    """The name to ask for and to expect in the certificate, where it is not the URL's host."""
    proxy: str = ""
    credentials: Credentials = field(default_factory=Credentials)
    source: str = ""
    """Where this was read, for messages."""


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
