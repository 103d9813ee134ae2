"""Plan cost grows linearly with the cluster, counted in interpreter steps and not in seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.builders.interpreter_steps import steps
from tests.builders.pool_objects import SERVED, running
from tests.builders.pools import NOW, cluster, pool

from nodeyard.apply.outcome import Outcome
from nodeyard.capabilities.pools.plan import plan
from nodeyard.capabilities.pools.report import report
from nodeyard.capabilities.pools.snapshot import Management, PoolsSnapshot

FEW, MORE, MANY = 10, 20, 40


def pools(number: int, **given: Any) -> dict[str, Any]:
    return {f"p{each:02}": pool(2, labels={"tier": "web"}, **given) for each in range(number)}


def lattice(number: int, **given: Any) -> Any:
    return cluster(workerPools=pools(number), **given)


def settled(number: int) -> PoolsSnapshot:
    return running(lattice(number))


def nothing_yet(number: int) -> PoolsSnapshot:
    return replace(settled(number), management=Management(), served=SERVED)


def relabelled(number: int) -> PoolsSnapshot:
    """Every pool gets new templates while the old ones still exist."""
    wanted = cluster(workerPools={id: {**each, "labels": {"tier": "db"}} for id, each in pools(number).items()})
    return replace(settled(number), cluster=wanted)


def refused(number: int) -> PoolsSnapshot:
    return replace(settled(number), cluster=cluster(workerPools=pools(number, nodeClass="nowhere")))


def leaving(number: int) -> PoolsSnapshot:
    return replace(settled(number), cluster=lattice(0))


@pytest.mark.parametrize("world", [settled, nothing_yet, relabelled, refused, leaving], ids=lambda each: each.__name__)
def test_a_pass_is_at_most_linear_in_the_pools(world):
    def passing(number: int) -> Callable[[], object]:
        seen = world(number)
        return lambda: report(seen, plan(seen, NOW).plan, Outcome(), NOW).statuses

    passing(FEW)()
    few, more, many = (steps(passing(number)) for number in (FEW, MORE, MANY))

    assert few < more < many
    assert many - more < 2.05 * (more - few)
