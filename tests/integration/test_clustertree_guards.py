"""Safeguards of clustertree: the brake, a running Kosmos, and Kosmos' own CRD."""

from __future__ import annotations

import pytest
from tests.builders.tree_env import PATIENCE, node_model, with_fast_lease_loop

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.definition import CLUSTER
from nodeyard.capabilities.clustertree.leases.node_lease import manifest
from nodeyard.kube.names import MIRRORED_CLUSTER, MIRRORED_NODE
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.plan.brake import Limit
from nodeyard.process.clock import SystemClock
from nodeyard.runtime.remote import clusters
from nodeyard.testing import third_party_crds

TEXT, YES = {"type": "string"}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


EVICTING = {"key": "example.com/maintenance", "effect": "NoExecute"}


def is_tainted(node):
    return any(taint["key"] == EVICTING["key"] for taint in node["spec"]["taints"])


def some(required=(), **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def many(item):
    return {"type": "array", "items": item}


def upstream():
    """Kosmos' own CRD: its fields and defaults, without status subresource and conditions."""
    expression = some(["key", "operator"], key=TEXT, operator=TEXT, values=many(TEXT))
    selector = some(matchLabels=TEXTS, matchExpressions=many(expression))
    taint = some(["effect", "key"], key=TEXT, value=TEXT, effect=TEXT, timeAdded={**TEXT, "format": "date-time"})
    model = some(
        leafNodeName=TEXT,
        labels=TEXTS,
        taints=many(taint),
        nodeSelector=some(nodeName=TEXT, labelSelector=selector),
    )
    spec = some(
        kubeconfig={**TEXT, "format": "byte"},
        namespace={**TEXT, "default": "kosmos-system"},
        imageRepository=TEXT,
        clusterLinkOptions=some(enable={**YES, "default": True}, cni={**TEXT, "default": "calico"}),
        clusterTreeOptions=some(enable={**YES, "default": True}, leafModels=many(model)),
    )
    status = some(
        clusterLinkStatus=some(podCIDRs=many(TEXT), serviceCIDRs=many(TEXT)),
        clusterTreeStatus=some(leafNodeItems=many(some(["leafNodeName"], leafNodeName=TEXT))),
    )
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "subresources": {},
        "schema": {"openAPIV3Schema": some(spec=spec, status=status)},
    }
    kinds = {"kind": names.KIND, "listKind": f"{names.KIND}List", "plural": names.PLURAL, "singular": "cluster"}
    definition = CLUSTER.render()
    kept = {key: value for key, value in definition["spec"].items() if key in ("group", "scope")}
    return {**definition, "spec": {**kept, "names": kinds, "versions": [version]}}


@pytest.fixture
def upstream_definition(api, cluster_kind, eventually):
    def knows_ours():
        document = api.rest.get(f"/openapi/v3/apis/{names.API_VERSION}")
        return "kubeconfigSecretRef" in str(document)

    third_party_crds.install(api.rest, [upstream()])
    eventually(lambda: not knows_ours(), "Kosmos' definition is served", PATIENCE)
    yield
    third_party_crds.install(api.rest, [CLUSTER.render()])
    eventually(knows_ours, "ours is served again", PATIENCE)


def test_on_kosmos_own_definition_a_cluster_is_mirrored_and_its_status_written_once(
    upstream_definition, tree, operator, eventually
):
    running = operator(with_fast_lease_loop())
    n1 = tree.leaf.node("n1", cpu="2")
    east = tree.cluster("east", inline=True)
    name = f"kosmos-{east}"
    tree.wait_for_allocatable(name, cpu="2")
    items = [{"leafNodeName": name}]
    tree.wait_until(
        lambda: (
            ((tree.get_cluster(east).get("status") or {}).get("clusterTreeStatus") or {}).get("leafNodeItems") == items
        ),
        "the nodes are listed in a status without subresource",
    )
    tree.wait_for_renewal(name)
    tree.wait_for_renewal(name)

    def is_all_said():
        before = statuses(running)
        tree.wait_for_renewal(name)
        return statuses(running) == before

    # By then every status field was sent once, and the fields that the CRD lacks are known.
    tree.wait_until(is_all_said, "a round goes by without a word")
    before = statuses(running)

    tree.leaf.pod("p", n1, cpu="1")
    tree.wait_for_allocatable(name, cpu="1")
    tree.leaf.patch(n1, {"spec": {"unschedulable": True}})
    tree.wait_for_allocatable(name, cpu="0")

    assert statuses(running) == before
    tree.delete(east)
    tree.wait_until(lambda: tree.get_cluster(east) is None, "it is gone")


def statuses(running):
    return running.write_counts().get(f"patch {names.PLURAL}.{names.GROUP}", 0)


def test_removing_more_nodes_than_the_brake_allows_waits_for_approval(tree, operator):
    nodes = [tree.leaf.node(f"n{number}") for number in range(4)]
    running = operator(with_fast_lease_loop(), limit=Limit(nodes=2, percent=50))
    east = tree.cluster("east", *(node_model(node) for node in nodes))
    tree.wait_for_mirrors(east, *nodes)

    tree.change(east, enable=False)

    message = tree.wait_for_condition(east, "Ready", "False", "NeedsApproval")
    assert "4 of 4" in message
    assert tree.mirrors(east) == sorted(nodes)
    held = tree.wait_until(lambda: running.held.get(east), "the plan is held")
    tree.leaf.turn(nodes[0], "False")
    tree.wait_for_ready(nodes[0], "False")
    tree.wait_for_renewal(nodes[0])
    tree.leaf.turn(nodes[0], "True")
    tree.wait_for_ready(nodes[0], "True")
    tree.annotate(east, approve=held.id)
    tree.wait_for_mirrors(east)


