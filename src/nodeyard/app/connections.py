"""Clients of one cluster for one process: those of the main loop, and those that leases have for themselves."""

from __future__ import annotations

from dataclasses import dataclass

from nodeyard.client.aio import AioTransport
from nodeyard.client.api import Client, Observer
from nodeyard.client.config import Config
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
        """Must be called on the loop that will use it."""
        return Client(AioTransport(self.config), timeout=timeout, observe=self.observe, on_warning=_warn)


def _warn(text: str) -> None:
    _log.warning("the server warns", reason=text)
