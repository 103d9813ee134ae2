"""Kubeconfig files: contexts, the merged KUBECONFIG list, and what a cluster or user entry may say.

Merging follows kubectl: of several files the first to define a cluster, user or context wins, likewise the first
current-context; relative paths count from the file that names them; missing files of a list are passed over.

A kubeconfig that someone else wrote (a leaf cluster's, taken from an object) is read with `restricted=True`: it can
then neither run a command nor read a file here, nor send us through a proxy.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from nodeyard.client.config import Config, Credentials, ExecPlugin, Impersonation, Material, read_file
from nodeyard.client.errors import ConfigError, NoCluster
from nodeyard.client.incluster import is_in_cluster, load_in_cluster
from nodeyard.client.kubeconfig_format import (
    Cluster,
    Context,
    Exec,
    File,
    NamedCluster,
    NamedContext,
    NamedUser,
    User,
    parse_file,
    refuse_bombs,
)

DEFAULT_PATH = Path("~/.kube/config")
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
RESTRICTED_BYTES = 256 * 1024

_Named = TypeVar("_Named", NamedCluster, NamedUser, NamedContext)


def load_config(
    kubeconfig: str | os.PathLike[str] | None = None,
    *,
    context: str = "",
    env: Mapping[str, str] = os.environ,
) -> Config:
    """The kubeconfig named, else that of KUBECONFIG, else ~/.kube/config, else what the pod is given."""
    if kubeconfig is not None:
        return load_kubeconfig([Path(kubeconfig)], context=context)
    paths = [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part] or [DEFAULT_PATH.expanduser()]
    present = [path for path in paths if path.exists()]
    if present:
        return load_kubeconfig(present, context=context)
    if is_in_cluster(env):
        return load_in_cluster(env)
    raise NoCluster(
        f"no cluster to speak to: {', '.join(map(str, paths))} not found and this is no pod; "
        "give --kubeconfig or set KUBECONFIG"
    )


def load_kubeconfig(paths: Sequence[Path], *, context: str = "") -> Config:
    """One Config from one or more files."""
    origins = [_Origin(str(path), path.resolve().parent, parse_file(read_file(path), str(path))) for path in paths]
    return _resolve(origins, context, restricted=False)


def parse_kubeconfig(text: bytes, *, source: str, context: str = "", restricted: bool = True) -> Config:
    """One Config from text that is no file of ours; `source` names it in messages."""
    if restricted:
        refuse_bombs(text, source, RESTRICTED_BYTES)
    return _resolve([_Origin(source, Path.cwd(), parse_file(text, source))], context, restricted=restricted)


@dataclass(frozen=True, slots=True)
class _Origin:
    """One file, and where its relative paths begin."""

    name: str
    directory: Path
    file: File


@dataclass(frozen=True, slots=True)
class _Entry:
    """One cluster or user entry on its way to a Config: how to name it in messages, and what it may do."""

    what: str
    directory: Path
    restricted: bool

    def refuse(self, key: str, why: str) -> ConfigError:
        return ConfigError(f"{self.what}: {key}: {why}")

    def material(self, key: str, data: str, path: str) -> Material | None:
        """Embedded data wins over a file, as kubectl has it."""
        if data:
            return Material(data=self._decode(f"{key}-data", data))
        if not path:
            return None
        return Material(path=self.path(key, path))

    def path(self, key: str, value: str) -> Path:
        if self.restricted:
            raise self.refuse(key, "files are not read for this kubeconfig; embed the data")
        return self.directory / value

    def _decode(self, key: str, data: str) -> bytes:
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise self.refuse(key, "is not base64") from None


def _resolve(origins: Sequence[_Origin], wanted: str, *, restricted: bool) -> Config:
    name = ", ".join(origin.name for origin in origins)
    chosen = wanted or next((o.file.current_context for o in origins if o.file.current_context), "")
    if not chosen:
        raise ConfigError(f"{name}: has no current-context; choose one with kubectl config use-context")
    context = _context(origins, chosen, name)
    source = f"{name}, context {chosen}"
    cluster_origin, cluster = _find(
        [(o, entry) for o in origins for entry in o.file.clusters or ()], context.cluster, f"{source}: cluster"
    )
    entry = _Entry(f"{cluster_origin.name}, cluster {cluster.name}", cluster_origin.directory, restricted)
    config = _reach(cluster.cluster, entry)
    credentials = Credentials()
    if context.user:
        user_origin, user = _find(
            [(o, entry) for o in origins for entry in o.file.users or ()], context.user, f"{source}: user"
        )
        entry = _Entry(f"{user_origin.name}, user {user.name}", user_origin.directory, restricted)
        credentials = _credentials(user.user, entry, config)
    namespace = context.namespace or "default"
    return _without_own_login(dataclasses.replace(config, credentials=credentials, namespace=namespace, source=source))


def _context(origins: Sequence[_Origin], wanted: str, name: str) -> Context:
    entries = [(origin, entry) for origin in origins for entry in origin.file.contexts or ()]
    _, found = _find(entries, wanted, f"{name}: context")
    return found.context


def _find(entries: Sequence[tuple[_Origin, _Named]], wanted: str, what: str) -> tuple[_Origin, _Named]:
    for origin, entry in entries:
        if entry.name == wanted:
            return origin, entry
    known = ", ".join(sorted({entry.name for _, entry in entries})) or "none"
    raise ConfigError(f'{what} "{wanted}" is not there; known: {known}')


def _reach(cluster: Cluster, entry: _Entry) -> Config:
    if not cluster.server:
        raise entry.refuse("server", "is missing")
    authority = entry.material(
        "certificate-authority", cluster.certificate_authority_data, cluster.certificate_authority
    )
    if cluster.insecure_skip_tls_verify and authority:
        raise entry.refuse("insecure-skip-tls-verify", "contradicts certificate-authority; remove one of them")
    return Config(
        server=_server_url(cluster, entry),
        authority=authority,
        verify=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=_proxy(cluster.proxy_url, entry),
    )


def _server_url(cluster: Cluster, entry: _Entry) -> str:
    server = cluster.server.rstrip("/")
    if "://" not in server:
        has_authority = cluster.certificate_authority or cluster.certificate_authority_data
        has_tls = has_authority or cluster.insecure_skip_tls_verify
        server = f"{'https' if has_tls else 'http'}://{server}"
    if not server.startswith(("https://", "http://")):
        raise entry.refuse("server", f'"{_without_login(cluster.server)}" is neither an https nor an http URL')
    if not _has_host(server):
        # Unquoted: what stands in the wrong place may be a password.
        raise entry.refuse("server", "names no host")
    if not _has_port(server):
        raise entry.refuse("server", "its port is no number up to 65535")
    return server


def _proxy(url: str, entry: _Entry) -> str:
    if not url:
        return ""
    if entry.restricted:
        raise entry.refuse("proxy-url", "is not accepted for this kubeconfig")
    if not url.startswith(("http://", "https://")):
        raise entry.refuse("proxy-url", f'"{_without_login(url)}" is not supported; use an http or https proxy')
    return url


def _has_host(url: str) -> bool:
    try:
        return bool(urlsplit(url).hostname)
    except ValueError:
        return False


def _without_login(url: str) -> str:
    """As it may be quoted: a name and a password may stand before the host."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else url.rpartition("@")[2]


