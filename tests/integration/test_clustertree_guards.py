"""Safeguards of clustertree: the brake, a running Kosmos, and Kosmos' own CRD."""

from __future__ import annotations

import pytest
from tests.builders.woods import PATIENCE, hurried, one

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.definition import CLUSTER
from nodeyard.capabilities.clustertree.leases.lease import manifest
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
    upstream_definition, wood, operator, eventually
):
    running = operator(hurried())
    n1 = wood.leaf.node("n1", cpu="2")
    east = wood.cluster("east", inline=True)
    name = f"kosmos-{east}"
    wood.until_offers(name, cpu="2")
    items = [{"leafNodeName": name}]
    wood.until(
        lambda: ((wood.see(east).get("status") or {}).get("clusterTreeStatus") or {}).get("leafNodeItems") == items,
        "the nodes are listed in a status without subresource",
    )
    wood.until_renewed(name)
    wood.until_renewed(name)

    def is_all_said():
        before = statuses(running)
        wood.until_renewed(name)
        return statuses(running) == before

    # By then all that there is to say has been offered, and what this definition lacks is known.
    wood.until(is_all_said, "a round goes by without a word")
    before = statuses(running)

    wood.leaf.pod("p", n1, cpu="1")
    wood.until_offers(name, cpu="1")
    wood.leaf.patch(n1, {"spec": {"unschedulable": True}})
    wood.until_offers(name, cpu="0")

    assert statuses(running) == before
    wood.delete(east)
    wood.until(lambda: wood.see(east) is None, "it is gone")


def statuses(running):
    return running.written().get(f"patch {names.PLURAL}.{names.GROUP}", 0)


def test_more_nodes_than_the_brake_lets_go_wait_for_an_approval(wood, operator):
    nodes = [wood.leaf.node(f"n{number}") for number in range(4)]
    running = operator(hurried(), limit=Limit(nodes=2, percent=50))
    east = wood.cluster("east", *(one(node) for node in nodes))
    wood.until_mirrors(east, *nodes)

    wood.change(east, enable=False)

    message = wood.until_condition(east, "Ready", "False", "NeedsApproval")
    assert "4 of 4" in message
    assert wood.mirrors(east) == sorted(nodes)
    held = wood.until(lambda: running.held.get(east), "the plan is held")
    wood.leaf.turn(nodes[0], "False")
    wood.until_ready(nodes[0], "False")
    wood.until_renewed(nodes[0])
    wood.leaf.turn(nodes[0], "True")
    wood.until_ready(nodes[0], "True")
    wood.annotate(east, approve=held.id)
    wood.until_mirrors(east)


def test_an_approval_for_a_leaf_node_that_is_gone_is_not_for_one_that_goes_later(wood, operator):
    n1, n2 = wood.leaf.node("n1"), wood.leaf.node("n2")
    running = operator(hurried(), limit=Limit(nodes=0, percent=0))
    east = wood.cluster("east", one(n1), one(n2))
    wood.until_mirrors(east, n1, n2)

    wood.leaf.remove(n1)
    first = wood.until(lambda: running.held.get(east), "the removal is held")
    wood.annotate(east, approve=first.id)
    wood.until_mirrors(east, n2)
    wood.leaf.remove(n2)

    wood.until(lambda: (held := running.held.get(east)) and held.id != first.id, "the other is held too")
    assert wood.mirrors(east) == [n2]


def test_taints_that_evict_wait_for_an_approval_and_the_truth_about_the_leaf_does_not(wood, operator):
    nodes = [wood.leaf.node(f"n{number}", cpu="2") for number in range(4)]
    running = operator(hurried(), limit=Limit(nodes=2, percent=50))
    east = wood.cluster("east", *(one(node) for node in nodes))
    wood.until_mirrors(east, *nodes)
    wood.until_condition(east, "Ready", "True")

    wood.change(east, leafModels=[one(node, taints=[EVICTING]) for node in nodes])
    wood.until_condition(east, "Ready", "False", "NeedsApproval")
    wood.leaf.turn(nodes[0], "False")

    wood.until_ready(nodes[0], "False")
    assert not any(is_tainted(wood.get(node)) for node in nodes)
    held = wood.until(lambda: running.held.get(east), "the plan is held")
    wood.annotate(east, approve=held.id)
    wood.until(lambda: all(is_tainted(wood.get(node)) for node in nodes), "all are tainted")
    wood.until_condition(east, "Ready", "True")


