"""One writer per server that a capability writes to: the host cluster, and remote clusters by name.

Each writer has its own sender, confirmer and in-flight bound, so that a slow cluster delays only itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from nodeyard.apply.confirm import Confirmer
from nodeyard.apply.write_request import Sender
from nodeyard.client.api import Client
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Json
from nodeyard.plan.model import ObjectRef
from nodeyard.process.clock import Clock

Lookup: TypeAlias = Callable[[str, str], Resource[Any] | None]
"""Finds the resource of an apiVersion and kind; None if it is not served."""
OnWritten: TypeAlias = Callable[[Resource[Any], Json], None]
"""Called with the object of the response, for the cache overlay."""
OnDeleted: TypeAlias = Callable[[Resource[Any], ObjectRef], None]
"""Called with the deleted object."""


@dataclass(frozen=True, eq=False)
class Target:
    """A server to write to, with callbacks for what was written."""

    client: Client
    lookup: Lookup
    on_written: OnWritten = lambda _resource, _answer: None
    on_deleted: OnDeleted = lambda _resource, _ref: None
    since: float = 0.0
    """The monotonic time since which this server has this identity. Earlier snapshots may show another cluster."""


ClusterLookup: TypeAlias = Callable[[str], Target | str]
"""Finds a remote cluster by name; a string says why nothing can be sent there now."""


def no_clusters(_cluster: str) -> Target | str:
    return "the capability does not declare this cluster"


@dataclass(frozen=True, eq=False)
class ClusterWriter:
    target: Target
    sender: Sender
    confirmer: Confirmer
    in_flight: asyncio.Semaphore


@dataclass(frozen=True)
class WriterOptions:
    """Settings of one capability's writers, for every cluster."""

    field_manager: str
    clock: Clock
    random: Random
    in_flight: int

    def create(self, target: Target) -> ClusterWriter:
        sender = Sender(target.client, self.field_manager)
        confirmer = Confirmer(sender, self.clock, self.random)
        return ClusterWriter(target, sender, confirmer, asyncio.Semaphore(self.in_flight))


class ClusterWriters:
    def __init__(self, host: Target, clusters: ClusterLookup, options: WriterOptions) -> None:
        self._options = options
        self._host = options.create(host)
        self._clusters = clusters
        self._remote: dict[str, ClusterWriter] = {}

    def find(self, cluster: str) -> ClusterWriter | str:
        """Return the writer of a cluster, of the host cluster if no name is given, or why there is none."""
        if not cluster:
            return self._host
        target = self._clusters(cluster)
        if isinstance(target, str):
            self._remote.pop(cluster, None)
            return f"cluster {cluster} is not connected: {target}"
        writer = self._remote.get(cluster)
        if writer is None or writer.target is not target:
            writer = self._remote[cluster] = self._options.create(target)
        return writer

    def identity_change(self, cluster: str, seen_at: float) -> str:
        """Return why a plan from a snapshot of `seen_at` must not be sent to the cluster; empty if it may."""
        target = self._clusters(cluster)
        is_newer = isinstance(target, Target) and target.since > seen_at
        return f"cluster {cluster} may have been replaced since this was planned" if is_newer else ""