def test_an_approval_for_a_removed_leaf_node_does_not_cover_later_ones(tree, operator):
    n1, n2 = tree.leaf.node("n1"), tree.leaf.node("n2")
    running = operator(with_fast_lease_loop(), limit=Limit(nodes=0, percent=0))
    east = tree.cluster("east", node_model(n1), node_model(n2))
    tree.wait_for_mirrors(east, n1, n2)

    tree.leaf.remove(n1)
    first = tree.wait_until(lambda: running.held.get(east), "the removal is held")
    tree.annotate(east, approve=first.id)
    tree.wait_for_mirrors(east, n2)
    tree.leaf.remove(n2)

    tree.wait_until(lambda: (held := running.held.get(east)) and held.id != first.id, "the other is held too")
    assert tree.mirrors(east) == [n2]


def test_taints_that_evict_wait_for_an_approval_and_the_truth_about_the_leaf_does_not(tree, operator):
    nodes = [tree.leaf.node(f"n{number}", cpu="2") for number in range(4)]
    running = operator(with_fast_lease_loop(), limit=Limit(nodes=2, percent=50))
    east = tree.cluster("east", *(node_model(node) for node in nodes))
    tree.wait_for_mirrors(east, *nodes)
    tree.wait_for_condition(east, "Ready", "True")

    tree.change(east, leafModels=[node_model(node, taints=[EVICTING]) for node in nodes])
    tree.wait_for_condition(east, "Ready", "False", "NeedsApproval")
    tree.leaf.turn(nodes[0], "False")

    tree.wait_for_ready(nodes[0], "False")
    assert not any(is_tainted(tree.get_node(node)) for node in nodes)
    held = tree.wait_until(lambda: running.held.get(east), "the plan is held")
    tree.annotate(east, approve=held.id)
    tree.wait_until(lambda: all(is_tainted(tree.get_node(node)) for node in nodes), "all are tainted")
    tree.wait_for_condition(east, "Ready", "True")


def test_while_kosmos_renews_the_leases_nothing_is_written(tree, operator):
    n1 = tree.leaf.node("n1", cpu="2")
    running = operator(with_fast_lease_loop())
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    tree.wait_for_renewal(name)

    def kosmos_renews():
        tree.renew(name, format_rfc3339_micro(SystemClock().now()))
        return running.metric("nodeyard_observing") == 1

    tree.wait_until(kosmos_renews, "the operator only observes")
    tree.leaf.pod("p", n1, cpu="1")
    passes = running.metric("nodeyard_reconciles_total", result="observed")

    def is_left_alone():
        kosmos_renews()
        return running.metric("nodeyard_reconciles_total", result="observed") > passes

    tree.wait_until(is_left_alone, "the change is seen and left")
    assert tree.allocatable(name)["cpu"] == "2"
    assert "clustertree manager" in tree.wait_for_event(east, "ReplacedOperatorRunning")
    tree.wait_for_allocatable(name, cpu="1")


@pytest.mark.parametrize("debounce", [clusters.DEBOUNCE_SECONDS, 2.0], ids=["usual", "late"])
def test_while_kosmos_runs_its_nodes_are_never_touched(tree, operator, monkeypatch, debounce):
    """The debounced loop over remote clusters may connect the new one late."""
    monkeypatch.setattr(clusters, "DEBOUNCE_SECONDS", debounce)
    tree.leaf.node("n1", cpu="2")
    east = tree.unique_name("east")
    name = f"kosmos-{east}"
    tree.node("", name=name, labels={MIRRORED_NODE: "true"}, annotations={MIRRORED_CLUSTER: east})

    def kosmos_renews():
        tree.rest.replace_or_create(manifest(name, "", format_rfc3339_micro(SystemClock().now())))

    kosmos_renews()
    running = operator(with_fast_lease_loop())
    kosmos_renews()
    tree.cluster("east")

    def is_found_out():
        kosmos_renews()
        return any("It renews the leases of" in text for _, text in tree.events(east))

    tree.wait_until(is_found_out, "Kosmos is found out")
    assert running.metric("nodeyard_reconciles_total", result="observed") >= 1
    assert names.MANAGER not in {each["manager"] for each in tree.get_node(name)["metadata"]["managedFields"]}
    assert "finalizers" not in tree.get_cluster(east)["metadata"]
    tree.wait_for_allocatable(name, cpu="2")


def test_with_take_over_it_writes_though_kosmos_renews(tree, operator):
    n1 = tree.leaf.node("n1", cpu="2")
    running = operator(with_fast_lease_loop(), take_over=True)
    east = tree.cluster("east")
    name = f"kosmos-{east}"
    tree.wait_for_renewal(name)

    before = renewals(running, east)

    def both_renew():
        tree.renew(name, format_rfc3339_micro(SystemClock().now()))
        return renewals(running, east) >= before + 4

    tree.wait_until(both_renew, "the lease is renewed by both, often enough to notice")
    tree.leaf.pod("p", n1, cpu="1")
    tree.wait_for_allocatable(name, cpu="1")


def renewals(running, cluster):
    return running.metric("nodeyard_leaf_lease_renewals_total", cluster=cluster, result="renewed")


def test_under_observe_no_node_and_no_lease_is_made(tree, operator):
    tree.leaf.node("n1")
    running = operator(with_fast_lease_loop(), observe=True)
    east = tree.cluster("east")

    tree.wait_until(lambda: running.metric("nodeyard_reconciles_total", result="observed") >= 1, "it is looked at")
    tree.wait_until(lambda: running.metric("nodeyard_plan_actions") >= 1, "it would be mirrored")
    tree.wait_until(lambda: running.metric("nodeyard_leaf_contact_age_seconds", cluster=east) > 0, "its leaf is probed")

    assert tree.mirrors(east) == []
    assert running.write_counts() == {}
