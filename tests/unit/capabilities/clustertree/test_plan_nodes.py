"""Fields of a mirrored node: labels, taints, cordon, addresses, resources, and its writes."""

from datetime import timedelta

import msgspec
import pytest

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import NodeInfo
from nodeyard.capabilities.pools import names as pools
from nodeyard.capabilities.spares import names as spares
from nodeyard.kube.names import CAPABILITY, label_value_faults
from nodeyard.kube.objects import OwnerReference, Taint
from nodeyard.plan.brake import Limit, brake
from nodeyard.plan.model import Disruption, Verb

from ....builders.tree_state import (
    NOW,
    VERSION,
    TreeState,
    cluster,
    leaf,
    leaf_node,
    left_by_kosmos,
    mirror_of,
    node_model,
    reasons,
    selector_model,
    settled_state,
    used,
    whole_model,
)

FIXED = Taint(key="kosmos.io/node", value="true", effect="NoSchedule")
MINE = Taint(key="mine", effect="NoExecute")


def edited(node, **metadata):
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, **metadata))


def respecced(node, **spec):
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, **spec))


def only_write(planned):
    (action,) = planned.plan.actions
    return planned.write(action)


def test_a_node_is_created_whole_after_the_finalizer():
    tree = TreeState(cluster("east", metadata={"finalizers": ["other"]}), leaf(leaf_node("n1")))

    planned = tree.plan()

    finalizer, node = planned.plan.actions
    assert planned.write(finalizer).body == {"metadata": {"finalizers": ["other", names.FINALIZER]}}
    assert planned.write(finalizer).resource_version == "1"
    assert (node.verb, node.after) == (Verb.CREATE, (finalizer.id,))
    body = planned.write(node).body
    assert body["spec"] == {
        "taints": [{"key": "kosmos.io/node", "value": "true", "effect": "NoSchedule"}],
        "providerID": "kosmos://east/kosmos-east",
    }
    assert body["metadata"]["labels"] == {
        "kosmos.io/node": "true",
        "kubernetes.io/role": "agent",
        "kubernetes.io/hostname": "kosmos-east",
        "kubernetes.io/arch": "arm64",
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/os": "linux",
    }
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "kosmos.io/v1alpha1", "kind": "Cluster", "name": "east", "uid": "uid-east"}
    ]
    status = body["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "Ready": "True",
        "NetworkUnavailable": "False",
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
    }
    assert status["addresses"] == [{"type": "Hostname", "address": "kosmos-east"}]
    assert status["nodeInfo"] == {"kubeletVersion": VERSION, "architecture": "arm64", "operatingSystem": "linux"}
    assert status["capacity"] == status["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}


def test_where_leaf_nodes_differ_the_default_platform_is_set_and_the_common_zone():
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    nodes = [
        leaf_node("n1", **{zone: "a", region: "r", "kubernetes.io/arch": "arm64"}),
        leaf_node("n2", **{zone: "b", region: "r", "kubernetes.io/arch": "amd64"}),
    ]

    labels = mirror_of("kosmos-east", TreeState(cluster(), leaf(*nodes)).plan())["metadata"]["labels"]

    assert labels["kubernetes.io/arch"] == "amd64"
    assert labels[region] == "r"
    assert zone not in labels


def test_a_leaf_node_is_mirrored_with_its_labels_but_not_its_roles():
    node = leaf_node("n1", disk="ssd", **{"node-role.kubernetes.io/control-plane": "", "kosmos.io/node": "no"})
    tree = TreeState(
        cluster("east", node_model("n1", labels={"disk": "fast", "team": "a", "kosmos.io/node": "x"})), leaf(node)
    )

    metadata = mirror_of("n1", tree.plan())["metadata"]

    assert (metadata["labels"]["disk"], metadata["labels"]["team"]) == ("fast", "a")
    assert metadata["labels"]["kosmos.io/node"] == "true"
    assert "node-role.kubernetes.io/control-plane" not in metadata["labels"]
    assert metadata["annotations"][names.MIRRORED_LABELS] == "disk,team"


@pytest.mark.parametrize("key", [spares.TEMPLATE_LABEL, spares.OUT_LABEL, pools.POOL, CAPABILITY])
def test_a_label_that_marks_an_owner_in_the_leaf_is_not_mirrored(key):
    tree = settled_state(
        node_model("n1", labels={"lattice.dev/tier": "ours"}), nodes=[leaf_node("n1", disk="ssd", **{key: "web"})]
    )

    labels = tree.roots["n1"].metadata.labels

    assert key not in labels
    assert (labels["disk"], labels["lattice.dev/tier"]) == ("ssd", "ours")


def test_a_mirror_that_has_such_a_label_from_an_earlier_version_loses_it():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1", disk="ssd", **{spares.TEMPLATE_LABEL: "web"})])
    node = tree.roots["n1"]
    recorded = {**node.metadata.annotations, names.MIRRORED_LABELS: f"disk,{spares.TEMPLATE_LABEL}"}
    labels = {**node.metadata.labels, spares.TEMPLATE_LABEL: "web"}

    planned = tree.with_roots(edited(node, labels=labels, annotations=recorded)).plan()

    assert only_write(planned).body["metadata"] == {
        "labels": {spares.TEMPLATE_LABEL: None},
        "annotations": {names.MIRRORED_LABELS: "disk"},
    }


def test_a_taint_by_which_the_leaf_keeps_a_spare_free_crosses_as_a_cordon():
    taints = [f"{spares.SPARE_TAINT}=true:NoSchedule"]

    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1", taints=taints)])
    claimed = tree.with_(leaf=leaf(leaf_node("n1"))).settled()

    assert [each.key for each in tree.roots["n1"].spec.taints] == ["kosmos.io/node"]
    assert tree.roots["n1"].spec.unschedulable
    assert not claimed.roots["n1"].spec.unschedulable


def test_a_mirror_that_has_such_a_taint_from_an_earlier_version_loses_it():
    spare = f"{spares.SPARE_TAINT}:NoSchedule"
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1", taints=[f"{spares.SPARE_TAINT}=true:NoSchedule"])])
    node = tree.roots["n1"]
    taints = (*node.spec.taints, Taint(key=spares.SPARE_TAINT, value="true", effect="NoSchedule"))
    before = respecced(node, taints=taints)
    before = edited(before, annotations={**node.metadata.annotations, names.MIRRORED_TAINTS: spare})

    after = tree.with_roots(before).settled().roots["n1"]

    assert [each.key for each in after.spec.taints] == ["kosmos.io/node"]


def test_a_label_is_removed_with_that_of_the_leaf_and_a_users_label_stays():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1", disk="ssd")])
    node = tree.roots["n1"]
    tree = tree.with_roots(edited(node, labels={**node.metadata.labels, "mine": "1", "kubernetes.io/os": "plan9"}))

    planned = tree.with_(leaf=leaf(leaf_node("n1", zone="a"))).plan()

    assert only_write(planned).body["metadata"] == {
        "labels": {"disk": None, "zone": "a", "kubernetes.io/os": "linux"},
        "annotations": {names.MIRRORED_LABELS: "zone"},
    }
    assert only_write(planned).resource_version == ""


def test_taints_of_model_and_leaf_are_set_and_those_of_others_survive():
    taints = ["dedicated=gpu:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
    tree = settled_state(node_model("n1", taints=["team=a:NoExecute"]), nodes=[leaf_node("n1", taints=taints)])
    node = tree.roots["n1"]
    assert [each.key for each in node.spec.taints] == ["kosmos.io/node", "team", "dedicated"]
    assert node.metadata.annotations[names.MIRRORED_TAINTS] == "dedicated:NoSchedule,team:NoExecute"
    tree = tree.with_roots(respecced(node, taints=(*node.spec.taints, MINE)))

    planned = tree.with_(
        cluster=cluster("east", node_model("n1", taints=["team=b:NoExecute"])), leaf=leaf(leaf_node("n1"))
    ).plan()

    assert only_write(planned).body["spec"]["taints"] == [
        {"key": "kosmos.io/node", "value": "true", "effect": "NoSchedule"},
        {"key": "team", "value": "b", "effect": "NoExecute"},
        {"key": "mine", "effect": "NoExecute"},
    ]
    assert only_write(planned).resource_version == node.metadata.resource_version


@pytest.mark.parametrize(("effect", "disruption"), [("NoSchedule", Disruption.NONE), ("NoExecute", Disruption.EVICTS)])
def test_a_models_new_taint_is_disruptive_where_it_evicts(effect, disruption):
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])

    planned = tree.with_(cluster=cluster("east", node_model("n1", taints=[f"team=a:{effect}"]))).plan()

    (action,) = planned.plan.actions
    assert action.disruption is disruption


