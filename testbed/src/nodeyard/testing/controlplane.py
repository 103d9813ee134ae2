"""A real Kubernetes control plane for tests.

    with ControlPlane(controllers=("namespace", "garbage-collector")) as plane:
        subprocess.run([clients.find("kubectl"), "--kubeconfig", plane.kubeconfig, "get", "namespaces"])

All components listen on free loopback ports with certificates of their own, so several control planes can run at once.
A control plane can be stopped, killed and restarted on the same data and ports. It ends with its parent process.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nodeyard.apiserver import kubeconfig
from nodeyard.process.certificates import Authority, signing_key, write_private
from nodeyard.testing import audit_log, users
from nodeyard.testing.capi import ClusterApi
from nodeyard.testing.component import Component, Site
from nodeyard.testing.directories import Directory
from nodeyard.testing.kubernetes_components import ApiServer, ControllerManager, Etcd, Kwok, Scheduler
from nodeyard.testing.ports import LOOPBACK
from nodeyard.testing.rest import Rest

SERVER_NAMES = (LOOPBACK, "localhost", "kubernetes.default.svc", "10.0.0.1")
ADMIN_GROUP = "system:masters"

_open: weakref.WeakSet[ControlPlane] = weakref.WeakSet()


def running() -> tuple[ControlPlane, ...]:
    """Return the open control planes of this process, whose logs a failing test shows."""
    return tuple(sorted(_open, key=lambda plane: plane.directory))


class ControlPlane:
    """etcd and kube-apiserver, and further components on request.

    controllers: run kube-controller-manager with these, such as "namespace" or "node-lifecycle"; no manager if empty.
        Without "serviceaccount" the admission plugin ServiceAccount is off.
    scheduler, kwok, cluster_api: run these too. KWOK manages nodes annotated `kwok.x-k8s.io/node=fake`.
    directory: for data, logs and credentials; kept afterwards. Default: a temporary one, removed by `close`.
    arguments: further flags by component, such as {"kube-apiserver": ["--feature-gates=X=true"]}.
    tokens: further users with bearer tokens, as {token: (user, groups)}.
    audit: write an audit log of all write requests, for `audit_events`.
    fsync: let etcd sync to disk, for measurements. Data survives kill -9 without it.
    """

    is_real = True

    def __init__(
        self,
        *,
        controllers: Sequence[str] = (),
        scheduler: bool = False,
        kwok: bool = False,
        cluster_api: bool = False,
        directory: Path | None = None,
        arguments: Mapping[str, Sequence[str]] | None = None,
        tokens: Mapping[str, tuple[str, Iterable[str]]] | None = None,
        audit: bool = False,
        fsync: bool = False,
    ) -> None:
        self._home = Directory(directory)
        self._site = Site(self._home.path, arguments or {})
        self.authority = Authority()
        self.admin_token = secrets.token_hex(16)
        self._rest: Rest | None = None
        self._write_credentials({self.admin_token: ("admin", (ADMIN_GROUP,)), **(tokens or {})})

        service_accounts = not {"serviceaccount", "serviceaccount-controller"}.isdisjoint(controllers)
        self._etcd = Etcd(self._site, fsync=fsync)
        self._apiserver = ApiServer(self._site, self._etcd, service_accounts=service_accounts, audit=audit)
        self._servers: tuple[Component, ...] = (self._etcd, self._apiserver)
        clients: list[tuple[bool, Component]] = [
            (bool(controllers), ControllerManager(self._site, controllers)),
            (scheduler, Scheduler(self._site)),
            (kwok, Kwok(self._site)),
            (cluster_api, ClusterApi(self._site, self)),
        ]
        self._clients = tuple(part for is_wanted, part in clients if is_wanted)
        self.components = {part.name: part for part in (*self._servers, *self._clients)}

    @property
    def directory(self) -> Path:
        return self._site.directory

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the administrator's kubeconfig."""
        return self._site.kubeconfig

    @property
    def ca_file(self) -> Path:
        return self._site.authority

    @property
    def url(self) -> str:
        return self._apiserver.url

    @property
    def config(self) -> dict[str, Any]:
        """Return the administrator's kubeconfig."""
        return kubeconfig.with_token(self.url, self.authority.pem, self.admin_token)

    @property
    def rest(self) -> Rest:
        """Return a blocking client with the administrator's rights."""
        # A restarted server may have another port.
        if self._rest is None or self._rest.url != self.url:
            self._rest = Rest(self.url, self.authority.pem, self.admin_token)
        return self._rest

    def start(self) -> Self:
        """Start the components that are not running; return when all are ready."""
        _open.add(self)
        try:
            for server in self._servers:
                _start_unless_alive(server)
            kubeconfig.write(self.kubeconfig, self.config)
            self._start_clients()
        except BaseException:
            self.kill()
            raise
        return self

    def _start_clients(self) -> None:
        """Start clients of the API server in parallel."""
        with ThreadPoolExecutor(max(1, len(self._clients))) as pool:
            try:
                list(pool.map(_start_unless_alive, self._clients))
            except BaseException:
                self.kill()  # otherwise an interrupt waits until the others are ready
                raise

    def start_cluster_api(self) -> None:
        """Start Cluster API's core manager, unless it is running."""
        if ClusterApi.name not in self.components:
            part = ClusterApi(self._site, self)
            self._clients = (*self._clients, part)
            self.components[part.name] = part
        _start_unless_alive(self.components[ClusterApi.name])

    def stop(self, *names: str) -> None:
        """Stop these components with SIGTERM, or all; data and ports are kept for the next `start`."""
        for part in reversed(self._named(names)):
            part.process.stop()

    def kill(self, *names: str) -> None:
        """Stop these components with SIGKILL, or all; data and ports are kept for the next `start`."""
        for part in reversed(self._named(names)):
            part.process.kill()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def close(self) -> None:
        """Kill all components and remove the temporary directory."""
        if self._rest is not None:
            self._rest.close()
        self.kill()
        self._home.close()
        _open.discard(self)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def user(
        self,
        name: str,
        groups: Iterable[str] = (),
        rules: Sequence[dict[str, Any]] = (),
        namespace: str | None = None,
    ) -> Path:
        """Return the kubeconfig of a user with a client certificate and these RBAC rules, in one namespace or all."""
        if rules:
            users.grant(self.rest, name, rules, namespace)
        pair = self.authority.client(name, groups)
        path = self.directory / "users" / f"{users.file_name(name)}.kubeconfig"
        return kubeconfig.write(path, kubeconfig.with_certificate(self.url, self.authority.pem, pair))

    def compact(self) -> None:
        """Compact etcd, and restart kube-apiserver to clear its watch cache."""
        self._etcd.compact()
        self.stop(self._apiserver.name)
        self.start()

    def audit_events(self, text: str) -> list[dict[str, Any]]:
        """Return the events of the audit log that contain this text."""
        return audit_log.find_events(self._apiserver.audit_log, text)

    def logs(self, lines: int = 40) -> str:
        """Return the end of every component's log."""
        return "\n".join(f"==> {part.name}\n{part.process.tail(lines)}" for part in self.components.values())

    def _named(self, names: Sequence[str]) -> list[Component]:
        if unknown := set(names) - self.components.keys():
            raise KeyError(f"{', '.join(sorted(unknown))}: no such component; there are {', '.join(self.components)}")
        return [part for name, part in self.components.items() if not names or name in names]

    def _write_credentials(self, tokens: Mapping[str, tuple[str, Iterable[str]]]) -> None:
        folder = self._site.credentials
        self.authority.server(*SERVER_NAMES).write(folder, "apiserver")
        self.ca_file.write_bytes(self.authority.pem)
        write_private(folder / "accounts.key", signing_key())
        write_private(folder / "tokens.csv", users.token_table(tokens).encode())


def _start_unless_alive(part: Component) -> None:
    if not part.process.is_alive():
        part.start()
