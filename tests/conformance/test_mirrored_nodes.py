"""Server behaviour that clustertree relies on when it writes nodes: what it writes is stored."""

from __future__ import annotations

import msgspec
import pytest

from nodeyard.capabilities.clustertree import names
from nodeyard.capabilities.clustertree.snapshot import TreeNode
from nodeyard.plan.model import Verb

from ..builders.tree_state import TreeState, cluster, condition, leaf, leaf_node, node_model, used

NODES = "/api/v1/nodes"
CLUSTERS = f"/apis/{names.API_VERSION}/{names.PLURAL}"


@pytest.fixture
def made(http, fresh):
    """Create a node with these fields; its path."""
    paths = []

    def make(**fields) -> str:
        path = f"{NODES}/{fresh('mirror')}"
        answer = http.post(NODES, {"metadata": {"name": path.rpartition("/")[2]}, **fields})
        assert answer.status == 201, answer.content
        paths.append(path)
        return path

    yield make
    for path in paths:
        http.delete(path)


def test_a_node_is_created_with_its_status(http, made):
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well"}
    status = {
        "conditions": [ready],
        "capacity": {"cpu": "1500m"},
        "allocatable": {"cpu": "1"},
        "addresses": [{"type": "Hostname", "address": "a"}],
        "nodeInfo": {"kubeletVersion": "v1.36.4"},
    }

    kept = http.get(made(spec={"providerID": "kosmos://east/a", "unschedulable": True}, status=status)).json

    assert (kept["spec"]["providerID"], kept["spec"]["unschedulable"]) == ("kosmos://east/a", True)
    assert (kept["status"]["capacity"], kept["status"]["allocatable"]) == ({"cpu": "1500m"}, {"cpu": "1"})
    assert kept["status"]["addresses"] == status["addresses"]
    assert kept["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.4"
    assert [each["reason"] for each in kept["status"]["conditions"]] == ["KubeletReady"]


def test_a_patch_of_the_status_changes_annotations_and_keeps_the_spec(http, made):
    node = made(spec={"unschedulable": True})
    http.patch(node, {"metadata": {"annotations": {"old": "1"}}})
    body = {
        "metadata": {"annotations": {"new": "1", "old": None}},
        "spec": {"unschedulable": None},
        "status": {"capacity": {"cpu": "2"}},
    }

    kept = http.patch(f"{node}/status", body).json

    assert kept["metadata"]["annotations"] == {"new": "1"}
    assert kept["status"]["capacity"] == {"cpu": "2"}
    assert kept["spec"]["unschedulable"] is True


def test_a_provider_id_can_be_set_once(http, made):
    node = made()

    first = http.patch(node, {"spec": {"providerID": "kosmos://east/a"}})
    others = [http.patch(node, {"spec": {"providerID": value}}) for value in ("kosmos://east/b", None)]

    assert first.status == 200
    assert [each.status for each in others] == [422, 422]
    assert others[0].causes[0]["field"] == "spec.providerID"


def test_taints_can_be_taken_off_all_at_once(http, made):
    node = made(spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})

    assert "taints" not in http.patch(node, {"spec": {"taints": None}}).json["spec"]


def test_a_merge_patch_replaces_conditions_and_addresses_whole(http, made):
    both = [{"type": "Ready", "status": "True"}, {"type": "Theirs", "status": "True"}]
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "10.0.0.2"}]
    node = made(status={"conditions": both, "addresses": addresses})

    kept = http.patch(f"{node}/status", {"status": {"conditions": both[1:], "addresses": addresses[1:]}}).json["status"]

    assert [each["type"] for each in kept["conditions"]] == ["Theirs"]
    assert kept["addresses"] == addresses[1:]


def test_a_patch_of_the_status_may_be_bound_to_a_version(http, made):
    node = made()
    seen = http.get(node).json["metadata"]["resourceVersion"]
    http.patch(node, {"metadata": {"labels": {"moved": "on"}}})

    answer = http.patch(f"{node}/status", {"metadata": {"resourceVersion": seen}, "status": {"conditions": []}})

    assert (answer.status, answer.reason) == (409, "Conflict")


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"capacity": {"cpu": "-1"}}, "status.capacity.cpu"),
        ({"allocatable": {"example.com/gpu": "1500m"}}, "status.allocatable.example.com/gpu"),
        ({"addresses": [{"type": "Hostname", "address": "a"}] * 2}, "status.addresses[1]"),
    ],
    ids=["negative", "fraction", "twice"],
)
def test_impossible_resources_of_a_node_are_invalid(http, made, status, field):
    answer = http.patch(f"{made()}/status", {"status": status})

    assert answer.status == 422
    assert field in [cause["field"].replace("[example.com/gpu]", ".example.com/gpu") for cause in answer.causes]


def settled(http, tree: TreeState) -> TreeState:
    """Plan and send, as often as it takes: the server's own controllers write to nodes too."""
    for _ in range(10):
        answers = [http.get(f"{NODES}/{name}") for name in tree.roots]
        tree = tree.with_roots(*(msgspec.convert(each.json, TreeNode) for each in answers))
        planned = tree.plan()
        if not planned.plan.actions:
            return tree
        for action in planned.plan.actions:
            answer = send(http, action, planned.write(action))
            assert answer.status in (200, 201, 409), answer.content
            if answer.status != 409:
                tree = tree.with_roots(msgspec.convert(answer.json, TreeNode))
    raise AssertionError(f"does not come to rest: {planned.plan.actions}")


def send(http, action, write):
    if action.verb is Verb.CREATE:
        return http.post(NODES, write.body)
    bound = {"uid": action.object.uid}
    if write.resource_version:
        bound["resourceVersion"] = write.resource_version
    body = {**write.body, "metadata": {**(write.body.get("metadata") or {}), **bound}}
    path = f"{NODES}/{action.object.name}"
    return http.patch(f"{path}/status" if write.subresource else path, body)


@pytest.fixture
def owner(http, fresh):
    """Name and uid of a Cluster. Garbage collection deletes nodes of a missing Cluster, if its kind is served."""
    name = fresh("leaf")
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": name}, "spec": {}}
    answer = http.post(CLUSTERS, body)
    assert answer.status in (201, 404), answer.content
    yield name, answer.json["metadata"]["uid"] if answer.status == 201 else f"uid-{name}"
    http.delete(f"{CLUSTERS}/{name}")


@pytest.mark.parametrize("kind", ["whole", "one"])
def test_planned_writes_are_stored_unchanged(http, owner, kind):
    name, uid = owner
    before = leaf_node(name, disk="ssd", taints=["a=1:NoExecute"], more={"example.com/gpu": "2"})
    after = leaf_node(
        name, ready="False", is_cordoned=True, taints=["b:NoSchedule"], conditions=[condition("Extra", "True")]
    )
    models = [node_model(name)] if kind == "one" else []
    own = cluster(name, *models, metadata={"uid": uid}, resources={"largestFree": True})
    tree = TreeState(own, leaf(before, used={name: used(3, cpu="333m", memory="100Mi")}))
    try:
        tree = settled(http, tree)
        (first,) = tree.roots.values()
        tree = settled(http, tree.with_(leaf=leaf(after)).later(2))
        (second,) = tree.roots.values()
    finally:
        for node in tree.roots:
            http.delete(f"{NODES}/{node}")

    assert first.status.capacity == {"cpu": "3667m", "memory": "8092Mi", "pods": "107", "example.com/gpu": "2"}
    assert second.status.capacity == {"cpu": "0", "memory": "0", "pods": "0"}
    assert second.condition("Ready").status == "False"
    assert second.metadata.uid == first.metadata.uid