def test_an_approval_of_one_taint_is_not_for_another_that_the_leaf_gets_later():
    def tainted(taint, *nodes):
        return tree.with_(leaf=leaf(*(leaf_node(name, taints=[taint] if name in nodes else []) for name in called)))

    def held(tree, *approved):
        return brake(tree.plan().plan, Limit(nodes=1, percent=0), len(tree.roots), approved).held

    called = ("n1", "n2", "n3")
    tree = settled_state(*map(node_model, called), nodes=map(leaf_node, called))

    asked = held(tainted("repair=disk:NoExecute", "n1", "n2"))

    assert held(tainted("repair=disk:NoExecute", "n1", "n2", "n3"), asked.id) is None
    assert held(tainted("repair=fan:NoExecute", "n1", "n2"), asked.id) is not None
    assert held(tainted("outage:NoExecute", *called), asked.id) is not None


def test_the_fixed_taint_is_put_back():
    tree = settled_state(nodes=[leaf_node("n1")])

    planned = tree.with_roots(respecced(tree.roots["kosmos-east"], taints=(MINE,))).plan()

    assert [each["key"] for each in only_write(planned).body["spec"]["taints"]] == ["mine", "kosmos.io/node"]


def test_a_cordon_in_the_leaf_is_mirrored_and_undone_with_it():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])

    closed = tree.with_(leaf=leaf(leaf_node("n1", is_cordoned=True))).settled()
    opened = closed.with_(leaf=leaf(leaf_node("n1"))).settled()

    assert closed.roots["n1"].spec.unschedulable
    assert closed.roots["n1"].metadata.annotations[names.CORDONED_BY] == "leaf"
    assert not opened.roots["n1"].spec.unschedulable
    assert names.CORDONED_BY not in opened.roots["n1"].metadata.annotations


