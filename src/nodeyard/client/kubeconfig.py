"""Kubeconfig files: contexts, merging of KUBECONFIG, and validation of cluster and user entries.

Merging follows kubectl: the first file that defines a cluster, user, context or current-context wins. Relative paths
are relative to the file that contains them. Missing files of the list are skipped.

An untrusted kubeconfig, such as that of a leaf cluster from an object, is read with `restricted=True`. It may not run a
command, read a local file or set a proxy. Its server is a scheme, host, port and plain path: with a query or
credentials in the URL its author could choose what is requested and from whom.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from yarl import URL

from nodeyard.client.config import (
    Config,
    Credentials,
    ExecPlugin,
    Impersonation,
    Material,
    is_in_cluster,
    load_in_cluster,
    read_file,
)
from nodeyard.client.errors import ConfigError, NoCluster
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
_PLAIN_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*").fullmatch

_Named = TypeVar("_Named", NamedCluster, NamedUser, NamedContext)


def load_config(
    kubeconfig: str | os.PathLike[str] | None = None,
    *,
    context: str = "",
    env: Mapping[str, str] = os.environ,
) -> Config:
    """Load the given kubeconfig, else KUBECONFIG, else ~/.kube/config, else the in-cluster configuration.

    An empty KUBECONFIG, /dev/null and an empty file mean that no cluster is configured.
    """
    if kubeconfig is not None and not _is_empty(Path(kubeconfig)):
        return load_kubeconfig([Path(kubeconfig)], context=context)
    named = [str(kubeconfig)] if kubeconfig is not None else env.get("KUBECONFIG", str(DEFAULT_PATH)).split(os.pathsep)
    paths = [Path(part).expanduser() for part in named if part]
    present = [path for path in paths if path.exists() and not _is_empty(path)]
    if present:
        return load_kubeconfig(present, context=context)
    if is_in_cluster(env):
        return load_in_cluster(env)
    raise NoCluster(
        f"no cluster configured: {', '.join(map(str, paths)) or 'KUBECONFIG'} is missing or empty, and this is not a "
        "pod; pass --kubeconfig or set KUBECONFIG"
    )


def _is_empty(path: Path) -> bool:
    """Return True for /dev/null and for an empty regular file; the size of a pipe is unknown."""
    return str(path) == os.devnull or (path.is_file() and path.stat().st_size == 0)


def load_kubeconfig(paths: Sequence[Path], *, context: str = "") -> Config:
    """Load a Config from one or more files."""
    origins = [_Origin(str(path), path.resolve().parent, parse_file(read_file(path), str(path))) for path in paths]
    return _resolve(origins, context, restricted=False)


def parse_kubeconfig(text: bytes, *, source: str, context: str = "", restricted: bool = True) -> Config:
    """Parse a Config from text; `source` names its origin in messages."""
    if restricted:
        refuse_bombs(text, source, RESTRICTED_BYTES)
    return _resolve([_Origin(source, Path.cwd(), parse_file(text, source))], context, restricted=restricted)


@dataclass(frozen=True, slots=True)
class _Origin:
    """One file, and the directory its relative paths start from."""

    name: str
    directory: Path
    file: File


@dataclass(frozen=True, slots=True)
class _Entry:
    """Context of a cluster or user entry: its name in messages, its directory, and whether it is restricted."""

    what: str
    directory: Path
    restricted: bool

    def refuse(self, key: str, why: str) -> ConfigError:
        return ConfigError(f"{self.what}: {key}: {why}")

    def material(self, key: str, data: str, path: str) -> Material | None:
        """Return embedded data or a file; as in kubectl, data wins."""
        if data:
            return Material(data=self._decode(f"{key}-data", data))
        if not path:
            return None
        return Material(path=self.path(key, path))

    def refuse_control_characters(self, values: Mapping[str, str]) -> None:
        """Reject line breaks in values that become HTTP headers: they would allow header injection."""
        for key, value in values.items():
            if not value.isprintable():
                raise self.refuse(key, "contains a line break or another control character")

    def path(self, key: str, value: str) -> Path:
        if self.restricted:
            raise self.refuse(key, "files are not allowed in this kubeconfig; embed the data")
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
        raise ConfigError(f"{name}: current-context is not set; set it with kubectl config use-context")
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
    raise ConfigError(f'{what} "{wanted}" not found; available: {known}')


def _reach(cluster: Cluster, entry: _Entry) -> Config:
    if not cluster.server:
        raise entry.refuse("server", "is missing")
    entry.refuse_control_characters({"server": cluster.server, "tls-server-name": cluster.tls_server_name})
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
        # The value is not quoted: a misplaced part of it may be a password.
        raise entry.refuse("server", "has no host")
    if not _has_port(server):
        raise entry.refuse("server", "the port is not a number from 1 to 65535")
    # An empty query counts too: the API path is appended to the URL and would become part of it.
    if "?" in server or "#" in server:
        raise entry.refuse("server", "contains a query or a fragment; give only scheme, host, port and path")
    if entry.restricted:
        _refuse_odd(server, entry)
    return server


def _refuse_odd(server: str, entry: _Entry) -> None:
    parts = urlsplit(server)
    if "@" in parts.netloc:
        raise entry.refuse("server", "contains credentials before the host; use the user's token or certificate")
    if not _PLAIN_PATH(parts.path) or any(each in (".", "..") for each in parts.path.split("/")):
        raise entry.refuse("server", "contains a path with . or .. or characters other than letters, digits, - _ . ~")


def _proxy(url: str, entry: _Entry) -> str:
    if not url:
        return ""
    if entry.restricted:
        raise entry.refuse("proxy-url", "is not allowed in this kubeconfig")
    if not url.startswith(("http://", "https://")):
        raise entry.refuse("proxy-url", f'"{_without_login(url)}" is not supported; use an http or https proxy')
    return url


def _has_host(url: str) -> bool:
    try:
        # The transport's yarl also decodes international names.
        return bool((host := urlsplit(url).hostname) and URL.build(scheme="https", host=host).host)
    except ValueError:
        return False


def _without_login(url: str) -> str:
    """Return the URL without credentials, for messages."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}" if mark else url.rpartition("@")[2]


