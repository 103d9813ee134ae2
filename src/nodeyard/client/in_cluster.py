"""In-cluster configuration: the API server's address from the environment, a rotating token and a CA from files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nodeyard.client.config import Config, Credentials, Material, read_file
from nodeyard.client.errors import ConfigError

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