def test_a_persons_cordon_is_never_undone():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])
    tree = tree.with_roots(respecced(tree.roots["n1"], unschedulable=True))

    closed = tree.with_(leaf=leaf(leaf_node("n1", is_cordoned=True))).later(5).settled()
    opened = closed.with_(leaf=leaf(leaf_node("n1"))).later(5).settled()

    assert closed.roots["n1"].spec.unschedulable
    assert opened.roots["n1"].spec.unschedulable


def test_a_cordoned_leaf_node_of_a_group_cordons_nothing():
    tree = settled_state(selector_model("a", pool="a"), nodes=[leaf_node("n1", pool="a", is_cordoned=True)])

    node = tree.roots["kosmos-a-0"]
    assert not node.spec.unschedulable
    assert node.status.capacity == {"cpu": "0", "memory": "0", "pods": "0"}


def test_a_leaf_node_is_mirrored_with_its_addresses_each_once_and_its_node_info():
    address = {"type": "InternalIP", "address": "10.1.2.3"}
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1", addresses=[address, address])])

    status = tree.roots["n1"].status
    assert [each.address for each in status.addresses] == ["10.1.2.3"]
    assert status.node_info == NodeInfo(kubelet_version="v1.35.0", architecture="arm64", operating_system="linux")


def test_a_group_without_nodes_keeps_its_platform_labels_and_loses_its_zone():
    tree = settled_state(nodes=[leaf_node("n1", **{"topology.kubernetes.io/zone": "a"})])

    node = tree.with_(leaf=leaf()).settled().roots["kosmos-east"]

    assert (node.metadata.labels["kubernetes.io/arch"], node.status.node_info.architecture) == ("arm64", "arm64")
    assert "topology.kubernetes.io/zone" not in node.metadata.labels


def test_another_version_of_the_leaf_is_written_and_an_unknown_one_changes_nothing():
    tree = settled_state(nodes=[leaf_node("n1")])

    newer = tree.with_(leaf=leaf(leaf_node("n1"), version="v1.37.0")).plan()
    unknown = tree.with_(leaf=leaf(leaf_node("n1"), version="")).plan()

    assert only_write(newer).body == {"status": {"nodeInfo": {"kubeletVersion": "v1.37.0"}}}
    assert reasons(unknown) == []


