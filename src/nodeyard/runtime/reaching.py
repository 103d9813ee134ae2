"""Reaching a cluster by a kubeconfig that somebody else wrote.

It is read in the restricted way: it can neither run a program here nor read a file here, nor send us through a proxy.
What is wrong with it is said without quoting it. Nor can what answers there fill our memory: one wrong address would
take all clusters down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from nodeyard.client.aio import AioTransport
from nodeyard.client.kubeconfig import parse_kubeconfig
from nodeyard.client.transport import Transport
from nodeyard.runtime.capability import Elsewhere

ANSWER_BYTES: Final = 128 << 20
"""Of one answer: a page of a list whose objects have a quarter of a megabyte each."""

Connect: TypeAlias = Callable[[Elsewhere], Transport]
"""The way to a further cluster; ConfigError where its kubeconfig is refused. Called on the loop that will use it."""


def reach(given: Elsewhere) -> Transport:
    config = parse_kubeconfig(given.kubeconfig, source=f"kubeconfig of {given.name}")
    return AioTransport(config, largest=ANSWER_BYTES)
