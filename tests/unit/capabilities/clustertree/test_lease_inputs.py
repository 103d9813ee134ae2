"""The input of the lease loop for one Cluster."""

from datetime import UTC, datetime, timedelta

import pytest

from nodeyard.capabilities.clustertree.leases.inputs import NodeLeaseInput, credential_grace, lease_input
from nodeyard.capabilities.clustertree.snapshot import Kubeconfig, TreeNode, TreeNodeStatus, TreeSnapshot
from nodeyard.capabilities.clustertree.types import Cluster, ClusterSpec, ClusterTreeOptions
from nodeyard.kube.objects import Condition, ObjectMeta

SECRET = b"token: very-secret"


def snapshot(*, ready=("True", "KubeletReady"), metadata=None, **options):
    spec = ClusterSpec(cluster_tree_options=ClusterTreeOptions(**options))
    cluster = Cluster(ObjectMeta(name="oak", **(metadata or {})), spec)
    condition = Condition("Ready", *ready)
    node = TreeNode(ObjectMeta(name="kosmos-oak"), status=TreeNodeStatus(conditions=(condition,)))
    return TreeSnapshot(cluster, Kubeconfig(is_given=True, content=SECRET), mirrors={"kosmos-oak": node})


NODES = [("n2", "u2", False), ("n1", "u1", True)]


def test_a_lease_input_names_the_nodes_in_order():
    given = lease_input(snapshot(), NODES)
    assert (given.cluster, given.kubeconfig) == ("oak", SECRET)
    assert given.nodes == (NodeLeaseInput("n1", "u1", True), NodeLeaseInput("n2", "u2", False))


def test_neither_a_lease_input_nor_a_snapshot_shows_the_kubeconfig():
    assert "very-secret" not in repr(lease_input(snapshot(), NODES)) + repr(snapshot())


@pytest.mark.parametrize(
    ("text", "grace"),
    [
        ("", timedelta(minutes=10)),
        ("1h30m", timedelta(minutes=90)),
        ("0s", timedelta(0)),
        ("soon", timedelta(minutes=10)),
        ("-5m", timedelta(minutes=10)),
    ],
)
def test_the_grace_period_defaults_to_ten_minutes(text, grace):
    assert credential_grace(ClusterTreeOptions(credential_grace=text)) == grace
    assert lease_input(snapshot(credential_grace=text), NODES).credential_grace == grace


@pytest.mark.parametrize(
    ("ready", "expected"),
    [
        (("True", "KubeletReady"), (False, False)),
        (("Unknown", "LeafUnreachable"), (True, False)),
        (("Unknown", "CredentialsRejected"), (True, True)),
        (("Unknown", "NodeStatusUnknown"), (False, False)),
        (("Unknown", "LeafNodeSilent"), (False, False)),
        (("True", "LeafUnreachable"), (False, False)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value[0], str) else "",
)
def test_a_leaf_that_its_nodes_call_unreachable_was_given_up(ready, expected):
    given = lease_input(snapshot(ready=ready), NODES)
    assert (given.is_given_up, given.is_rejected) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"enable": False},
        {"metadata": {"deletion_timestamp": datetime(2026, 1, 1, tzinfo=UTC)}},
        {"metadata": {"annotations": {"kosmos.io/cluster-role": "root"}}},
    ],
    ids=["disabled", "deleting", "root"],
)
def test_a_cluster_that_is_not_mirrored_is_of_interest_only_while_it_has_nodes(options):
    assert lease_input(snapshot(**options), []) is None
    assert lease_input(snapshot(**options), NODES) is not None


def test_the_status_records_since_when_credentials_are_rejected():
    noted = {"annotations": {"nodeyard.dev/credentials-rejected-since": "2026-01-01T00:00:00Z"}}
    assert lease_input(snapshot(metadata=noted), NODES).rejected_since == datetime(2026, 1, 1, tzinfo=UTC)
    assert lease_input(snapshot(), NODES).rejected_since is None


def test_a_cluster_without_nodes_yet_is_asked_all_the_same():
    assert lease_input(snapshot(), []).nodes == ()
