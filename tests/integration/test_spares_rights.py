"""The generated role is enough, no more is used, and what is missing is told."""

import pytest
from tests.builders.requests import ListeningTransport, granted
from tests.builders.yards import labels

from nodeyard.app import connections
from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.runtime import rbac
from nodeyard.runtime.leader import lease_name
from nodeyard.testing import operators
from nodeyard.testing.faults import Drop, Status


def without(resource, verb):
    """The generated rules but for one verb."""
    rules = rbac.rules(SPARES, installs_crds=True)
    left = [{**rule, "verbs": [each for each in rule["verbs"] if each != verb]} for rule in rules]
    chosen = [new if resource in rule["resources"] else rule for rule, new in zip(rules, left, strict=True)]
    return [rule for rule in chosen if rule["verbs"]]


def test_without_the_right_to_change_nodes_it_says_so_and_changes_none(yard, operator):
    yard.spares(2)
    web = yard.template("web", 2)
    running = operator("spares", rules=without("nodes", "patch"))

    yard.until_condition(web, "ReconcileSuccess", "False", "ReconcileError")

    (condition,) = [each for each in yard.see(web)["status"]["conditions"] if each["type"] == "ReconcileSuccess"]
    assert 'cannot patch resource "nodes"' in condition["message"]
    (event, *_) = yard.until_told(web, "ClaimedFailed")
    assert 'cannot patch resource "nodes"' in event["note"]
    assert running.refused() == ["patch nodes"]
    assert yard.owned(web) == []


def test_without_the_right_to_evict_the_rest_goes_on(yard, operator):
    yard.spares(2)
    operator("spares", rules=without("pods/eviction", "create"))
    web = yard.template("web", 1, releasePolicy="Release", release={"evictAfterSeconds": 0})
    (node,) = yard.until_owned(web, 1)
    yard.pod("stuck", node["metadata"]["name"])
    yard.change(web, nodes=0)

    (event, *_) = yard.until_told(web, "EvictedFailed")

    assert 'cannot create resource "pods/eviction"' in event["note"]
    other = yard.template("other", 1)
    yard.until_owned(other, 1)
    assert labels(yard.get(node["metadata"]["name"]))[names.TEMPLATE_LABEL] == web


@pytest.fixture
def listened(monkeypatch):
    """Everything that operators ask for while the test runs."""
    noted = []
    transport = connections.AioTransport
    monkeypatch.setattr(connections, "AioTransport", lambda config: ListeningTransport(transport(config), noted))
    return noted


def test_every_right_that_is_declared_is_used_and_bound_as_narrowly_as_can_be(
    yard, faults, operator, listened, eventually
):
    """A template's life with everything that can happen, lost answers included: they are what single reads are for.

    The server does not stream lists, as older ones do not.
    """
    faults.add(Status(400), path="sendInitialEvents")
    faults.add(Drop(after_sending=True), method="PATCH", path="/nodes/", times=1)
    faults.add(Drop(after_sending=True), method="PATCH", path=rf"/{names.PLURAL}/[^/?]+\?", times=1)
    faults.add(Drop(after_sending=True), method="POST", path="/eviction", times=1)
    operator("spares", through=faults.kubeconfig)
    (name,) = yard.spares(1)
    web = yard.template("web", 1, releasePolicy="Release", release={"evictAfterSeconds": 0})
    yard.until_owned(web, 1)
    for _ in range(2):
        # Repaired twice in the same words: the second time the event is counted, which is a patch.
        yard.patch(name, {"metadata": {"labels": {"team": "drifted"}}})
        eventually(lambda: labels(yard.get(name))["team"] == "web", "the drift is repaired")
    eventually(lambda: any(each.get("series") for each in yard.events(web, "Updated")), "the event is counted")
    yard.pod("busy", name)
    yard.delete(web)
    eventually(lambda: yard.see(web) is None, "the template is gone")

    declared = [*granted(rbac.rules(SPARES)), *granted(rbac.local_rules(SPARES))]
    assert {right for right, _ in declared} - {each.right for each in listened} == set()
    needless = [right for right, bound in declared if not bound and _is_always_one(right, listened)]
    assert needless == []


def _is_always_one(right, listened):
    """Whether a right on any object was only ever used for one name that is the same in every cluster."""
    used = {each.name for each in listened if each.right == right}
    return used in ({names.ORIGINAL_LEASE}, {lease_name(SPARES.name)})


@pytest.fixture
def told(api):
    """What the fixture `operator` would fail the test with."""
    told = []
    return told, operators.Operators(api, told.append)


def test_a_right_that_is_used_and_not_declared_fails_the_test(api, yard, told, monkeypatch, eventually):
    said, start = told
    rules = without("nodes", "patch")
    monkeypatch.setattr(operators.rbac, "rules", lambda _capability, **_options: rules)
    yard.spares(1)
    running = start("spares")
    yard.template("web", 1)
    eventually(running.refused, "something is refused")

    start.close()

    assert said == [f"no right that the capability declares covers: {running.identity}: patch nodes"]