def _without_own_login(config: Config) -> Config:
    """What a URL says before its host is a name and password for where there are no others, and is not shown on."""
    parts = urlsplit(config.server)
    login, mark, host = parts.netloc.rpartition("@")
    if not mark:
        return config
    credentials = config.credentials
    if not credentials.username:
        name, _, password = map(unquote, login.partition(":"))
        credentials = dataclasses.replace(credentials, username=name, password=password)
    return dataclasses.replace(config, server=parts._replace(netloc=host).geturl(), credentials=credentials)


def _has_port(url: str) -> bool:
    """Or leaves it to the scheme."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _credentials(user: User, entry: _Entry, cluster: Config) -> Credentials:
    if user.auth_provider is not None:
        raise entry.refuse("auth-provider", "is no longer supported by Kubernetes; use an exec plugin")
    certificate = entry.material("client-certificate", user.client_certificate_data, user.client_certificate)
    key = entry.material("client-key", user.client_key_data, user.client_key)
    if (certificate is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise entry.refuse(missing, "is missing: a certificate and its key come together")
    if not user.token.isprintable():
        raise entry.refuse("token", "has more than one line, or characters that no token has")
    return Credentials(
        token=user.token,
        token_file=entry.path("tokenFile", user.token_file) if user.token_file else None,
        username=user.username,
        password=user.password,
        certificate=certificate,
        key=key,
        plugin=_plugin(user.exec, entry, cluster) if user.exec else None,
        impersonate=_impersonation(user, entry),
    )


def _impersonation(user: User, entry: _Entry) -> Impersonation | None:
    if not user.impersonate:
        if user.impersonate_uid or user.impersonate_groups or user.impersonate_extra:
            raise entry.refuse("as", "is missing: groups, uid and extra are impersonated with a user only")
        return None
    return Impersonation(
        user.impersonate,
        user.impersonate_uid,
        tuple(user.impersonate_groups or ()),
        tuple((name, tuple(values)) for name, values in sorted((user.impersonate_extra or {}).items())),
    )


def _plugin(spec: Exec, entry: _Entry, cluster: Config) -> ExecPlugin:
    if entry.restricted:
        raise entry.refuse("exec", "commands are not run for this kubeconfig; use a token or a certificate")
    if spec.api_version not in EXEC_VERSIONS:
        raise entry.refuse("exec.apiVersion", f'"{spec.api_version}" is not one of {", ".join(EXEC_VERSIONS)}')
    if not spec.command:
        raise entry.refuse("exec.command", "is missing")
    if spec.interactive_mode == "Always":
        raise entry.refuse("exec.interactiveMode", "Always: nobody is there to answer")
    command = spec.command
    if os.sep in command:
        command = str(entry.directory / command)
    return ExecPlugin(
        command,
        spec.api_version,
        tuple(spec.args or ()),
        tuple((variable.name, variable.value) for variable in spec.env or ()),
        spec.install_hint,
        _cluster_info(cluster) if spec.provide_cluster_info else None,
    )


def _cluster_info(cluster: Config) -> Mapping[str, object]:
    info: dict[str, object] = {"server": cluster.server}
    if cluster.authority is not None:
        info["certificate-authority-data"] = base64.b64encode(cluster.authority.read()).decode()
    if not cluster.verify:
        info["insecure-skip-tls-verify"] = True
    if cluster.server_name:
        info["tls-server-name"] = cluster.server_name
    if cluster.proxy:
        info["proxy-url"] = cluster.proxy
    return info
