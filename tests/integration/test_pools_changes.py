"""Changes of a running pool: in place if Cluster API can, otherwise by replacing nodes."""

import pytest
import yaml
from tests.builders.lattices import CLUSTERS, SERVICES, History
from tests.builders.pool_objects import moved
from tests.builders.pools import cluster_body, pool

from nodeyard.capabilities.pools import names
from nodeyard.plan.managed_fields import owns

TIER = "node.cluster.x-k8s.io/tier"
"""Label key that Cluster API syncs to existing nodes."""
KUBELET = "foo.k8s.io/tier"
"""Label key that a kubelet may not set."""


@pytest.fixture(scope="module")
def prod(lattices):
    lattices.node_class("rotating", docker={"image": "kindest/node:one"})
    given = {
        "labelled": pool(1, labels={TIER: "bronze"}),
        "rotated": pool(1, nodeClass="rotating"),
        "bounded": pool(1, min=1, max=3),
    }
    name = lattices.cluster(lattices.name(), workerPools=given)
    for each in given:
        lattices.joined(name, each, 1)
    lattices.ready(name)
    return name


def labels(node):
    return node["metadata"]["labels"]


def name_of(obj):
    return obj["metadata"]["name"]


def version(event):
    return int(event["object"]["metadata"]["resourceVersion"])


def test_a_label_of_cluster_apis_own_reaches_the_nodes_in_place(lattices, prod):
    machines = lattices.machines_of(prod, "labelled")
    (node,) = lattices.nodes_of(prod, "labelled")
    assert labels(node)[TIER] == "bronze"

    lattices.change_pools(prod, labelled={"labels": {TIER: "gold"}})

    lattices.until(lambda: labels(lattices.node(node["metadata"]["name"]))[TIER] == "gold", "the node has the label")
    lattices.joined(prod, "labelled", 1)
    assert lattices.machines_of(prod, "labelled") == machines


def test_a_label_goes_also_after_clusterctl_has_moved_the_pool(lattices, prod):
    """clusterctl owns every field of the objects that it creates."""
    lattices.change_pools(prod, moved=pool(1, labels={TIER: "gold"}))
    (node,) = lattices.joined(prod, "moved", 1)
    made = moved(lattices.deployment(prod, "moved"))
    path = lattices.path(prod, "machinedeployments", name_of(made))
    lattices.patch(path, {"metadata": {"managedFields": made["metadata"]["managedFields"]}})

    lattices.until(lambda: owns(lattices.deployment(prod, "moved"), names.MANAGER, "spec"), "it is taken over")
    lattices.change_pools(prod, moved={"labels": None})

    lattices.until(lambda: TIER not in labels(lattices.node(name_of(node))), "the node has lost the label")
    assert name_of(node) in map(name_of, lattices.nodes_of(prod, "moved"))


def test_a_display_name_touches_nothing_of_cluster_api(lattices, prod):
    lattices.ready(prod)
    before = lattices.deployment(prod, "labelled")["metadata"]["generation"]
    lattices.change_pools(prod, labelled={"displayName": "Labelled ones"})
    lattices.ready(prod)
    assert lattices.deployment(prod, "labelled")["metadata"]["generation"] == before


def test_another_class_replaces_the_nodes_and_its_old_template_is_collected(lattices, prod):
    machines, templates = lattices.machines_of(prod, "rotated"), lattices.templates(prod, "rotated")
    assert lattices.pool(prod, "rotated")["nodeClass"] == "rotating"
    made, told = History(lattices, lattices.path(prod, "machines")), History(lattices, CLUSTERS)

    lattices.change_class("rotating", docker={"image": "kindest/node:two"})

    lattices.until(lambda: not set(machines) & set(lattices.machines_of(prod, "rotated")), "the old machine is gone")
    lattices.joined(prod, "rotated", 1)
    lattices.until(lambda: len(lattices.templates(prod, "rotated")) == 2, "the old template is collected")
    (gone,) = templates - lattices.templates(prod, "rotated")
    assert gone.startswith("devmachinetemplates/")
    assert lattices.told(prod, "PoolRolled") == 1
    (new,) = lattices.machines_of(prod, "rotated")
    first = next(version(each) for each in made.events() if name_of(each["object"]) == new)
    last = made.deletion(machines[0])
    phases = [
        each["object"]["status"]["workerPools"]["rotated"]["phase"]
        for each in told.events()
        if first < version(each) < last
    ]
    assert set(phases) <= {"Rolling"}


def test_bounds_are_warned_of_once_per_generation_and_ignored(lattices, prod):
    generation = lattices.see(prod)["metadata"]["generation"]
    told = lattices.told(prod, "AutoscalingIgnored")
    assert 1 <= told <= generation

    lattices.change_pools(prod, bounded={"displayName": "Bounded", "max": 4})

    lattices.ready(prod)
    lattices.until(lambda: lattices.told(prod, "AutoscalingIgnored") == told + 1, "it is told again")
    annotations = lattices.deployment(prod, "bounded")["metadata"].get("annotations") or {}
    assert names.AUTOSCALER_MIN not in annotations


