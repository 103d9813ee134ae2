"""What stands in a kubeconfig file, as types. Unknown keys are passed over, as kubectl does."""

from __future__ import annotations

from typing import Any

import msgspec
import yaml

from nodeyard.client.errors import ConfigError

DEEPEST = 100
"""Levels of a kubeconfig that somebody gave us; a tree that is much deeper overflows the stack of the process."""


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
        tree = yaml.load(text, Loader=yaml.CSafeLoader)
        return msgspec.convert(tree if tree is not None else {}, File)
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where else ""
        raise ConfigError(f"{source}{line}: is no YAML") from None
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: is no kubeconfig: {error}") from None
    except (ValueError, RecursionError):
        # A date or a number that is none. Unquoted: it may be a password.
        raise ConfigError(f"{source}: is no kubeconfig: it has a value that YAML cannot read") from None


def refuse_bombs(text: bytes, source: str, limit: int) -> None:
    """No more bytes and levels than a real kubeconfig has, and no aliases, which could stand for millions of values."""
    if len(text) > limit:
        raise ConfigError(f"{source}: is larger than {limit} bytes")
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.AliasEvent):
                raise ConfigError(f"{source}: YAML aliases are not accepted here")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                raise ConfigError(f"{source}: is nested more than {DEEPEST} levels deep")
    except yaml.YAMLError:
        return  # said with its line by parse_file
