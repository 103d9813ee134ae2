"""`nodeyard apiserver --data-dir` as a process of its own, which can be killed and started again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nodeyard.apiserver import kubeconfig
from nodeyard.apiserver.durability.data_directory import read_authority
from nodeyard.client.kubeconfig import load_kubeconfig
from nodeyard.process.certificates import Authority
from nodeyard.testing import users
from nodeyard.testing.directories import Directory
from nodeyard.testing.ports import free_port
from nodeyard.testing.processes import Process
from nodeyard.testing.rest import Rest
from nodeyard.testing.wait import until

_PROGRAM = (sys.executable, "-c", "from nodeyard.cli import main; main()")


class ApiProcess:
    """An API server at one address and with one data directory, however often it is killed."""

    is_real = False

    def __init__(self, data: Path | None = None) -> None:
        self._home = Directory()
        self.directory = self._home.path
        self.data = data or self.directory / "data"
        self.kubeconfig = self.directory / "admin.kubeconfig"
        self.process = Process("apiserver", self.directory / "apiserver.log")
        self._port = free_port()
        self.authority: Authority
        self.admin_token = ""
        self.rest: Rest

    def start(self) -> Self:
        """Start it, also after `kill`, and wait until it is ready."""
        where = ("--port", str(self._port), "--kubeconfig-out", self.kubeconfig, "--data-dir", self.data)
        self.process.start([*_PROGRAM, "apiserver", *where])
        until(self._is_ready, "the API server is ready", 60)
        if not self.admin_token:
            self.authority = read_authority(self.data)
            self.admin_token = load_kubeconfig([self.kubeconfig]).credentials.token
            self.rest = Rest(self.url, self.authority.pem, self.admin_token)
        return self

    def kill(self) -> None:
        """Send SIGKILL and wait until the process is gone."""
        self.process.kill()

    def close(self) -> None:
        self.process.kill()
        if self.admin_token:
            self.rest.close()
        self._home.close()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

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

    def _is_ready(self) -> bool:
        if not self.process.is_alive():
            raise RuntimeError(f"the API server has ended: {self.process.output()}")
        return "ready\n" in self.process.output()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
