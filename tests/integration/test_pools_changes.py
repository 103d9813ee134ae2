"""Changes of a running pool: in place if Cluster API can, otherwise by replacing nodes."""

import pytest
import yaml
from tests.builders.pool_objects import moved
from tests.builders.pools import cluster_body, pool
from tests.builders.pools_env import CLUSTERS, SERVICES, History

from nodeyard.capabilities.pools import names
from nodeyard.plan.managed_fields import owns

TIER = "node.cluster.x-k8s.io/tier"
"""Label key that Cluster API syncs to existing nodes."""
KUBELET = "foo.k8s.io/tier"
"""Label key that a kubelet may not set."""


@pytest.fixture(scope="module")
def prod(pools_env):
    pools_env.node_class("rotating", docker={"image": "kindest/node:one"})
    given = {
        "labelled": pool(1, labels={TIER: "bronze"}),
        "rotated": pool(1, nodeClass="rotating"),
        "bounded": pool(1, min=1, max=3),
    }
    name = pools_env.cluster(pools_env.name(), workerPools=given)
    for each in given:
        pools_env.wait_for_nodes(name, each, 1)
    pools_env.wait_until_ready(name)
    return name


def labels(node):
    return node["metadata"]["labels"]


def name_of(obj):
    return obj["metadata"]["name"]


def version(event):
    return int(event["object"]["metadata"]["resourceVersion"])


def test_a_label_of_cluster_apis_own_reaches_the_nodes_in_place(pools_env, prod):
    machines = pools_env.machines_of(prod, "labelled")
    (node,) = pools_env.nodes_of(prod, "labelled")
    assert labels(node)[TIER] == "bronze"

    pools_env.change_pools(prod, labelled={"labels": {TIER: "gold"}})

    pools_env.wait_until(
        lambda: labels(pools_env.node(node["metadata"]["name"]))[TIER] == "gold", "the node has the label"
    )
    pools_env.wait_for_nodes(prod, "labelled", 1)
    assert pools_env.machines_of(prod, "labelled") == machines


def test_a_label_goes_also_after_clusterctl_has_moved_the_pool(pools_env, prod):
    """clusterctl owns every field of the objects that it creates."""
    pools_env.change_pools(prod, moved=pool(1, labels={TIER: "gold"}))
    (node,) = pools_env.wait_for_nodes(prod, "moved", 1)
    made = moved(pools_env.deployment(prod, "moved"))
    path = pools_env.path(prod, "machinedeployments", name_of(made))
    pools_env.patch(path, {"metadata": {"managedFields": made["metadata"]["managedFields"]}})

    pools_env.wait_until(lambda: owns(pools_env.deployment(prod, "moved"), names.MANAGER, "spec"), "it is taken over")
    pools_env.change_pools(prod, moved={"labels": None})

    pools_env.wait_until(lambda: TIER not in labels(pools_env.node(name_of(node))), "the node has lost the label")
    assert name_of(node) in map(name_of, pools_env.nodes_of(prod, "moved"))


def test_a_display_name_touches_nothing_of_cluster_api(pools_env, prod):
    pools_env.wait_until_ready(prod)
    before = pools_env.deployment(prod, "labelled")["metadata"]["generation"]
    pools_env.change_pools(prod, labelled={"displayName": "Labelled ones"})
    pools_env.wait_until_ready(prod)
    assert pools_env.deployment(prod, "labelled")["metadata"]["generation"] == before


def test_another_class_replaces_the_nodes_and_its_old_template_is_collected(pools_env, prod):
    machines, templates = pools_env.machines_of(prod, "rotated"), pools_env.templates(prod, "rotated")
    assert pools_env.pool(prod, "rotated")["nodeClass"] == "rotating"
    made, told = History(pools_env, pools_env.path(prod, "machines")), History(pools_env, CLUSTERS)

    pools_env.change_class("rotating", docker={"image": "kindest/node:two"})

    pools_env.wait_until(
        lambda: not set(machines) & set(pools_env.machines_of(prod, "rotated")), "the old machine is gone"
    )
    pools_env.wait_for_nodes(prod, "rotated", 1)
    pools_env.wait_until(lambda: len(pools_env.templates(prod, "rotated")) == 2, "the old template is collected")
    (gone,) = templates - pools_env.templates(prod, "rotated")
    assert gone.startswith("devmachinetemplates/")
    assert pools_env.count_events(prod, "PoolRolled") == 1
    (new,) = pools_env.machines_of(prod, "rotated")
    first = next(version(each) for each in made.events() if name_of(each["object"]) == new)
    last = made.deletion(machines[0])
    phases = [
        each["object"]["status"]["workerPools"]["rotated"]["phase"]
        for each in told.events()
        if first < version(each) < last
    ]
    assert set(phases) <= {"Rolling"}


def test_bounds_are_warned_of_once_per_generation_and_ignored(pools_env, prod):
    generation = pools_env.get(prod)["metadata"]["generation"]
    told = pools_env.count_events(prod, "AutoscalingIgnored")
    assert 1 <= told <= generation

    pools_env.change_pools(prod, bounded={"displayName": "Bounded", "max": 4})

    pools_env.wait_until_ready(prod)
    pools_env.wait_until(lambda: pools_env.count_events(prod, "AutoscalingIgnored") == told + 1, "it is told again")
    annotations = pools_env.deployment(prod, "bounded")["metadata"].get("annotations") or {}
    assert names.AUTOSCALER_MIN not in annotations