def test_only_the_amounts_that_changed_are_written():
    tree = settled_state(nodes=[leaf_node("n1"), leaf_node("n2")])

    planned = tree.with_(leaf=leaf(leaf_node("n1"), leaf_node("n2"), used={"n1": used(1, cpu="500m")})).plan()

    write = only_write(planned)
    assert reasons(planned) == [("kosmos-east", "ResourcesChanged")]
    assert (write.subresource, write.resource_version) == ("status", "")
    assert write.body == {
        "metadata": {"annotations": {names.WRITTEN_AT: "2030-01-01T00:00:02.000Z"}},
        "status": {"capacity": {"cpu": "7500m", "pods": "219"}, "allocatable": {"cpu": "7500m", "pods": "219"}},
    }
    assert planned.is_final


def test_an_amount_in_another_notation_is_the_same_amount():
    tree = settled_state(nodes=[leaf_node("n1")])
    node = tree.roots["kosmos-east"]
    said = {"cpu": "4000m", "memory": "8192Mi", "pods": "110"}
    status = msgspec.structs.replace(node.status, capacity=said, allocatable=said)

    assert reasons(tree.with_roots(msgspec.structs.replace(node, status=status)).plan()) == []


def test_resources_are_written_once_a_second_at_most_and_conditions_at_once():
    busy = leaf(leaf_node("n1"), used={"n1": used(1, cpu="1")})
    tree = settled_state(nodes=[leaf_node("n1")]).with_(now=NOW + timedelta(milliseconds=400))

    early = tree.with_(leaf=busy).plan()
    down = tree.with_(leaf=leaf(leaf_node("n1", ready="False"))).plan()

    assert reasons(early) == []
    assert early.plan.wake_at == NOW + timedelta(seconds=1)
    assert reasons(tree.with_(leaf=busy, now=early.plan.wake_at).plan()) == [("kosmos-east", "ResourcesChanged")]
    assert reasons(down) == [("kosmos-east", "ConditionsChanged")]
    assert "capacity" not in only_write(down).body["status"]
    assert down.plan.wake_at == NOW + timedelta(seconds=1)


def test_a_time_of_writing_ahead_of_our_clock_holds_nothing_back():
    tree = settled_state(nodes=[leaf_node("n1")]).with_(now=NOW - timedelta(seconds=5))

    planned = tree.with_(leaf=leaf(leaf_node("n1"), used={"n1": used(1)})).plan()

    assert reasons(planned) == [("kosmos-east", "ResourcesChanged")]


def test_the_largest_free_block_is_in_an_annotation_while_the_option_is_set():
    nodes = [leaf_node("n1", cpu="4"), leaf_node("n2", cpu="16")]
    tree = settled_state(nodes=nodes, resources={"largestFree": True})
    without = tree.with_(cluster=cluster())

    assert (
        tree.roots["kosmos-east"].metadata.annotations[names.LARGEST_FREE] == '{"cpu":"16","memory":"8Gi","pods":"110"}'
    )
    assert names.LARGEST_FREE not in without.settled().roots["kosmos-east"].metadata.annotations


def test_a_resource_is_kept_at_zero_while_no_leaf_node_counts_and_goes_with_the_last_that_has_it():
    gpu = {"nvidia.com/gpu": "2"}
    tree = settled_state(nodes=[leaf_node("n1", more=gpu), leaf_node("n2")])

    cordoned = tree.with_(leaf=leaf(leaf_node("n1", more=gpu, is_cordoned=True), leaf_node("n2"))).settled()
    gone = tree.with_(leaf=leaf(leaf_node("n2"))).settled()

    assert cordoned.roots["kosmos-east"].status.capacity["nvidia.com/gpu"] == "0"
    assert "nvidia.com/gpu" not in gone.roots["kosmos-east"].status.capacity


def test_a_node_left_by_kosmos_is_taken_over():
    tree = TreeState(cluster("east", whole_model()), leaf(leaf_node("n1"))).with_roots(left_by_kosmos("kosmos-east"))

    planned = tree.plan()
    settled = tree.settled()

    assert reasons(planned) == [("kosmos-east", "ConditionsChanged"), ("kosmos-east", "NodeAdopted")]
    node = settled.roots["kosmos-east"]
    assert node.spec.provider_id == "kosmos://east/kosmos-east"
    assert node.metadata.annotations[names.MODEL] == "cluster"
    assert [each.uid for each in node.metadata.owner_references] == ["uid-east"]
    assert node.condition("Ready").status == "True"