def _without_own_login(config: Config) -> Config:
    """Move credentials from the URL to `Credentials`, unless a username is set, so that the URL may be shown."""
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
    """Return True for a valid port, or none."""
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
        raise entry.refuse(missing, "is missing: a client certificate needs its key, and a key its certificate")
    if not user.token.isprintable():
        raise entry.refuse("token", "contains a line break or characters that are not allowed in a token")
    entry.refuse_control_characters({"username": user.username, "as": user.impersonate, "as-uid": user.impersonate_uid})
    for group in user.impersonate_groups or ():
        entry.refuse_control_characters({"as-groups": group})
    for name, values in (user.impersonate_extra or {}).items():
        for text in (name, *values):
            entry.refuse_control_characters({"as-user-extra": text})
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
            raise entry.refuse("as", "is missing: groups, uid and extra can be impersonated only with a user")
        return None
    return Impersonation(
        user.impersonate,
        user.impersonate_uid,
        tuple(user.impersonate_groups or ()),
        tuple((name, tuple(values)) for name, values in sorted((user.impersonate_extra or {}).items())),
    )


def _plugin(spec: Exec, entry: _Entry, cluster: Config) -> ExecPlugin:
    if entry.restricted:
        raise entry.refuse("exec", "commands are not allowed in this kubeconfig; use a token or a certificate")
    if spec.api_version not in EXEC_VERSIONS:
        raise entry.refuse("exec.apiVersion", f'"{spec.api_version}" is not one of {", ".join(EXEC_VERSIONS)}')
    if not spec.command:
        raise entry.refuse("exec.command", "is missing")
    if spec.interactive_mode == "Always":
        raise entry.refuse("exec.interactiveMode", "Always is not supported: there is no terminal")
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