def test_while_kosmos_renews_the_leases_nothing_is_written(wood, operator):
    n1 = wood.leaf.node("n1", cpu="2")
    running = operator(hurried())
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    wood.until_renewed(name)

    def kosmos_renews():
        wood.renew(name, format_rfc3339_micro(SystemClock().now()))
        return running.metric("nodeyard_observing") == 1

    wood.until(kosmos_renews, "the operator only observes")
    wood.leaf.pod("p", n1, cpu="1")
    passes = running.metric("nodeyard_reconciles_total", result="observed")

    def is_left_alone():
        kosmos_renews()
        return running.metric("nodeyard_reconciles_total", result="observed") > passes

    wood.until(is_left_alone, "the change is seen and left")
    assert wood.offers(name)["cpu"] == "2"
    assert "clustertree manager" in wood.until_events(east, "ReplacedOperatorRunning")
    wood.until_offers(name, cpu="1")


@pytest.mark.parametrize("debounce", [clusters.DEBOUNCE_SECONDS, 2.0], ids=["usual", "late"])
def test_beside_a_living_kosmos_its_nodes_are_not_touched_from_the_first(wood, operator, monkeypatch, debounce):
    """However late the debounced loop over remote clusters comes to the new one."""
    monkeypatch.setattr(clusters, "DEBOUNCE_SECONDS", debounce)
    wood.leaf.node("n1", cpu="2")
    east = wood.named("east")
    name = f"kosmos-{east}"
    wood.node("", name=name, labels={MIRRORED_NODE: "true"}, annotations={MIRRORED_CLUSTER: east})

    def kosmos_renews():
        wood.rest.replace_or_create(manifest(name, "", format_rfc3339_micro(SystemClock().now())))

    kosmos_renews()
    running = operator(hurried())
    kosmos_renews()
    wood.cluster("east")

    def is_found_out():
        kosmos_renews()
        return any("It renews the leases of" in text for _, text in wood.events(east))

    wood.until(is_found_out, "Kosmos is found out")
    assert running.metric("nodeyard_reconciles_total", result="observed") >= 1
    assert names.MANAGER not in {each["manager"] for each in wood.get(name)["metadata"]["managedFields"]}
    assert "finalizers" not in wood.see(east)["metadata"]
    wood.until_offers(name, cpu="2")


def test_who_takes_over_writes_though_kosmos_renews(wood, operator):
    n1 = wood.leaf.node("n1", cpu="2")
    running = operator(hurried(), take_over=True)
    east = wood.cluster("east")
    name = f"kosmos-{east}"
    wood.until_renewed(name)

    before = renewals(running, east)

    def both_renew():
        wood.renew(name, format_rfc3339_micro(SystemClock().now()))
        return renewals(running, east) >= before + 4

    wood.until(both_renew, "the lease is renewed by both, often enough to notice")
    wood.leaf.pod("p", n1, cpu="1")
    wood.until_offers(name, cpu="1")


def renewals(running, cluster):
    return running.metric("nodeyard_leaf_lease_renewals_total", cluster=cluster, result="renewed")


def test_under_observe_no_node_and_no_lease_is_made(wood, operator):
    wood.leaf.node("n1")
    running = operator(hurried(), observe=True)
    east = wood.cluster("east")

    wood.until(lambda: running.metric("nodeyard_reconciles_total", result="observed") >= 1, "it is looked at")
    wood.until(lambda: running.metric("nodeyard_plan_actions") >= 1, "it would be mirrored")
    wood.until(lambda: running.metric("nodeyard_leaf_contact_age_seconds", cluster=east) > 0, "its leaf is probed")

    assert wood.mirrors(east) == []
    assert running.written() == {}
