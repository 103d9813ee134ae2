"""Client configuration of one cluster: its address, trusted CAs and credentials.

A `Config` is read once, from a kubeconfig or a pod's service account, and does not change. Token files rotate and exec
plugins issue credentials that expire; the `CredentialCache` rereads those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nodeyard.client.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Material:
    """PEM data, inline or in a file that may be replaced at run time."""

    data: bytes | None = field(default=None, repr=False)
    path: Path | None = None

    def read(self) -> bytes:
        if self.data is not None:
            return self.data
        if self.path is None:
            raise ConfigError("a certificate or key is given neither as data nor as a file")
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
    """The cluster information passed to the plugin if `provideClusterInfo` is set."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """User impersonation, subject to RBAC."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Credentials:
    """Credentials of the client; all empty is anonymous. Precedence: token file, token, username and password."""

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
    """The base URL, which may contain a path prefix."""
    namespace: str = "default"
    authority: Material | None = None
    """Trusted CA certificates; None for the system's."""
    verify: bool = True
    server_name: str = ""
    """The TLS server name, if it is not the URL's host."""
    proxy: str = ""
    credentials: Credentials = field(default_factory=Credentials)
    source: str = ""
    """The origin of the configuration, for messages."""


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None


SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster(env: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> bool:
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and (directory / "token").exists()


def load_in_cluster(env: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> Config:
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise ConfigError(
            "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; pass a kubeconfig"
        )
    token = directory / "token"
    if not token.exists():
        raise ConfigError(f"{token}: no service account token; is automountServiceAccountToken off?")
    namespace = directory / "namespace"
    return Config(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=read_file(namespace).decode().strip() if namespace.exists() else "default",
        authority=Material(path=directory / "ca.crt"),
        credentials=Credentials(token_file=token),
        source="the pod's service account",
    )
