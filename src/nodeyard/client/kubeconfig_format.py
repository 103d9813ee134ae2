"""Types of a kubeconfig file. Unknown keys are ignored, as in kubectl."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from nodeyard.client.errors import ConfigError
from nodeyard.kube.manifests import ManifestError, load

DEEPEST = 100
"""Nesting limit of an untrusted kubeconfig; a much deeper tree overflows the stack of the process."""


class Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class EnvVar(msgspec.Struct, frozen=True):
    name: str
    value: str = ""


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(default=None, name="as-user-extra")
    exec: Exec | None = None
    auth_provider: dict[str, Any] | None = None


class Context(msgspec.Struct, frozen=True, rename="kebab"):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: User = User()


class NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: Context = Context()


class File(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str | None = None
    clusters: list[NamedCluster] | None = None
    users: list[NamedUser] | None = None
    contexts: list[NamedContext] | None = None


def parse_file(text: bytes, source: str) -> File:
    try:
        tree = load(text)
        return msgspec.convert(tree if tree is not None else {}, File)
    except ManifestError as error:
        if not isinstance(error.__cause__, yaml.YAMLError):
            # A value that does not fit its tag, for example. It is not quoted, because it may be a password.
            raise ConfigError(f"{source}: not a kubeconfig: it contains a value that YAML cannot parse") from None
        where = getattr(error.__cause__, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise ConfigError(f"{source}{line}: not valid YAML") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: not a kubeconfig: {error}") from None


def refuse_bombs(text: bytes, source: str, limit: int) -> None:
    """Reject YAML bombs: too many bytes or levels, and aliases, which could expand to millions of values."""
    if len(text) > limit:
        raise ConfigError(f"{source}: larger than {limit} bytes")
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ConfigError(f"{source}: YAML aliases are not allowed in this kubeconfig")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise ConfigError(f"{source}: nested more than {DEEPEST} levels deep")
    except yaml.YAMLError:
        return  # parse_file reports it with its line
