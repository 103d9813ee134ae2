"""Spares are claimed and configured at once, and drift is repaired."""

from dataclasses import replace

import pytest
from tests.builders.spares_env import labels, node_metadata, taints

from nodeyard.capabilities.spares import names
from nodeyard.testing.operators import SHORT

AT_ONCE = 15.0
"""Far below the resync interval of ten minutes."""


def test_a_claimed_node_is_configured_and_not_spare_any_more(spares_env, operator):
    operator("spares")
    spares_env.spares(4)
    web = spares_env.template("web", 2)

    for node in spares_env.wait_for_owned(web, 2):
        assert labels(node)["team"] == "web"
        assert labels(node)[names.role_label(web)] == "true"
        assert names.SPARE_LABEL not in labels(node)
        assert node["metadata"]["annotations"]["owner"] == "web"
        assert taints(node)["team"] == ("web", "NoSchedule")
        assert names.SPARE_TAINT not in taints(node)
    assert spares_env.condition(web, "Sufficient") == ("True", "SufficientNodes")
    assert spares_env.condition(web, "ReconcileSuccess") == ("True", "ReconcileSuccess")


def test_spares_that_stay_are_labelled_so(spares_env, operator, eventually):
    operator("spares")
    name = spares_env.spare("left")

    eventually(lambda: labels(spares_env.get_node(name)).get(names.SPARE_LABEL) == "true", "the spare has its label")

    assert names.SPARE_TAINT in taints(spares_env.get_node(name))


def test_nodes_are_spread_over_zones(spares_env, operator):
    spares_env.spares(10, "aab")
    spares_env.spares(2, "c", start=10)
    operator("spares")
    web = spares_env.template("web", 6)

    spares_env.wait_for_owned(web, 6)

    assert spares_env.zones(web) == {"zone-a": 2, "zone-b": 2, "zone-c": 2}
    assert spares_env.get_template(web)["status"]["zones"] == {"zone-a": 2, "zone-b": 2, "zone-c": 2}


def test_drift_is_repaired_and_foreign_keys_stay(spares_env, operator, eventually):
    operator("spares")
    spares_env.spares(1)
    web = spares_env.template("web", 1)
    (node,) = spares_env.wait_for_owned(web, 1)
    name = node["metadata"]["name"]
    foreign = {"key": "foreign", "value": "x", "effect": "NoExecute"}

    drifted = {
        "metadata": {"labels": {"team": "other", "foreign": "yes"}, "annotations": {"owner": None, "foreign": "yes"}},
        "spec": {"taints": [foreign, {"key": "team", "value": "other", "effect": "NoSchedule"}]},
    }
    spares_env.patch(name, drifted)

    def is_repaired():
        node = spares_env.get_node(name)
        return labels(node)["team"] == "web" and node["metadata"]["annotations"].get("owner") == "web"

    eventually(is_repaired, "labels and annotations are back")
    node = spares_env.get_node(name)
    assert taints(node)["team"] == ("web", "NoSchedule")
    assert taints(node)["foreign"] == ("x", "NoExecute")
    assert labels(node)["foreign"] == "yes"
    assert node["metadata"]["annotations"]["foreign"] == "yes"


class TestAtOnce:
    """The event itself triggers the claim, not a timer."""

    def test_a_raised_count(self, spares_env, operator):
        operator("spares")
        spares_env.spares(3)
        web = spares_env.template("web", 1)
        spares_env.wait_for_owned(web, 1)

        spares_env.change(web, nodes=3)

        spares_env.wait_for_owned(web, 3, timeout=AT_ONCE)

    def test_a_new_spare(self, spares_env, operator):
        operator("spares")
        web = spares_env.template("web", 1)
        spares_env.wait_for_condition(web, "Sufficient", "False", "NoSpareNodesFound")

        spares_env.spare("late")

        spares_env.wait_for_owned(web, 1, timeout=AT_ONCE)

    def test_a_node_left_by_a_deleted_template_is_claimed_by_another(self, spares_env, operator, eventually):
        operator("spares")
        spares_env.spares(1)
        first = spares_env.template("first", 1)
        spares_env.wait_for_owned(first, 1)
        second = spares_env.template("second", 1)
        spares_env.wait_for_condition(second, "Sufficient", "False", "NoSpareNodesFound")

        spares_env.delete(first)
        eventually(lambda: spares_env.get_template(first) is None, "the template is gone")
        spares_env.patch(spares_env.all()[0]["metadata"]["name"], {"metadata": {"labels": {names.SPARE_LABEL: "true"}}})

        spares_env.wait_for_owned(second, 1, timeout=AT_ONCE)

    def test_a_changed_template(self, spares_env, operator, eventually):
        operator("spares")
        spares_env.spares(2)
        web = spares_env.template("web", 2)
        spares_env.wait_for_owned(web, 2)

        spares_env.change(web, template=node_metadata("shop"))

        eventually(
            lambda: {labels(node)["team"] for node in spares_env.owned(web)} == {"shop"}, "nodes follow", AT_ONCE
        )


