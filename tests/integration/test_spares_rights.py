"""The generated ClusterRole is sufficient and minimal, and missing permissions are reported."""

import pytest
from tests.builders.spares_env import labels

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.controller import SPARES
from nodeyard.runtime import rbac
from nodeyard.runtime.leader.election import lease_name
from nodeyard.testing import operators


def without(resource, verb):
    """Return the generated rules without one verb."""
    rules = rbac.rules(SPARES, installs_crds=True)
    left = [{**rule, "verbs": [each for each in rule["verbs"] if each != verb]} for rule in rules]
    chosen = [new if resource in rule["resources"] else rule for rule, new in zip(rules, left, strict=True)]
    return [rule for rule in chosen if rule["verbs"]]


def test_without_the_right_to_change_nodes_it_says_so_and_changes_none(spares_env, operator):
    spares_env.spares(2)
    web = spares_env.template("web", 2)
    running = operator("spares", rules=without("nodes", "patch"))

    spares_env.wait_for_condition(web, "ReconcileSuccess", "False", "ReconcileError")

    (condition,) = [
        each for each in spares_env.get_template(web)["status"]["conditions"] if each["type"] == "ReconcileSuccess"
    ]
    assert 'cannot patch resource "nodes"' in condition["message"]
    (event, *_) = spares_env.wait_for_event(web, "ClaimedFailed")
    assert 'cannot patch resource "nodes"' in event["note"]
    assert running.refused() == ["patch nodes"]
    assert spares_env.owned(web) == []


def test_events_that_are_refused_for_want_of_a_right_fail_a_test(spares_env, api, eventually, monkeypatch):
    rules = without("events", "create")
    monkeypatch.setattr(operators.rbac, "rules", lambda _capability, **_options: rules)
    told = []
    started = operators.Operators(api, told.append)
    running = started("spares")
    spares_env.spares(1)
    spares_env.wait_for_owned(spares_env.template("web", 1), 1)
    eventually(running.refused, "an event is refused")
    started.close()

    assert told == [f"not allowed by the declared rights: {running.identity}: create events.events.k8s.io"]


def test_without_the_right_to_evict_the_rest_continues(spares_env, operator):
    spares_env.spares(2)
    operator("spares", rules=without("pods/eviction", "create"))
    web = spares_env.template("web", 1, releasePolicy="Release", release={"evictAfterSeconds": 0})
    (node,) = spares_env.wait_for_owned(web, 1)
    spares_env.pod("stuck", node["metadata"]["name"])
    spares_env.change(web, nodes=0)

    (event, *_) = spares_env.wait_for_event(web, "EvictedFailed")

    assert 'cannot create resource "pods/eviction"' in event["note"]
    other = spares_env.template("other", 1)
    spares_env.wait_for_owned(other, 1)
    assert labels(spares_env.get_node(node["metadata"]["name"]))[names.TEMPLATE_LABEL] == web


def test_every_right_is_used_no_other_is_needed_and_all_are_bound_as_narrowly_as_can_be(
    spares_env, audited, operator, eventually
):
    """Run a template through every action."""
    audit = audited(SPARES)
    operator("spares")
    (name,) = spares_env.spares(1)
    web = spares_env.template("web", 1, releasePolicy="Release", release={"evictAfterSeconds": 0})
    spares_env.wait_for_owned(web, 1)
    for _ in range(2):
        # Repaired twice with the same text: the second Event is counted, by a patch.
        spares_env.patch(name, {"metadata": {"labels": {"team": "drifted"}}})
        eventually(lambda: labels(spares_env.get_node(name))["team"] == "web", "the drift is repaired")
        spares_env.wait_for_event(web, "Updated")
    eventually(lambda: any(each.get("series") for each in spares_env.events(web, "Updated")), "the event is counted")
    spares_env.pod("busy", name)
    spares_env.delete(web)
    eventually(lambda: spares_env.get_template(web) is None, "the template is gone")

    assert audit.unused() == set()
    assert audit.forbidden() == set()
    assert audit.too_broad(names.PEER_LEASE, lease_name(SPARES.name)) == set()


@pytest.fixture
def told(api):
    """Return the errors that the fixture `operator` would fail the test with."""
    told = []
    return told, operators.Operators(api, told.append)


def test_a_right_that_is_used_and_not_declared_fails_the_test(api, spares_env, told, monkeypatch, eventually):
    said, start = told
    rules = without("nodes", "patch")
    monkeypatch.setattr(operators.rbac, "rules", lambda _capability, **_options: rules)
    spares_env.spares(1)
    running = start("spares")
    spares_env.template("web", 1)
    eventually(running.refused, "something is refused")

    start.close()

    assert said == [f"not allowed by the declared rights: {running.identity}: patch nodes"]
