"""Pods are watched only during a drain, on the workload cluster, which may be the local one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.builders.pools import cluster

from nodeyard.capabilities.pools.controller import POOLS

HERE, THERE = "uid of our own", "uid of another"


class Draining:
    """View of the local cluster while a pool is being removed, with the uid of the workload cluster."""

    def __init__(self, pivot: str, uid: str, own: str = HERE) -> None:
        self._cluster = cluster("prod", pivot=pivot)
        self._there = uid
        self.uid = own

    def indexed(self, *_asked: str) -> list[Any]:
        return [{"spec": {"clusterName": "prod"}}]

    def get(self, *_asked: str) -> Any:
        return self._cluster

    def cluster(self, _name: str) -> Any:
        return SimpleNamespace(uid=self._there)


@pytest.mark.parametrize("kind", ["Pod", "DaemonSet"])
@pytest.mark.parametrize(
    ("view", "expected"),
    [
        pytest.param(Draining("Self", THERE), True, id="it will be pivoted"),
        pytest.param(Draining("Never", THERE), False, id="it manages others"),
        pytest.param(Draining("Never", HERE), True, id="it was not to be pivoted and is our own"),
        pytest.param(Draining("Never", "", own=""), False, id="nobody knows yet"),
    ],
)
def test_pods_here_are_needed_while_nodes_here_are_drained(view: Any, kind: str, expected: bool) -> None:
    watch = next(each for each in POOLS.watches if each.resource.kind == kind)
    assert watch.needed is not None
    assert watch.needed(view) is expected