def test_the_higher_priority_is_served_first_and_the_lower_one_reports_a_shortage(spares_env, operator):
    spares_env.spares(3)
    low = spares_env.template("low", 2, priority=1)
    high = spares_env.template("high", 4, priority=5)
    operator("spares")

    spares_env.wait_for_owned(high, 3)

    spares_env.wait_for_condition(high, "Sufficient", "False", "NoSpareNodesFound")
    spares_env.wait_for_condition(low, "Sufficient", "False", "HighPriorityNodeTemplateExists")
    assert spares_env.owned(low) == []
    spares_env.spares(3, start=3)
    spares_env.wait_for_owned(high, 4)
    spares_env.wait_for_owned(low, 2)


def test_a_changed_selector_moves_nodes_out_of_management(spares_env, operator, eventually):
    operator("spares")
    old, new = spares_env.spare("old", size="small"), spares_env.spare("new", size="large")
    small = {"matchLabels": {"size": "small", "env.test/name": spares_env.name}}
    large = {"matchLabels": {"size": "large", "env.test/name": spares_env.name}}
    web = spares_env.template("web", 1, selector=small)
    spares_env.wait_for_owned(web, 1)

    spares_env.change(web, selector=large)

    eventually(
        lambda: [node["metadata"]["name"] for node in spares_env.owned(web)] == [new], "the other node is claimed"
    )
    moved = labels(spares_env.get_node(old))
    assert moved[names.OUT_LABEL] == web
    assert moved[names.OUT_ROLE_LABEL] == "true"
    assert moved["team"] == "web"


@pytest.mark.parametrize("spelling", ["dryRun", "dry-run"])
def test_a_dry_run_writes_nothing_and_reports_its_plan(spares_env, operator, spelling):
    spares_env.spares(3)
    spares_env.wait_until_nodes_ready()
    before = {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in spares_env.all()}
    web = spares_env.template("web", 2, **{spelling: True})
    metadata = spares_env.get_template(web)["metadata"]
    running = operator("spares")

    spares_env.wait_for_condition(web, "Sufficient", "False", "DryRun")

    told = spares_env.get_template(web)["status"]["dryRun"]
    assert (told["claims"], len(told["nodes"])) == (2, 2)
    (event,) = spares_env.wait_for_event(web, "DryRun")
    assert event["note"].startswith("Dry run: would claim 2 nodes: ")
    assert {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in spares_env.all()} == before
    now = spares_env.get_template(web)["metadata"]
    assert {**now, "managedFields": 0, "resourceVersion": 0} == {**metadata, "managedFields": 0, "resourceVersion": 0}
    assert not any("nodes" in what for what in running.write_counts())


def test_events_are_one_for_each_reason_and_pass(spares_env, operator):
    spares_env.spares(12)
    spares_env.wait_until_nodes_ready()  # a node that a controller changes meanwhile is claimed in a second pass
    web = spares_env.template("web", 12)
    operator("spares", lease=replace(SHORT, duration=60))  # a pass that ends with the lease records no event
    spares_env.wait_for_owned(web, 12)

    (event,) = spares_env.wait_for_event(web, "Claimed")

    assert event["note"].startswith("Claimed 12 nodes (")
    assert event["note"].endswith(f"and 2 more) for {web}")