def test_a_provider_id_that_is_there_stays():
    known = left_by_kosmos("kosmos-east", providerID="other://1")

    settled = TreeState(cluster(), leaf(leaf_node("n1"))).with_roots(known).settled()

    assert settled.roots["kosmos-east"].spec.provider_id == "other://1"


def test_a_reference_to_a_cluster_of_the_same_name_that_is_no_more_is_replaced():
    tree = settled_state(nodes=[leaf_node("n1")])
    node = tree.roots["kosmos-east"]
    old = OwnerReference(api_version="kosmos.io/v1alpha1", kind="Cluster", name="east", uid="uid-before")
    other = OwnerReference(api_version="v1", kind="ConfigMap", name="east", uid="uid-x")

    planned = tree.with_roots(edited(node, owner_references=(old, other))).plan()

    assert [each["uid"] for each in only_write(planned).body["metadata"]["ownerReferences"]] == ["uid-x", "uid-east"]
    assert only_write(planned).resource_version == node.metadata.resource_version


def test_readiness_is_planned_before_actions_that_may_be_held_or_denied():
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])

    planned = tree.with_(leaf=leaf(leaf_node("n1", ready="False", taints=["a:NoSchedule"]))).plan()

    status, main = planned.plan.actions
    assert reasons(planned) == [("n1", "ConditionsChanged"), ("n1", "NodeUpdated")]
    assert (planned.write(status).subresource, status.after, main.after) == ("status", (), (status.id,))
    assert planned.is_final


@pytest.mark.parametrize("changed", [{"taints": ["a:NoSchedule"], "cpu": "64"}, {"disk": "ssd", "ready": "False"}])
def test_two_patches_of_one_node_are_both_bound_to_its_version(changed):
    tree = settled_state(node_model("n1"), nodes=[leaf_node("n1")])

    planned = tree.with_(leaf=leaf(leaf_node("n1", **changed))).plan()

    version = tree.roots["n1"].metadata.resource_version
    assert [planned.write(each).resource_version for each in planned.plan.actions] == [version, version]


def test_a_node_deleted_by_hand_is_created_again():
    tree = settled_state(nodes=[leaf_node("n1")])

    planned = tree.without_root("kosmos-east").plan()

    assert reasons(planned) == [("kosmos-east", "NodeCreated")]
    assert planned.plan.actions[0].object.uid == ""


def test_a_terminating_node_with_a_foreign_finalizer_is_awaited():
    tree = settled_state(nodes=[leaf_node("n1")])
    going = edited(tree.roots["kosmos-east"], deletion_timestamp=NOW)

    assert reasons(tree.with_roots(going).with_(leaf=leaf(leaf_node("n1", ready="False"))).plan()) == []


def test_a_hostname_that_fits_into_a_label_is_the_name():
    name = "n" * 62 + "1"

    labels = mirror_of(name, TreeState(cluster("east", node_model(name)), leaf(leaf_node(name))).plan())["metadata"][
        "labels"
    ]

    assert labels["kubernetes.io/hostname"] == name


def test_a_diff_of_conditions_omits_heartbeats():
    tree = settled_state(nodes=[leaf_node("n1")])

    (action,) = tree.with_(leaf=leaf(leaf_node("n1", ready="Unknown"))).later(10).plan().plan.actions

    paths = [each.path for each in action.diff]
    assert "status.conditions[Ready].status" in paths
    assert not [path for path in paths if "Heartbeat" in path]


def test_names_with_a_common_prefix_have_different_hostnames():
    long = "node-" + "a" * 58
    called = [f"{long}-1", f"{long}-2", f"{'b' * 53}-{'c' * 60}"]
    tree = settled_state(*(node_model(name) for name in called), nodes=[leaf_node(name) for name in called])

    hosts = [tree.roots[name].metadata.labels["kubernetes.io/hostname"] for name in called]

    assert len(set(hosts)) == len(called)
    assert [label_value_faults(each) for each in hosts] == [[]] * len(called)
    assert all(host.startswith(name[:50]) for host, name in zip(hosts, called, strict=True))
