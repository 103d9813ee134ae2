"""Component of a control plane: its ports, its process and its readiness."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nodeyard.testing.ports import free_port
from nodeyard.testing.processes import Process
from nodeyard.testing.wait import until

ATTEMPTS = 5
TAKEN = "address already in use"


class ComponentError(Exception):
    """A component did not become ready; the message ends with the tail of its log."""


@dataclass(frozen=True)
class Site:
    """Settings that components of a control plane share: directory with credentials, and extra flags per component."""

    directory: Path
    arguments: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def credentials(self) -> Path:
        return self.directory / "credentials"

    @property
    def authority(self) -> Path:
        return self.credentials / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """Return the path of the administrator's kubeconfig."""
        return self.directory / "admin.kubeconfig"


class Component(ABC):
    """Starts on free ports, retries with others if they are taken, and keeps them over restarts."""

    name: str
    port_names: tuple[str, ...] = ("serve",)
    ready_within = 60.0

    def __init__(self, site: Site) -> None:
        self.site = site
        self.folder = site.directory / self.name
        self.process = Process(self.name, site.directory / "logs" / f"{self.name}.log")
        self.ports: dict[str, int] = {}
        self._has_run = False

    @abstractmethod
    def command(self) -> list[str | Path]:
        """Return the program and its arguments, for the ports in `self.ports`."""

    @abstractmethod
    def is_ready(self) -> bool: ...

    def prepare(self) -> None:
        """Create what the process needs; called again when the ports change."""
        self.folder.mkdir(parents=True, exist_ok=True)

    def settle(self) -> None:
        """Finish the start once the component is ready."""
        self._has_run = True

    def start(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            if not self._has_run:
                self.ports = {name: free_port() for name in self.port_names}
            self.prepare()
            self.process.start([*self.command(), *self.site.arguments.get(self.name, ())])
            if self._became_ready():
                break
            if attempt == ATTEMPTS or TAKEN not in self.process.output():
                raise ComponentError(self._failure(f"ended with exit code {self.process.exit_code}"))
        self.settle()

    def _became_ready(self) -> bool:
        """Return False if the process ended; raise ComponentError if it runs but does not become ready."""
        try:
            until(lambda: self.is_ready() or not self.process.is_alive(), f"{self.name} is ready", self.ready_within)
        except TimeoutError:
            self.process.kill()
            raise ComponentError(self._failure(f"was not ready within {self.ready_within:g} s")) from None
        return self.process.is_alive()

    def _failure(self, what: str) -> str:
        return f"{self.name} {what}; the end of {self.process.log}:\n{self.process.tail()}"
