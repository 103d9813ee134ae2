"""Spares are claimed and configured at once, and drift is repaired."""

from dataclasses import replace

import pytest
from tests.builders.yards import described, labels, taints

from nodeyard.capabilities.spares import names
from nodeyard.testing.operators import SHORT

AT_ONCE = 15.0
"""Far below the resync interval of ten minutes."""


def test_a_claimed_node_is_configured_and_not_spare_any_more(yard, operator):
    operator("spares")
    yard.spares(4)
    web = yard.template("web", 2)

    for node in yard.until_owned(web, 2):
        assert labels(node)["team"] == "web"
        assert labels(node)[names.role_label(web)] == "true"
        assert names.SPARE_LABEL not in labels(node)
        assert node["metadata"]["annotations"]["owner"] == "web"
        assert taints(node)["team"] == ("web", "NoSchedule")
        assert names.SPARE_TAINT not in taints(node)
    assert yard.condition(web, "Sufficient") == ("True", "SufficientNodes")
    assert yard.condition(web, "ReconcileSuccess") == ("True", "ReconcileSuccess")


def test_spares_that_stay_are_labelled_so(yard, operator, eventually):
    operator("spares")
    name = yard.spare("left")

    eventually(lambda: labels(yard.get(name)).get(names.SPARE_LABEL) == "true", "the spare has its label")

    assert names.SPARE_TAINT in taints(yard.get(name))


def test_nodes_are_spread_over_zones(yard, operator):
    yard.spares(10, "aab")
    yard.spares(2, "c", start=10)
    operator("spares")
    web = yard.template("web", 6)

    yard.until_owned(web, 6)

    assert yard.zones(web) == {"zone-a": 2, "zone-b": 2, "zone-c": 2}
    assert yard.see(web)["status"]["zones"] == {"zone-a": 2, "zone-b": 2, "zone-c": 2}


def test_drift_is_repaired_and_what_others_set_stays(yard, operator, eventually):
    operator("spares")
    yard.spares(1)
    web = yard.template("web", 1)
    (node,) = yard.until_owned(web, 1)
    name = node["metadata"]["name"]
    foreign = {"key": "foreign", "value": "x", "effect": "NoExecute"}

    drifted = {
        "metadata": {"labels": {"team": "other", "foreign": "yes"}, "annotations": {"owner": None, "foreign": "yes"}},
        "spec": {"taints": [foreign, {"key": "team", "value": "other", "effect": "NoSchedule"}]},
    }
    yard.patch(name, drifted)

    def is_repaired():
        node = yard.get(name)
        return labels(node)["team"] == "web" and node["metadata"]["annotations"].get("owner") == "web"

    eventually(is_repaired, "labels and annotations are back")
    node = yard.get(name)
    assert taints(node)["team"] == ("web", "NoSchedule")
    assert taints(node)["foreign"] == ("x", "NoExecute")
    assert labels(node)["foreign"] == "yes"
    assert node["metadata"]["annotations"]["foreign"] == "yes"


class TestAtOnce:
    """The event itself triggers the claim, not a timer."""

    def test_a_raised_count(self, yard, operator):
        operator("spares")
        yard.spares(3)
        web = yard.template("web", 1)
        yard.until_owned(web, 1)

        yard.change(web, nodes=3)

        yard.until_owned(web, 3, timeout=AT_ONCE)

    def test_a_new_spare(self, yard, operator):
        operator("spares")
        web = yard.template("web", 1)
        yard.until_condition(web, "Sufficient", "False", "NoSpareNodesFound")

        yard.spare("late")

        yard.until_owned(web, 1, timeout=AT_ONCE)

    def test_a_node_that_another_template_lets_go(self, yard, operator, eventually):
        operator("spares")
        yard.spares(1)
        first = yard.template("first", 1)
        yard.until_owned(first, 1)
        second = yard.template("second", 1)
        yard.until_condition(second, "Sufficient", "False", "NoSpareNodesFound")

        yard.delete(first)
        eventually(lambda: yard.see(first) is None, "the template is gone")
        yard.patch(yard.all()[0]["metadata"]["name"], {"metadata": {"labels": {names.SPARE_LABEL: "true"}}})

        yard.until_owned(second, 1, timeout=AT_ONCE)

    def test_a_changed_template(self, yard, operator, eventually):
        operator("spares")
        yard.spares(2)
        web = yard.template("web", 2)
        yard.until_owned(web, 2)

        yard.change(web, template=described("shop"))

        eventually(lambda: {labels(node)["team"] for node in yard.owned(web)} == {"shop"}, "nodes follow", AT_ONCE)


def test_the_higher_priority_goes_first_and_the_lower_says_so(yard, operator):
    yard.spares(3)
    low = yard.template("low", 2, priority=1)
    high = yard.template("high", 4, priority=5)
    operator("spares")

    yard.until_owned(high, 3)

    yard.until_condition(high, "Sufficient", "False", "NoSpareNodesFound")
    yard.until_condition(low, "Sufficient", "False", "HighPriorityNodeTemplateExists")
    assert yard.owned(low) == []
    yard.spares(3, start=3)
    yard.until_owned(high, 4)
    yard.until_owned(low, 2)


def test_a_changed_selector_moves_nodes_out_of_management(yard, operator, eventually):
    operator("spares")
    old, new = yard.spare("old", size="small"), yard.spare("new", size="large")
    small = {"matchLabels": {"size": "small", "yard.test/name": yard.name}}
    large = {"matchLabels": {"size": "large", "yard.test/name": yard.name}}
    web = yard.template("web", 1, selector=small)
    yard.until_owned(web, 1)

    yard.change(web, selector=large)

    eventually(lambda: [node["metadata"]["name"] for node in yard.owned(web)] == [new], "the other node is claimed")
    moved = labels(yard.get(old))
    assert moved[names.OUT_LABEL] == web
    assert moved[names.OUT_ROLE_LABEL] == "true"
    assert moved["team"] == "web"


@pytest.mark.parametrize("spelling", ["dryRun", "dry-run"])
def test_a_dry_run_changes_nothing_and_tells_what_it_would_do(yard, operator, spelling):
    yard.spares(3)
    yard.until_settled()
    before = {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in yard.all()}
    web = yard.template("web", 2, **{spelling: True})
    metadata = yard.see(web)["metadata"]
    running = operator("spares")

    yard.until_condition(web, "Sufficient", "False", "DryRun")

    told = yard.see(web)["status"]["dryRun"]
    assert (told["claims"], len(told["nodes"])) == (2, 2)
    (event,) = yard.until_told(web, "DryRun")
    assert event["note"].startswith("Dry run: would claim 2 nodes: ")
    assert {node["metadata"]["name"]: node["metadata"]["resourceVersion"] for node in yard.all()} == before
    now = yard.see(web)["metadata"]
    assert {**now, "managedFields": 0, "resourceVersion": 0} == {**metadata, "managedFields": 0, "resourceVersion": 0}
    assert not any("nodes" in what for what in running.written())


def test_events_are_one_for_each_reason_and_pass(yard, operator):
    yard.spares(12)
    yard.until_settled()  # a node that the server's controllers change meanwhile is claimed in a second pass
    web = yard.template("web", 12)
    operator("spares", lease=replace(SHORT, duration=60))  # a pass that ends with the lease tells of nothing
    yard.until_owned(web, 12)

    (event,) = yard.until_told(web, "Claimed")

    assert event["note"].startswith("Claimed 12 nodes (")
    assert event["note"].endswith(f"and 2 more) for {web}")