def test_the_autoscaler_has_the_number_once_it_is_handed_over(lattices, prod):
    lattices.change(prod, autoscaling="ClusterAutoscaler", nodes={"workerPools": {"bounded": {"max": 3}}})
    path = lattices.path(prod, "machinedeployments", names.deployment(prod, "bounded"))
    lattices.until(
        lambda: (lattices.rest.get(path)["metadata"].get("annotations") or {}).get(names.AUTOSCALER_MAX) == "3",
        "the autoscaler is told its bounds",
    )

    lattices.patch(path, {"spec": {"replicas": 2}}, manager="cluster-autoscaler")
    lattices.joined(prod, "bounded", 2)
    lattices.change_pools(prod, bounded={"labels": {TIER: "scaled"}})
    lattices.until(
        lambda: all(labels(node).get(TIER) == "scaled" for node in lattices.nodes_of(prod, "bounded")), "it is applied"
    )

    lattices.joined(prod, "bounded", 2)
    assert lattices.pool(prod, "bounded")["desired"] == 2
    lattices.change(prod, autoscaling=None)
    lattices.joined(prod, "bounded", 1)


def test_a_class_that_is_missing_blocks_its_pool_alone_until_it_is_there(lattices, prod):
    lattices.change_pools(prod, missing=pool(1, nodeClass="to-come"), labelled={"replicas": 2})

    status = lattices.conditioned(prod, "Accepted", "False", "NodeClassNotFound")
    assert status["workerPools"]["missing"]["phase"] == "Blocked"
    assert "to-come" in status["workerPools"]["missing"]["message"]
    assert lattices.deployment(prod, "missing") is None
    lattices.joined(prod, "labelled", 2)

    lattices.node_class("to-come", docker={})
    lattices.conditioned(prod, "Accepted", "True")
    lattices.joined(prod, "missing", 1)
    lattices.change_pools(prod, labelled={"replicas": 1})


def test_a_label_that_keeps_nodes_from_joining_blocks_a_live_pool_which_still_scales(lattices, prod):
    machines = lattices.machines_of(prod, "bounded")

    lattices.change_pools(prod, bounded={"labels": {KUBELET: "x"}, "replicas": 2})

    status = lattices.conditioned(prod, "Accepted", "False", "KeyRefused")
    assert KUBELET in status["workerPools"]["bounded"]["message"]
    lattices.machines.wait_for_nodes(prod, names.deployment(prod, "bounded"), 2)
    assert set(machines) < set(lattices.machines_of(prod, "bounded"))
    lattices.change_pools(prod, bounded={"labels": {KUBELET: None}, "replicas": 1})
    lattices.conditioned(prod, "Accepted", "True")
    lattices.joined(prod, "bounded", 1)


def test_a_service_is_matched_to_the_pools_that_fit_it(lattices, prod):
    lattices.service("choosy", {TIER: "gold"})
    lattices.service("lonely", {TIER: "platinum"})

    def status(name):
        return lattices.rest.get(f"{SERVICES}/{name}").get("status") or {}

    lattices.until(lambda: status("choosy").get("placements") and status("lonely"), "both are judged")
    assert [(each["cluster"], each["workerPool"]) for each in status("choosy")["placements"]] == [(prod, "labelled")]
    assert (status("lonely")["phase"], status("lonely").get("placements")) == ("Unplaced", None)
    refused = {each["workerPool"]: each["reason"] for each in status("lonely")["refused"] if each["cluster"] == prod}
    assert refused["labelled"] == "LabelDiffers"
    assert refused["rotated"] == "LabelMissing"


def test_plan_says_how_many_nodes_a_change_replaces_and_why_and_changes_nothing(lattices, prod, tmp_path):
    lattices.ready(prod)
    contents = lattices.contents(prod)
    file = tmp_path / "changed.yaml"
    changed = {"labelled": pool(1, labels={TIER: "iron", "rack": "b"}), "rotated": pool(3), "bounded": pool(1)}
    file.write_text(yaml.safe_dump(cluster_body(prod, workerPools=changed)))

    code, said = lattices.nodeyard("plan", "-f", file)

    assert code == 2
    why = "labels or taints that are set when a node joins changed"
    assert f"Starts a rollout of pool labelled (Labelled ones) that replaces 1 node, one at a time: {why}" in said
    assert "Scales pool rotated from 1 to 3" in said
    assert lattices.contents(prod) == contents


def test_why_answers_about_a_pool_its_cluster_its_node_and_a_service(lattices, prod):
    (node,) = lattices.joined(prod, "labelled", 1)
    name = node["metadata"]["name"]
    lattices.ready(prod)
    lattices.service("questioned", {TIER: "platinum"})

    # Cluster API's conditions change by themselves, and `why` reports each that is not fine.
    pool = lattices.why(f"pool/{prod}/labelled", until="AsSpecified: ")
    assert f"Pool labelled (Labelled ones) of {prod} matches spec.nodes.workerPools.labelled: 1 node" in pool
    assert name in pool
    lattices.why(f"latticecluster/{prod}", until="Reconciled: All objects match the spec")
    lattices.why(f"node/{name}", until=f"Node {name} (pools) AsSpecified")
    lattices.why("latticenodeclass/rotating", until="LatticeNodeClass rotating is used by 1 pool with 1 node")
    missing = f"LabelMissing: Pool rotated of {prod} does not have label {TIER}"
    lattices.why("latticeservice/questioned", until=missing)
