"""A real Kubernetes control plane for tests.

    with ControlPlane(controllers=("namespace", "garbage-collector")) as plane:
        subprocess.run([kubectl.find(), "--kubeconfig", plane.kubeconfig, "get", "namespaces"])

Everything listens on free loopback ports under certificates of its own, so any number can run at once. It can be
stopped, killed and started again on the same data and ports; it ends with the process that started it.
"""

from __future__ import annotations

import secrets
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nodeyard.process.certificates import Authority, signing_key, write_private
from nodeyard.testing import audit_log, kubeconfig, users
from nodeyard.testing.capi import ClusterApi
from nodeyard.testing.component import Component, Site
from nodeyard.testing.directories import Directory
from nodeyard.testing.kubernetes_components import ApiServer, ControllerManager, Etcd, Scheduler
from nodeyard.testing.kwok import Kwok
from nodeyard.testing.ports import LOOPBACK
from nodeyard.testing.rest import Rest

SERVER_NAMES = (LOOPBACK, "localhost", "kubernetes.default.svc", "10.0.0.1")
ADMIN_GROUP = "system:masters"

_open: weakref.WeakSet[ControlPlane] = weakref.WeakSet()


def running() -> tuple[ControlPlane, ...]:
    """The control planes of this process that are not closed: whose logs a failing test should show."""
    return tuple(sorted(_open, key=lambda plane: plane.directory))


class ControlPlane:
    """etcd and kube-apiserver, and what else is asked for.

    controllers: kube-controller-manager with just these, such as "namespace" or "node-lifecycle"; none, no manager.
        With "serviceaccount" among them pods get service accounts; else that admission plugin is off.
    scheduler, kwok, cluster_api: run these too. KWOK cares for nodes annotated `kwok.x-k8s.io/node=fake`.
    directory: where data, logs and credentials go; kept afterwards. Without it a temporary one, removed by `close`.
    arguments: further flags by component, such as {"kube-apiserver": ["--feature-gates=X=true"]}.
    tokens: further users that log in by bearer token, as {token: (user, groups)}.
    audit: keep an audit log of all writes, for `audited`.
    fsync: let etcd wait for the disk. Data survives kill -9 without it; it is for measuring.
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
        """The administrator's, as a file."""
        return self._site.kubeconfig

    @property
    def ca_file(self) -> Path:
        return self._site.authority

    @property
    def url(self) -> str:
        return self._apiserver.url

    @property
    def config(self) -> dict[str, Any]:
        """The administrator's kubeconfig, as a dict."""
        return kubeconfig.with_token(self.url, self.authority.pem, self.admin_token)

    @property
    def rest(self) -> Rest:
        """Blocking requests as the administrator."""
        # A server that was started again may have another port.
        if self._rest is None or self._rest.url != self.url:
            self._rest = Rest(self.url, self.authority.pem, self.admin_token)
        return self._rest

    def start(self) -> Self:
        """Start whatever does not run, and return when all of it is ready."""
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
        """All at once: each waits for itself."""
        with ThreadPoolExecutor(max(1, len(self._clients))) as pool:
            try:
                list(pool.map(_start_unless_alive, self._clients))
            except BaseException:
                self.kill()  # else an interrupt would wait until the others are ready
                raise

    def start_cluster_api(self) -> None:
        """Start Cluster API's core manager beside what runs, unless it does."""
        if ClusterApi.name not in self.components:
            part = ClusterApi(self._site, self)
            self._clients = (*self._clients, part)
            self.components[part.name] = part
        _start_unless_alive(self.components[ClusterApi.name])

    def stop(self, *names: str) -> None:
        """End these components in good order, or all of them; data and ports are kept for the next `start`."""
        for part in reversed(self._named(names)):
            part.process.stop()

    def kill(self, *names: str) -> None:
        """kill -9 these components, or all of them; data and ports are kept for the next `start`."""
        for part in reversed(self._named(names)):
            part.process.kill()

    def restart(self) -> Self:
        self.stop()
        return self.start()

    def close(self) -> None:
        """End everything at once and remove the temporary directory."""
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
        """The kubeconfig of a user, by certificate, who may do what the RBAC rules say, in one namespace or all."""
        if rules:
            users.grant(self.rest, name, rules, namespace)
        pair = self.authority.client(name, groups)
        path = self.directory / "users" / f"{users.file_name(name)}.kubeconfig"
        return kubeconfig.write(path, kubeconfig.with_certificate(self.url, self.authority.pem, pair))

    def compact(self) -> None:
        """Forget history: what etcd remembers and, by a restart, what kube-apiserver keeps of it in its watch cache."""
        self._etcd.compact()
        self.stop(self._apiserver.name)
        self.start()

    def audited(self, text: str) -> list[dict[str, Any]]:
        """The events of the audit log in which this text stands."""
        return audit_log.events_about(self._apiserver.audit_log, text)

    def logs(self, lines: int = 40) -> str:
        """The end of every component's log, to be shown when a test fails."""
        return "\n".join(f"==> {part.name}\n{part.process.tail(lines)}" for part in self.components.values())

    def _named(self, names: Sequence[str]) -> list[Component]:
        if unknown := set(names) - self.components.keys():
            raise KeyError(f"{', '.join(sorted(unknown))}: not one of {', '.join(self.components)}")
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
