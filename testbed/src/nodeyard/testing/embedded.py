"""The embedded API server for tests, with the interface of `ControlPlane`.

It serves TLS from an event loop in a thread, so blocking tests, kubectl and asynchronous tests can use it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from nodeyard.apiserver import kubeconfig
from nodeyard.apiserver.audit import to_file
from nodeyard.apiserver.certificates import server_context
from nodeyard.apiserver.controllers import NAMES
from nodeyard.apiserver.listener import Listener, serve
from nodeyard.apiserver.server import Server
from nodeyard.apiserver.user_file import KnownUser
from nodeyard.process.certificates import Authority
from nodeyard.sim.machine_defaults import MachineDeploymentDefaults
from nodeyard.testing import audit_log, users
from nodeyard.testing.directories import Directory
from nodeyard.testing.loop_thread import LoopThread
from nodeyard.testing.ports import LOOPBACK
from nodeyard.testing.rest import Rest


class EmbeddedServer(LoopThread):
    """Ready after `start`; `close` removes its files. `audit`: write an audit log, for `audit_events`."""

    is_real = False

    def __init__(
        self,
        *,
        controllers: Iterable[str] = NAMES,
        services: dict[str, str] | None = None,
        audit: bool = False,
    ) -> None:
        super().__init__("embedded-apiserver")
        self._home = Directory()
        self.directory = self._home.path
        self.authority = Authority()
        self.admin_token = secrets.token_hex(16)
        self._rest: Rest | None = None
        self.kubeconfig = self.directory / "admin.kubeconfig"
        self._controllers = tuple(controllers)
        self._services = services
        self._audit_log = self.directory / "audit.log"
        self._has_audit = audit
        self._listener: Listener
        self.server: Server

    def start(self) -> Self:
        super().start()
        kubeconfig.write(self.kubeconfig, self.config)
        self.ca_file.write_bytes(self.authority.pem)
        return self

    async def _start(self) -> None:
        admin = KnownUser("admin", self.admin_token, groups=("system:masters",))
        audit = to_file(self._audit_log) if self._has_audit else None
        self.server = Server(users=[admin], services=self._services, plugins=[MachineDeploymentDefaults()], audit=audit)
        await self.server.start(self._controllers)
        await self._listen(0)

    async def _listen(self, port: int) -> None:
        context = server_context(self.authority, LOOPBACK, "localhost")
        self._listener = await serve(self.server, LOOPBACK, port, context)

    def kill(self) -> None:
        """Close all connections and stop listening until `restart`; stored objects are kept."""
        self.run(self._listener.close())

    def restart(self) -> Self:
        """Listen again at the same address."""
        self.run(self._listen(urlsplit(self.url).port or 0))
        return self

    def close(self) -> None:
        if self._rest is not None:
            self._rest.close()
        super().close()
        self._home.close()

    async def _stop(self) -> None:
        await self.server.stop()
        await self._listener.close()

    @property
    def url(self) -> str:
        return self._listener.url

    @property
    def ca_file(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def config(self) -> dict[str, Any]:
        return kubeconfig.with_token(self.url, self.authority.pem, self.admin_token)

    @property
    def rest(self) -> Rest:
        # A restarted server may have another port.
        if self._rest is None or self._rest.url != self.url:
            self._rest = Rest(self.url, self.authority.pem, self.admin_token)
        return self._rest

    def user(
        self,
        name: str,
        *,
        groups: Sequence[str] = (),
        rules: Sequence[dict[str, Any]] = (),
        namespace: str | None = None,
    ) -> Path:
        """Return the kubeconfig of a user with a client certificate and these RBAC rules."""
        if rules:
            users.grant(self.rest, name, rules, namespace)
        pair = self.authority.client(name, tuple(groups))
        config = kubeconfig.with_certificate(self.url, self.authority.pem, pair)
        return kubeconfig.write(self.directory / "users" / f"{users.file_name(name)}.kubeconfig", config)

    def compact(self) -> None:
        """Compact the history, as in etcd."""

        async def compact() -> None:
            self.server.store.compact()

        self.run(compact())

    def audit_events(self, text: str) -> list[dict[str, Any]]:
        """Return the events of the audit log that contain this text."""
        return audit_log.find_events(self._audit_log, text)

    def logs(self) -> str:
        return ""
