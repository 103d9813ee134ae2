"""Creates the clients of one process: those of the main event loop and those of leader election."""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.client.api import Client, Observer
from nodeyard.client.config import Config
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.metrics import request_observer
from nodeyard.process.logs import get_logger
from nodeyard.process.metrics import Metrics

_log = get_logger("client")


@dataclass(frozen=True)
class Connections:
    config: Config
    observe: Observer

    @staticmethod
    def of(config: Config, metrics: Metrics) -> Connections:
        return Connections(config, request_observer(metrics))

    def connect(self, *, timeout: float = 30.0) -> Client:
        """Create a client. Call it on the event loop that will use the client."""
        return Client(HttpTransport(self.config), timeout=timeout, observe=self.observe, on_warning=_warn)


def _warn(text: str) -> None:
    _log.warning("API server warning", reason=text)
