"""Objects of remote clusters in a plan: named with their cluster, and distinct from host objects."""

import msgspec
import pytest

from nodeyard.plan.brake import Limit, brake, disrupted_nodes
from nodeyard.plan.identity import compute_id
from nodeyard.plan.model import Blocked, Disruption, ObjectRef, Verb, to_wire
from nodeyard.plan.render import render_plan

from ...builders.plans import action, message, node_ref, plan, pod_ref


def there(ref, cluster="leaf-1"):
    return msgspec.structs.replace(ref, cluster=cluster)


@pytest.mark.parametrize(
    ("ref", "text"),
    [
        (there(node_ref("worker-3")), "Node leaf-1:worker-3"),
        (there(pod_ref("web", "shop")), "Pod leaf-1:shop/web"),
        (node_ref("worker-3"), "Node worker-3"),
    ],
    ids=["cluster-scoped", "namespaced", "ours"],
)
def test_an_object_is_named_with_its_cluster(ref: ObjectRef, text):
    assert str(ref) == text


def test_the_cluster_is_part_of_a_plans_identity():
    ours, one, other = node_ref("n1"), there(node_ref("n1")), there(node_ref("n1"), "leaf-2")
    ids = {compute_id(plan(action("a", object=ref))) for ref in (ours, one, other)}
    assert len(ids) == 3


def test_the_wire_form_says_the_cluster_only_of_others():
    wired = to_wire(plan(action("a", object=there(node_ref("n1"))), action("b", object=node_ref("n2"))))
    assert [each["object"].get("cluster") for each in wired["actions"]] == ["leaf-1", None]


def test_text_names_the_cluster_of_actions_and_refusals():
    refused = Blocked(object=there(node_ref("n2")), reason="Refused", facts=message("Refused"))
    text = render_plan(plan(action("a", object=there(node_ref("n1"))), blocked=(refused,)))
    assert "Patch Node leaf-1:n1" in text
    assert "Blocked Node leaf-1:n2" in text


def test_an_object_that_is_blocked_for_two_reasons_is_counted_once():
    reasons = (Blocked(object=node_ref("n1"), reason=each, facts=message(each)) for each in ("One", "Other"))
    assert render_plan(plan(blocked=tuple(reasons))).endswith("nothing to do, 1 object blocked\n")


def evicting(cluster, *nodes):
    ref = there(pod_ref("web"), cluster)
    return action(f"{cluster}-{nodes}", Verb.EVICT, ref, disruption=Disruption.EVICTS, disrupts=nodes)


def test_nodes_of_the_same_name_in_two_clusters_are_two_nodes_to_the_brake():
    assert disrupted_nodes([evicting("leaf-1", "n1"), evicting("leaf-2", "n1")]) == {"leaf-1:n1", "leaf-2:n1"}
    assert brake(plan(evicting("leaf-1", "n1"), evicting("leaf-2", "n1")), Limit(nodes=1, percent=0), 10).held


def test_a_node_that_is_disrupted_from_two_clusters_is_one_node_to_the_brake():
    machine = action("m", Verb.DELETE, disruption=Disruption.DELETES, disrupts=("leaf-1:n1",))
    cordon = action("c", object=there(node_ref("n1")), disruption=Disruption.EVICTS)
    assert disrupted_nodes([machine, cordon, evicting("leaf-1", "n1")]) == {"leaf-1:n1"}
