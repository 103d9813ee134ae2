"""Status of a Cluster: the first problem, and nothing that changes by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from tests.builders.tree_state import (
    NOW,
    TreeState,
    alive,
    bound,
    cluster,
    failing,
    leaf,
    leaf_node,
    lost,
    node_model,
    rejecting,
    root_node,
    selector_model,
    settled_state,
    unreached_leaf,
)

from nodeyard.apply.outcome import ActionResult, Outcome, Result
from nodeyard.capabilities.clustertree.report.status import status, wire
from nodeyard.capabilities.clustertree.snapshot import Kubeconfig, Usage
from nodeyard.capabilities.clustertree.types import Cluster, ClusterStatus

N1 = leaf_node("n1")


def passed(tree, results=None):
    """Return the status written after a reconcile in which every action has this result; None if unchanged."""
    planned = tree.plan().plan
    outcome = Outcome(
        results=tuple(
            ActionResult(action=each, result=results or Result.DONE, message="boom" if results else "")
            for each in planned.actions
        )
    )
    writes = status(tree.snapshot(), planned, outcome, tree.now)
    return writes[0].status if writes else None


def conditions(said):
    return {each["type"]: (each["status"], each["reason"]) for each in said["conditions"]}


def told(tree):
    """Return the tree with the status written to its Cluster."""
    said = passed(tree)
    if said is None:
        return tree
    return tree.with_(cluster=msgspec.structs.replace(tree.cluster, status=msgspec.convert(said, ClusterStatus)))


def test_a_leaf_that_is_well_is_ready_and_its_nodes_are_listed():
    said = passed(settled_state(node_model("n1"), nodes=[N1]))

    assert conditions(said) == {
        "Reachable": ("True", "LeafReachable"),
        "ResourcesSynced": ("True", "ResourcesSynced"),
        "LeasesRenewed": ("True", "LeasesRenewed"),
        "Ready": ("True", "ResourcesSynced"),
    }
    assert said["clusterTreeStatus"] == {"leafNodeItems": [{"leafNodeName": "n1"}]}
    assert (said["nodes"], said["leafNodes"], said["observedGeneration"]) == (1, 1, 1)


def test_nodes_that_this_pass_creates_or_removes_are_counted_so():
    fresh = TreeState(cluster("east"), leaf(N1))
    assert passed(fresh)["nodes"] == 1
    assert passed(fresh, Result.FAILED)["nodes"] == 0
    off = settled_state(nodes=[N1])
    off = off.with_(cluster=cluster("east", enable=False))
    assert passed(off)["clusterTreeStatus"] == {"leafNodeItems": []}


def test_an_unchanged_status_is_not_written():
    tree = told(settled_state(nodes=[N1]))

    assert passed(tree) is None
    assert passed(tree.later(3600)) is None


def renewed(seconds, **given):
    """A leaf whose leases were renewed this many seconds after NOW."""
    return leaf(N1, health=alive(renewed_at=NOW + timedelta(seconds=seconds), **given))


def test_when_leases_were_renewed_is_shown_at_first_and_then_once_a_minute():
    tree = told(settled_state(nodes=[N1]).with_(leaf=renewed(0)))
    assert tree.cluster.status.leases_renewed_time == "2030-01-01T00:00:00Z"
    assert tree.plan().plan.wake_at == NOW + timedelta(seconds=60)

    assert passed(tree.with_(now=NOW + timedelta(seconds=59), leaf=renewed(50))) is None
    minute = tree.with_(now=NOW + timedelta(seconds=60), leaf=renewed(55))
    assert told(minute).cluster.status.leases_renewed_time == "2030-01-01T00:00:55Z"
    assert minute.plan().plan.wake_at == NOW + timedelta(seconds=115)


@pytest.mark.parametrize(
    ("health", "says"),
    [
        (alive(renewed_at=NOW + timedelta(seconds=30), failed=(("kosmos-east", "500"),)), "could not be renewed; all"),
        (lost(renewed_at=NOW + timedelta(seconds=30)), "does not respond; all"),
    ],
    ids=["late", "stopped"],
)
def test_leases_that_are_late_or_have_stopped_are_reported_with_the_exact_time(health, says):
    tree = told(settled_state(nodes=[N1]).with_(leaf=renewed(0)))

    late = told(tree.with_(leaf=leaf(N1, health=health)))

    assert late.cluster.status.leases_renewed_time == "2030-01-01T00:00:30Z"
    condition = next(each for each in late.cluster.status.conditions if each.type == "LeasesRenewed")
    assert f"{says} were last renewed at 2030-01-01T00:00:30Z" in condition.message
    assert passed(late.later(3600)) is None
    assert late.later(3600).plan().plan.wake_at is None


def test_when_leases_were_renewed_outlives_a_restart_and_goes_with_the_nodes():
    tree = told(settled_state(nodes=[N1]).with_(leaf=renewed(0)))
    assert passed(tree.with_(leaf=unreached_leaf(error=""))) is None

    off = cluster("east", enable=False)
    off = msgspec.structs.replace(off, status=tree.cluster.status)
    assert "leasesRenewedTime" not in passed(tree.with_(cluster=off))


def test_one_failed_probe_changes_no_condition():
    tree = told(settled_state(nodes=[N1]))

    assert passed(tree.with_(leaf=leaf(N1, health=failing()))) is None


def test_a_restart_before_the_first_probe_changes_no_condition():
    tree = told(settled_state(nodes=[N1]))

    assert passed(tree.with_(leaf=unreached_leaf(error=""))) is None


@pytest.mark.parametrize(
    ("seen", "reachable", "synced", "leases"),
    [
        pytest.param(
            leaf(N1, health=lost()),
            ("False", "LeafUnreachable"),
            ("False", "LeafUnreachable"),
            ("False", "LeasesStopped"),
            id="lost",
        ),
        pytest.param(
            leaf(N1, health=rejecting()),
            ("False", "CredentialsRejected"),
            ("False", "CredentialsRejected"),
            ("True", "LeasesRenewed"),
            id="rejecting",
        ),
        pytest.param(
            leaf(N1, is_connected=False, error="cut"),
            ("True", "LeafReachable"),
            ("False", "LeafNotWatched"),
            ("True", "LeasesRenewed"),
            id="answers-but-is-not-watched",
        ),
        pytest.param(
            leaf(N1, denied="cannot watch pods: forbidden: by a new rule"),
            ("True", "LeafReachable"),
            ("False", "LeafNotWatched"),
            ("True", "LeasesRenewed"),
            id="a-right-was-taken-away",
        ),
        pytest.param(
            leaf(N1, health=alive(failed=(("kosmos-east", "conflict"),))),
            ("True", "LeafReachable"),
            ("True", "ResourcesSynced"),
            ("False", "LeasesLate"),
            id="leases-late",
        ),
        pytest.param(
            unreached_leaf("no route"),
            ("False", "NotContacted"),
            ("False", "NotContacted"),
            ("Unknown", "NotContacted"),
            id="never-reached",
        ),
    ],
)
def test_a_connection_error_is_reported_and_the_cluster_is_not_ready(seen, reachable, synced, leases):
    found = conditions(passed(settled_state(nodes=[N1]).with_(leaf=seen)))

    assert (found["Reachable"], found["ResourcesSynced"], found["LeasesRenewed"]) == (reachable, synced, leases)
    assert found["Ready"][0] == "False"


def test_the_last_contact_is_reported_once_the_leaf_is_lost_and_outlives_a_restart():
    tree = told(settled_state(nodes=[N1]).with_(leaf=leaf(N1, health=lost())))
    assert tree.cluster.status.last_contact_time == "2029-12-31T23:59:30Z"

    again = replace(lost(), last_contact=None)
    assert passed(tree.with_(leaf=leaf(N1, health=again))) is None
    back = told(tree.with_(leaf=leaf(N1)))
    assert back.cluster.status.last_contact_time == ""


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Kubeconfig(), "NoKubeconfig"),
        (Kubeconfig(is_given=True, error="commands are not run"), "KubeconfigRefused"),
        (Kubeconfig(is_given=True, error="not there", is_missing=True), "KubeconfigSecretMissing"),
    ],
)
def test_an_invalid_kubeconfig_is_the_reason_of_all_conditions(given, reason):
    found = conditions(passed(TreeState(cluster("east"), unreached_leaf(""), kubeconfig=given)))

    assert found["Reachable"] == found["Ready"] == ("False", reason)


def test_a_taken_name_is_why_the_cluster_is_not_ready_though_its_leaf_is_well():
    tree = TreeState(cluster("east", node_model("n1")), leaf(N1)).with_roots(root_node("n1"))

    found = conditions(passed(tree))

    assert found["Ready"] == ("False", "NodeNameTaken")
    assert found["Reachable"][0] == "True"
    assert found["LeasesRenewed"] == ("Unknown", "NoNodes")


def test_a_party_that_gets_less_than_it_selects_is_reported_and_ready():
    nodes = [leaf_node("n1", pool="a")]
    said = passed(settled_state(node_model("n1"), selector_model("a", pool="a"), nodes=nodes))

    assert conditions(said)["Ready"] == ("True", "LeafModelsOverlap")


def test_a_leaf_that_another_cluster_has_is_why_the_cluster_is_not_ready():
    said = passed(TreeState(cluster("east"), leaf(N1, uid="a-leaf"), earlier_clusters=(cluster("west"),)))

    assert conditions(said)["Ready"] == ("False", "LeafMirroredByAnother")
    assert "Cluster west" in next(each["message"] for each in said["conditions"] if each["type"] == "Ready")
    assert (conditions(said)["Reachable"][0], said["nodes"]) == ("True", 0)


def test_since_when_credentials_are_rejected_is_reported_also_by_a_new_owner():
    later = replace(rejecting(NOW + timedelta(minutes=5)), rejected_since=NOW)
    said = passed(settled_state(nodes=[N1]).with_(leaf=leaf(N1, health=later)))

    assert "since 2030-01-01T00:00:00Z" in next(
        each["message"] for each in said["conditions"] if each["type"] == "Reachable"
    )


def test_a_write_that_fails_is_named():
    said = passed(TreeState(cluster("east"), leaf(N1)), Result.FAILED)

    assert conditions(said)["ResourcesSynced"] == ("False", "WriteFailed")
    assert conditions(said)["Ready"] == ("False", "WriteFailed")
    assert "boom" in next(each["message"] for each in said["conditions"] if each["type"] == "Ready")


@pytest.mark.parametrize("result", [Result.CONFLICT, Result.SKIPPED, Result.HELD])
def test_a_cluster_whose_nodes_are_not_created_yet_is_not_ready(result):
    said = passed(TreeState(cluster("east"), leaf(N1)), result)

    assert (said["nodes"], conditions(said)["Ready"]) == (0, ("False", "NodesPending"))
    assert "kosmos-east" in next(each["message"] for each in said["conditions"] if each["type"] == "Ready")


def test_amounts_that_cannot_be_parsed_are_reported_with_their_pods():
    usage = Usage(unreadable=frozenset({"shop/odd"}))
    said = passed(settled_state(nodes=[N1]).with_(leaf=leaf(N1, used={"n1": usage})))

    assert conditions(said)["ResourcesSynced"] == ("False", "UnreadableAmounts")
    assert "shop/odd" in next(each["message"] for each in said["conditions"] if each["type"] == "ResourcesSynced")


def test_a_cluster_that_is_switched_off_is_ready_when_its_nodes_are_gone():
    off = cluster("east", enable=False)
    assert conditions(passed(settled_state(nodes=[N1]).with_(cluster=off)))["Ready"] == ("False", "TreeDisabled")
    assert conditions(passed(TreeState(off, leaf(N1))))["Ready"] == ("True", "TreeDisabled")


def test_a_cluster_whose_finalizer_is_removed_gets_no_status():
    going = cluster("east", metadata={"deletionTimestamp": NOW.isoformat()})

    assert passed(TreeState(going, leaf(N1))) is None


def test_unacknowledged_pods_are_counted_from_the_first_minute_on():
    pods = (bound("a", "kosmos-east", NOW - timedelta(seconds=61)), bound("b", "kosmos-east", NOW))

    assert passed(settled_state(nodes=[N1]).with_(pending_pods=pods, now=NOW))["unacknowledgedPods"] == 1


def test_status_fields_of_clusterlink_are_kept():
    tree = settled_state(nodes=[N1])
    link = {"podCIDRs": ["10.0.0.0/8"]}
    status = msgspec.structs.replace(tree.cluster.status, cluster_link_status=link)
    tree = tree.with_(cluster=msgspec.structs.replace(tree.cluster, status=status))

    assert passed(tree)["clusterLinkStatus"] == link


def test_the_written_status_is_read_back_equal():
    said = passed(settled_state(nodes=[N1]))

    assert wire(msgspec.convert({"status": said}, Cluster).status) == said
