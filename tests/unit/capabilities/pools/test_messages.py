"""Messages: every reason has one, and the text of an action has a past tense."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest

from nodeyard.capabilities.pools.messages import blocks, changes, placement, removals, states
from nodeyard.capabilities.pools.messages.changes import ControlPlaneScaled, PoolScaled
from nodeyard.capabilities.pools.messages.removals import (
    ClusterDeleting,
    DrainOptionsPending,
    DrainOptionsSet,
    DrainStarted,
    FinalizerRemoved,
    OrphanDeletes,
)
from nodeyard.capabilities.pools.reasons import Reason
from nodeyard.capabilities.pools.types import DeletionPolicy
from nodeyard.plan.message import Message

MODULES = (blocks, changes, placement, removals, states)


def classes(module: ModuleType) -> Iterator[type[Message]]:
    """Yield the messages that a module defines."""
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, Message) and each.__module__ == module.__name__:
            yield each


def test_every_reason_has_exactly_one_message() -> None:
    found = [vars(each).get("reason") for module in MODULES for each in classes(module)]
    assert sorted(each for each in found if isinstance(each, Reason)) == sorted(Reason)


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            ControlPlaneScaled(cluster="c", version="v1.33.0", from_=3, to=1, nodes=3, why=("the Kubernetes version",)),
            "Scaled the control plane of c from 3 to 1, which deletes 2 control plane nodes, together with a rollout "
            "that replaces 3 control plane nodes of c, one at a time: the Kubernetes version changed",
        ),
        (
            PoolScaled(pool="gpu", display_name="GPU workers", from_=1, to=3),
            "Scaled pool gpu (GPU workers) from 1 to 3",
        ),
        (
            DrainStarted(pool="gpu", nodes=1),
            "Started removing pool gpu: 1 node is cordoned and drained within their disruption budgets, then deleted "
            "(poolDeletionPolicy: Drain)",
        ),
        (
            DrainOptionsSet(pool="gpu", policy=DeletionPolicy.FORCE, machines=5),
            "Set drain options on 5 Machines of pool gpu, which are deleted without a drain "
            "(poolDeletionPolicy: Force)",
        ),
        (
            FinalizerRemoved(cluster="c", kept=("Cluster other",)),
            "Removed finalizer lattice.dev/cluster from c; its namespace stays, because it contains Cluster other",
        ),
    ],
)
def test_an_action_that_succeeded_has_a_text_in_the_past_tense(message: Message, text: str) -> None:
    assert message.past_text() == text


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (
            DrainOptionsPending(pool="gpu", missing=7, names=("a", "b", "c", "d", "e"), machines=9),
            "Waiting for Cluster API to copy the drain options to 7 of 9 Machines of pool gpu: a, b, c, d, e and 2 "
            "more",
        ),
        (
            ClusterDeleting(cluster="c", deployments=1, machines=2),
            "The Cluster of c is being deleted; 1 MachineDeployment and 2 Machines left",
        ),
        (
            OrphanDeletes(pool="gpu", machines=2),
            "poolDeletionPolicy Orphan still deletes the 2 Machines of pool gpu: Cluster API cannot keep them. Their "
            "pods are rescheduled",
        ),
    ],
)
def test_a_wait_says_how_much_is_left(message: Message, text: str) -> None:
    assert message.text() == text


def test_plans_show_actions_in_the_present_tense() -> None:
    assert changes.PoolScaled(pool="gpu", from_=1, to=3).text() == "Scales pool gpu from 1 to 3"
    assert removals.NodeCordoned(pool="gpu", node="n1").text() == "Cordons node n1 of pool gpu"
