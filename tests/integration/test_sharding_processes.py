"""Processes with sharded keys: one is killed, one frozen, one stopped; on both servers in real time."""

import itertools
import time

import pytest
from tests.builders import labels
from tests.builders.sharded_processes import Holders, ShardedProcess

from nodeyard.testing import third_party_crds

COUNT = 10

_numbers = itertools.count(1)


class Stage:
    """Rules and nodes of one test, and the processes that plan them."""

    def __init__(self, api):
        self._api = api
        self.prefix = f"share{next(_numbers)}"
        self.rules = [f"{self.prefix}-{number}" for number in range(COUNT)]
        self.holders = Holders(api, self.prefix)
        self._running = []
        for rule in self.rules:
            api.rest.create(labels.rule(rule, "blue"))
            api.rest.create({"apiVersion": "v1", "kind": "Node", **labels.node(f"{rule}-n", rule)})

    def start(self, identity):
        self._running.append(ShardedProcess(self._api.kubeconfig, identity, self.prefix))
        return self._running[-1]

    def paint(self, team):
        for rule in self.rules:
            self._api.rest.call(
                "PATCH",
                f"/apis/{labels.API_VERSION}/labelrules/{rule}",
                {"spec": {"team": team}},
                content_type="application/merge-patch+json",
            )

    def are_all(self, team):
        """Return whether the operator has written every node of the rules."""
        nodes = [self._api.rest.call("GET", f"/api/v1/nodes/{rule}-n") for rule in self.rules]
        return all(node["metadata"]["labels"].get(labels.TEAM) == team for node in nodes)

    def have(self, *processes):
        """Return whether these replicas together hold all keys, and each holds some."""
        found = self.holders.now()
        return len(found) == COUNT and set(found.values()) == {each.identity for each in processes}

    def close(self):
        for each in self._running:
            each.kill()
        for rule in self.rules:
            self._api.rest.call("DELETE", f"/apis/{labels.API_VERSION}/labelrules/{rule}")
            self._api.rest.call("DELETE", f"/api/v1/nodes/{rule}-n")


@pytest.fixture
def stage(api):
    third_party_crds.install(api.rest, list(labels.LABELS.definitions()))
    stage = Stage(api)
    yield stage
    stage.close()


def test_keys_of_a_killed_process_are_planned_within_20_seconds(stage, eventually):
    first, second = stage.start("first"), stage.start("second")
    eventually(lambda: stage.have(first, second), "the keys are shared out", timeout=60)
    eventually(lambda: stage.are_all("blue"), "all is done")

    second.kill()
    killed_at = time.monotonic()
    stage.paint("red")
    eventually(lambda: stage.are_all("red"), "the first does everything", timeout=20)
    assert time.monotonic() - killed_at <= 20
    assert set(stage.holders.now().values()) == {"first"}

    third = stage.start("third")
    eventually(lambda: stage.have(first, third), "a newcomer gets its part", timeout=60)
    first.stop()
    stage.paint("green")
    # Unreleased Leases expire later than this.
    eventually(lambda: stage.are_all("green"), "the third follows at once", timeout=10)
    assert stage.holders.assert_each_wrote_only_for_what_it_had() >= 3 * COUNT


def test_a_frozen_process_writes_nothing_for_its_former_keys(stage, eventually):
    first, second = stage.start("first"), stage.start("second")
    eventually(lambda: stage.have(first, second), "the keys are shared out", timeout=60)
    eventually(lambda: stage.are_all("blue"), "all is done")

    second.freeze()
    stage.paint("red")
    eventually(lambda: stage.are_all("red"), "the first does everything", timeout=60)
    stage.paint("green")
    second.thaw()
    eventually(lambda: stage.are_all("green"), "the first goes on")
    assert stage.holders.assert_each_wrote_only_for_what_it_had() >= 3 * COUNT
