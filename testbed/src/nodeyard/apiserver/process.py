"""Start of the embedded API server in this process: TLS by its own authority, an administrator, a kubeconfig."""

from __future__ import annotations

import errno
import re
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from nodeyard.apiserver.admission.attributes import Plugin
from nodeyard.apiserver.audit import AuditSink, to_file
from nodeyard.apiserver.certificates import server_context
from nodeyard.apiserver.controllers import DEFAULT_CONTROLLERS
from nodeyard.apiserver.durability.data_directory import DataDirectory
from nodeyard.apiserver.durability.frames import DataDirectoryError
from nodeyard.apiserver.durability.journal import NotDurableError
from nodeyard.apiserver.kubeconfig import write_kubeconfig
from nodeyard.apiserver.listener import Listener, serve
from nodeyard.apiserver.server import Server
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.bundle.model import BundleError
from nodeyard.bundle.reader import read_bundle
from nodeyard.cli.failures import Failure
from nodeyard.process import garbage_collection
from nodeyard.process.certificates import Authority

_HOSTS = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default.svc")
_LOCAL_IPV4 = re.compile(r"\|-- (\S+)\n\s+/32 host LOCAL")
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Serving:
    """The settings of `nodeyard apiserver`."""

    bind: str = "127.0.0.1"
    port: int = 0
    users: tuple[KnownUser, ...] = ()
    controllers: tuple[str, ...] = DEFAULT_CONTROLLERS
    audit_log: Path | None = None
    plugins: tuple[Plugin, ...] = ()
    """Further admission plugins, in place of webhooks of simulated projects."""
    data_dir: Path | None = None
    """Keep the cluster in this directory instead of memory alone."""
    load: Path | None = None
    """The support bundle whose cluster is served."""


@asynccontextmanager
async def running(serving: Serving, kubeconfig: Path) -> AsyncIterator[tuple[Server, Listener]]:
    """Run the server, and write the administrator's kubeconfig; the server ends with the block."""
    with _data_directory(serving.data_dir) as data:
        async with _running(serving, kubeconfig, data) as pair:
            yield pair


@contextmanager
def _data_directory(path: Path | None) -> Iterator[DataDirectory | None]:
    """Open the directory and close it after the block."""
    if path is None:
        yield None
        return
    try:
        data = DataDirectory.open(path)
        try:
            yield data
        finally:
            data.close()
    except DataDirectoryError as error:
        raise Failure(f"--data-dir: {error}") from None


@asynccontextmanager
async def _running(
    serving: Serving, kubeconfig: Path, data: DataDirectory | None
) -> AsyncIterator[tuple[Server, Listener]]:
    authority = Authority() if data is None else data.authority
    token = secrets.token_hex(16) if data is None else data.admin_token
    administrator = KnownUser("admin", token, groups=("system:masters",))
    server = Server(
        users=(administrator, *serving.users),
        address=f"{serving.bind}:{serving.port}",
        audit=_audit(serving.audit_log),
        plugins=serving.plugins,
        data=data,
    )
    _load(server, serving.load)
    await _start(server, serving.controllers)
    try:
        reached_by = _local_names() if serving.bind in _WILDCARDS else [serving.bind]
        hosts = dict.fromkeys((_WILDCARDS.get(serving.bind, serving.bind), *_HOSTS, *reached_by))
        listener = await _listen(server, serving, server_context(authority, *hosts))
        try:
            host = _WILDCARDS.get(serving.bind, serving.bind)
            write_kubeconfig(kubeconfig, f"https://{_bracketed(host)}:{listener.port}", authority.pem, token)
            with garbage_collection.bounded():
                yield server, listener
        finally:
            await listener.close()
    finally:
        await server.stop()


def _load(server: Server, path: Path | None) -> None:
    if path is None:
        return
    try:
        server.load(read_bundle(path).cluster)
    except BundleError as error:
        raise Failure(f"--load: {error}") from None


async def _start(server: Server, controllers: Iterable[str]) -> None:
    try:
        await server.start(controllers)
    except ValueError as error:
        raise Failure(f"--controllers: {error}") from None
    except (OSError, NotDurableError) as error:
        raise Failure(f"--data-dir: cannot be written: {error}") from None


def _audit(path: Path | None) -> AuditSink | None:
    if path is None:
        return None
    try:
        path.open("ab").close()
    except OSError as error:
        raise Failure(f"--audit-log-path: {path}: {error.strerror or error}") from None
    return to_file(path)


async def _listen(server: Server, serving: Serving, context: ssl.SSLContext) -> Listener:
    try:
        return await serve(server, serving.bind, serving.port, context)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Failure(f"port {serving.port} on {serving.bind} is taken; choose another with --port") from None
        raise Failure(f"cannot listen on {serving.bind}:{serving.port}: {error.strerror or error}") from None


def _local_names() -> list[str]:
    """The names and addresses of this machine, all of which reach a listener on a wildcard address."""
    names = [socket.gethostname()]
    for source, read in (("/proc/net/fib_trie", _LOCAL_IPV4.findall), ("/proc/net/if_inet6", _ipv6_addresses)):
        with suppress(OSError):
            names += read(Path(source).read_text())
    return names


def _ipv6_addresses(table: str) -> list[str]:
    return [str(IPv6Address(int(line.split()[0], 16))) for line in table.splitlines()]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