def test_the_autoscaler_has_the_number_once_it_is_handed_over(pools_env, prod):
    pools_env.change(prod, autoscaling="ClusterAutoscaler", nodes={"workerPools": {"bounded": {"max": 3}}})
    path = pools_env.path(prod, "machinedeployments", names.deployment(prod, "bounded"))
    pools_env.wait_until(
        lambda: (pools_env.rest.get(path)["metadata"].get("annotations") or {}).get(names.AUTOSCALER_MAX) == "3",
        "the autoscaler is told its bounds",
    )

    pools_env.patch(path, {"spec": {"replicas": 2}}, manager="cluster-autoscaler")
    pools_env.wait_for_nodes(prod, "bounded", 2)
    pools_env.change_pools(prod, bounded={"labels": {TIER: "scaled"}})
    pools_env.wait_until(
        lambda: all(labels(node).get(TIER) == "scaled" for node in pools_env.nodes_of(prod, "bounded")), "it is applied"
    )

    pools_env.wait_for_nodes(prod, "bounded", 2)
    assert pools_env.pool(prod, "bounded")["desired"] == 2
    pools_env.change(prod, autoscaling=None)
    pools_env.wait_for_nodes(prod, "bounded", 1)


def test_a_class_that_is_missing_blocks_its_pool_alone_until_it_is_there(pools_env, prod):
    pools_env.change_pools(prod, missing=pool(1, nodeClass="to-come"), labelled={"replicas": 2})

    status = pools_env.wait_for_condition(prod, "Accepted", "False", "NodeClassNotFound")
    assert status["workerPools"]["missing"]["phase"] == "Blocked"
    assert "to-come" in status["workerPools"]["missing"]["message"]
    assert pools_env.deployment(prod, "missing") is None
    pools_env.wait_for_nodes(prod, "labelled", 2)

    pools_env.node_class("to-come", docker={})
    pools_env.wait_for_condition(prod, "Accepted", "True")
    pools_env.wait_for_nodes(prod, "missing", 1)
    pools_env.change_pools(prod, labelled={"replicas": 1})


def test_a_label_that_keeps_nodes_from_joining_blocks_a_live_pool_which_still_scales(pools_env, prod):
    machines = pools_env.machines_of(prod, "bounded")

    pools_env.change_pools(prod, bounded={"labels": {KUBELET: "x"}, "replicas": 2})

    status = pools_env.wait_for_condition(prod, "Accepted", "False", "KeyRefused")
    assert KUBELET in status["workerPools"]["bounded"]["message"]
    pools_env.machines.wait_for_nodes(prod, names.deployment(prod, "bounded"), 2)
    assert set(machines) < set(pools_env.machines_of(prod, "bounded"))
    pools_env.change_pools(prod, bounded={"labels": {KUBELET: None}, "replicas": 1})
    pools_env.wait_for_condition(prod, "Accepted", "True")
    pools_env.wait_for_nodes(prod, "bounded", 1)


def test_a_service_is_matched_to_the_pools_that_fit_it(pools_env, prod):
    pools_env.service("choosy", {TIER: "gold"})
    pools_env.service("lonely", {TIER: "platinum"})

    def status(name):
        return pools_env.rest.get(f"{SERVICES}/{name}").get("status") or {}

    pools_env.wait_until(lambda: status("choosy").get("placements") and status("lonely"), "both are judged")
    assert [(each["cluster"], each["workerPool"]) for each in status("choosy")["placements"]] == [(prod, "labelled")]
    assert (status("lonely")["phase"], status("lonely").get("placements")) == ("Unplaced", None)
    refused = {each["workerPool"]: each["reason"] for each in status("lonely")["refused"] if each["cluster"] == prod}
    assert refused["labelled"] == "LabelDiffers"
    assert refused["rotated"] == "LabelMissing"


def test_plan_shows_how_many_nodes_a_change_replaces_and_why_without_writing(pools_env, prod, tmp_path):
    pools_env.wait_until_ready(prod)
    contents = pools_env.written_objects(prod)
    file = tmp_path / "changed.yaml"
    changed = {"labelled": pool(1, labels={TIER: "iron", "rack": "b"}), "rotated": pool(3), "bounded": pool(1)}
    file.write_text(yaml.safe_dump(cluster_body(prod, workerPools=changed)))

    code, said = pools_env.nodeyard("plan", "-f", file)

    assert code == 2
    why = "labels or taints that are set when a node joins changed"
    assert f"Starts a rollout of pool labelled (Labelled ones) that replaces 1 node, one at a time: {why}" in said
    assert "Scales pool rotated from 1 to 3" in said
    assert pools_env.written_objects(prod) == contents


def test_why_answers_about_a_pool_its_cluster_its_node_and_a_service(pools_env, prod):
    (node,) = pools_env.wait_for_nodes(prod, "labelled", 1)
    name = node["metadata"]["name"]
    pools_env.wait_until_ready(prod)
    pools_env.service("questioned", {TIER: "platinum"})

    # Cluster API's conditions change by themselves, and `why` reports each that is not fine.
    pool = pools_env.why(f"pool/{prod}/labelled", until="AsSpecified: ")
    assert f"Pool labelled (Labelled ones) of {prod} matches spec.nodes.workerPools.labelled: 1 node" in pool
    assert name in pool
    pools_env.why(f"latticecluster/{prod}", until="Reconciled: All objects match the spec")
    pools_env.why(f"node/{name}", until=f"Node {name} (pools) AsSpecified")
    pools_env.why("latticenodeclass/rotating", until="LatticeNodeClass rotating is used by 1 pool with 1 node")
    missing = f"LabelMissing: Pool rotated of {prod} does not have label {TIER}"
    pools_env.why("latticeservice/questioned", until=missing)
