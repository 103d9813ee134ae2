"""Explanations of Clusters, nodes and pods."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from tests.builders.plans import render_decision

from nodeyard.capabilities.clustertree import messages, names
from nodeyard.capabilities.clustertree.planning.refusals import unacknowledged
from nodeyard.capabilities.clustertree.reasons import Reason
from nodeyard.capabilities.clustertree.snapshot import Kubeconfig
from nodeyard.capabilities.clustertree.types import ClusterStatus, SecretReference

from ....builders.messages import message_classes, remedies, sample
from ....builders.tree_state import (
    NOW,
    TreeState,
    bound,
    cluster,
    failing,
    leaf,
    leaf_node,
    lost,
    node_model,
    refused,
    rejecting,
    root_node,
    selector_model,
    settled_state,
    unreached_leaf,
    used,
)


def candidates(decision):
    return {each.name: (each.is_taken, each.reason) for each in decision.candidates}


def test_a_cluster_explains_the_contribution_of_every_leaf_node():
    nodes = [
        leaf_node("n1"),
        leaf_node("n2", ready="False"),
        leaf_node("n3", is_cordoned=True),
        leaf_node("n4", taints=["a:NoSchedule"]),
    ]
    tree = settled_state(nodes=nodes, resources={"excludeTainted": True})
    tree = tree.with_(leaf=leaf(*nodes, used={"n1": used(10, cpu="1500m", memory="2Gi")}))

    decision = tree.why("Cluster", "east")

    assert decision.rule == "IsLeaf"
    assert candidates(decision) == {
        "n1": (True, "Counted"),
        "n2": (False, "LeafNodeNotReady"),
        "n3": (False, "LeafNodeCordoned"),
        "n4": (False, "LeafNodeTainted"),
    }
    assert decision.candidates[0].facts.text() == (
        "Counted for kosmos-east; free: cpu 2500m of 4, memory 6Gi of 8Gi, pods 100 of 110"
    )
    assert remedies(decision) == ("EditLeafModels", "UncordonLeafNode")


@pytest.mark.parametrize(
    ("changes", "rule", "remedy"),
    [
        ({"cluster": cluster(enable=False)}, "TreeDisabled", "EnableTree"),
        ({"cluster": cluster(metadata={"annotations": {"nodeyard.dev/paused": "true"}})}, "Paused", "EndPause"),
        ({"kubeconfig": Kubeconfig()}, "NoKubeconfig", "FixKubeconfig"),
        ({"kubeconfig": Kubeconfig(is_missing=True)}, "KubeconfigSecretMissing", "LabelSecret"),
        ({"leaf": unreached_leaf()}, "NotContacted", "RestoreContact"),
        ({"leaf": unreached_leaf(is_connected=True)}, "LeafNotListed", "RestoreContact"),
        ({"leaf": leaf(health=lost())}, "LeafUnreachable", "RestoreContact"),
        ({"leaf": leaf(health=failing())}, "ProbeFailing", "RestoreContact"),
        ({"leaf": leaf(health=rejecting())}, "CredentialsRejected", "RenewCredentials"),
        ({"cluster": cluster("east", node_model("n9"))}, "LeafNodeMissing", "EditLeafModels"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_cluster_names_its_first_problem(changes, rule, remedy):
    decision = settled_state(nodes=[leaf_node("n1")]).with_(**changes).why("Cluster", "east")

    assert (decision.rule, remedies(decision)[0]) == (rule, remedy)
    assert "east" in decision.facts.text()


def test_a_leaf_node_of_a_model_that_gets_no_node_counts_for_nothing():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")]).without_root("n1").with_roots(root_node("n1"))

    assert candidates(tree.why("Cluster", "east")) == {"n1": (False, "NodeNameTaken")}


def test_a_cluster_that_ends_has_no_candidates():
    tree = settled_state(nodes=[leaf_node("n1")]).with_(cluster=cluster(enable=False))

    assert candidates(tree.why("Cluster", "east")) == {}


def test_another_cluster_is_not_explained():
    assert settled_state(nodes=[]).why("Cluster", "west") is None


def test_a_decision_lists_leaf_nodes_of_the_node_and_of_other_models():
    nodes = [leaf_node("n1", pool="a", zone="z"), leaf_node("n2", zone="z"), leaf_node("n3")]
    tree = settled_state(selector_model("a", pool="a"), selector_model("z", zone="z"), nodes=nodes)

    decision = tree.why("Node", "kosmos-z-1")

    assert decision.rule == "MirrorsLeafNodes"
    assert candidates(decision) == {
        "n1": (False, "InOtherModel"),
        "n2": (True, "Counted"),
        "n3": (False, "NotSelected"),
    }


def test_a_mirrored_leaf_node_explains_itself_alone():
    decision = settled_state(node_model("n1"), nodes=[leaf_node("n1"), leaf_node("n2")]).why("Node", "n1")

    assert (decision.rule, list(candidates(decision))) == ("MirrorsLeafNode", ["n1"])


@pytest.mark.parametrize(
    ("state", "rule"),
    [
        (leaf(leaf_node("n1"), health=lost(), is_connected=False), "LeafUnreachable"),
        (leaf(leaf_node("n1", ready="False")), "LeafNodesNotReady"),
    ],
    ids=["unreachable", "not ready"],
)
def test_a_node_that_is_not_ready_says_why(state, rule):
    tree = settled_state(nodes=[leaf_node("n1")]).with_(leaf=state).settled()

    decision = tree.why("Node", "kosmos-east")
    assert decision.rule == rule
    assert ("2029-12-31T23:59:30Z" in decision.facts.text()) == (rule == "LeafUnreachable")


def test_a_foreign_node_is_explained_with_the_remedy():
    tree = settled_state(nodes=[]).without_root("kosmos-east").with_roots(root_node("kosmos-east"))

    decision = tree.why("Node", "kosmos-east")

    assert (decision.rule, remedies(decision)) == ("NodeNameTaken", ("RenameNode",))
    assert "not a mirror" in decision.facts.text()


def test_a_node_being_removed_explains_why():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])

    assert tree.with_(cluster=cluster()).why("Node", "n1").rule == "NodeRemoved"
    assert tree.with_(cluster=cluster(enable=False)).why("Node", "n1").rule == "TreeDisabled"


def test_a_node_that_no_model_asks_for_is_not_explained():
    assert settled_state(nodes=[]).with_roots(root_node("n7")).why("Node", "n7") is None


def test_an_unacknowledged_pod_is_reported_after_a_minute_and_not_before():
    tree = settled_state(nodes=[leaf_node("n1")]).with_(now=NOW, pending_pods=(bound("cart", "kosmos-east"),))

    early, late = tree.plan(), tree.later(60)

    assert (refused(early), early.plan.wake_at) == ([], NOW + timedelta(seconds=60))
    assert refused(late.plan()) == [("cart", "PodUnacknowledged")]
    assert late.plan().plan.wake_at is None
    assert [each.name for each in unacknowledged(late.snapshot(), late.now)] == ["cart"]


def test_a_pod_that_waits_is_explained_from_the_first():
    tree = settled_state(nodes=[leaf_node("n1")]).with_(now=NOW, pending_pods=(bound("cart", "kosmos-east"),))

    early, late = tree.why("Pod", "cart", "shop"), tree.later(60).why("Pod", "cart", "shop")

    assert "yet" in early.facts.text()
    assert "does not move pods" in late.facts.text()
    assert remedies(late) == ("RunPodSync",)
    assert tree.why("Pod", "other", "shop") is None


@pytest.mark.parametrize("reason", list(Reason), ids=lambda each: each.value)
def test_every_reason_has_a_message_with_a_text(reason):
    facts = {"cluster": "east", "node": "kosmos-east", "pod": "shop/cart", "since": "2030-01-01T00:00:00Z"}

    told = sample(message_classes(messages)[reason], **facts).text()

    assert " " in told
    assert "{" not in told


def test_the_remedy_for_a_secret_names_its_label():
    advice = messages.LabelSecret(cluster="east", secret="leaf-east")
    assert f"{names.LEAF_KUBECONFIG}=true" in advice.text()


def test_a_decision_reads_as_prose():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])

    told = render_decision(tree.why("Node", "n1"), "clustertree")

    assert told.splitlines()[:2] == [
        "Node n1 (clustertree)",
        "  MirrorsLeafNode: Node n1 mirrors leaf node n1 of Cluster east; it offers cpu 4, memory 8Gi, pods",
    ]


def recorded(status, reason, message="As the operator says"):
    found = {"type": "Reachable", "status": status, "reason": reason, "message": message}
    at = {"lastTransitionTime": NOW.isoformat()}
    return msgspec.structs.replace(
        cluster("east"), status=msgspec.convert({"conditions": [{**found, **at}], "leafNodes": 7}, ClusterStatus)
    )


def test_the_contact_reported_by_the_operator_counts_where_this_process_does_not_probe_the_leaf():
    reached = replace(leaf(leaf_node("n1")), health=None)
    tree = TreeState(recorded("False", "LeafUnreachable"), reached)

    decision = tree.why(names.KIND, "east")

    assert decision.rule == "LeafUnreachable"
    said = decision.facts.text()
    assert said == "As the operator says (recorded by the operator at 2030-01-01T00:00:00Z)"
    assert "RestoreContact" in remedies(decision)
    assert all("As the operator says" not in each.text() for each in decision.would_change)


def test_a_missing_secret_that_the_operator_recorded_is_reported_with_its_name_and_label():
    reached = replace(leaf(leaf_node("n1")), health=None)
    given = recorded("False", "KubeconfigSecretMissing")
    ref = SecretReference(name="east-kubeconfig", namespace="leaves")
    named = msgspec.structs.replace(given, spec=msgspec.structs.replace(given.spec, kubeconfig_secret_ref=ref))
    decision = TreeState(named, reached).why(names.KIND, "east")

    (advice,) = (each.text() for each in decision.would_change)

    assert advice == "Create Secret leaves/east-kubeconfig with the label nodeyard.dev/leaf-kubeconfig=true"


def test_a_leaf_that_only_we_cannot_reach_is_as_the_operator_says():
    tree = TreeState(recorded("True", "LeafReachable"), unreached_leaf("no route from here"))

    decision = tree.why(names.KIND, "east")

    assert decision.rule == "IsLeaf"
    assert "with 7 leaf nodes" in decision.facts.text()
