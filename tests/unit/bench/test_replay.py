"""The same writes for another fleet: only identities are exchanged."""

from __future__ import annotations

import json

import msgspec
from bench.load import Call, encoded
from bench.replay import EVENTS, NODES, TEMPLATES, Tally, object_of, predecessors, recorded, retargeted, unbound

NODE = f"{NODES}/n1"
TEMPLATE = f"{TEMPLATES}/compute"
HERE = {
    NODE: {"name": "n1", "uid": "new", "resourceVersion": "900"},
    TEMPLATE: {"name": "compute", "uid": "other", "resourceVersion": "901"},
}


def patch(path: str, body: dict) -> Call:
    return Call("PATCH", path, encoded(body), "application/merge-patch+json")


def body_of(call: Call) -> dict:
    return json.loads(call.body)


def test_the_precondition_of_a_nodes_patch_names_the_node_that_is_there_now():
    sent = patch(
        f"{NODE}?fieldManager=x",
        {"metadata": {"uid": "old", "resourceVersion": "7", "labels": {"a": "b"}}, "spec": {"taints": []}},
    )

    (call,) = retargeted([sent], HERE)

    assert (call.method, call.path, call.content_type) == (sent.method, sent.path, sent.content_type)
    assert body_of(call) == {
        "metadata": {"uid": "new", "resourceVersion": "900", "labels": {"a": "b"}},
        "spec": {"taints": []},
    }


def test_a_patch_without_preconditions_gets_none():
    (call,) = retargeted([patch(NODE, {"metadata": {"labels": {"a": "b"}}})], HERE)

    assert body_of(call) == {"metadata": {"labels": {"a": "b"}}}


def test_a_template_is_written_several_times_so_its_preconditions_go():
    sent = [
        patch(TEMPLATE, {"metadata": {"uid": "old", "resourceVersion": "7", "finalizers": ["f"]}}),
        patch(f"{TEMPLATE}/status?fieldManager=x", {"metadata": {"uid": "old"}, "status": {"currentNodes": 1}}),
    ]

    finalizer, status = map(body_of, retargeted(sent, HERE))

    assert finalizer == {"metadata": {"finalizers": ["f"]}}
    assert status == {"metadata": {}, "status": {"currentNodes": 1}}


def test_what_names_no_object_of_the_fleet_stays_as_it_is():
    event = Call("POST", f"{EVENTS}namespaces/default/events", encoded({"reason": "Claimed"}))

    assert retargeted([event], HERE) == [event]


def test_the_preconditions_of_an_unbound_call_go_and_all_else_stays():
    sent = patch(f"{NODE}?force=true", {"metadata": {"uid": "old", "resourceVersion": "7", "name": "n1"}, "spec": {}})

    call = unbound(sent)

    assert (call.method, call.path, call.content_type) == (sent.method, sent.path, sent.content_type)
    assert body_of(call) == {"metadata": {"name": "n1"}, "spec": {}}
    assert unbound(call) is call


NAMESPACED = "/apis/cluster.x-k8s.io/v1beta2/namespaces/capi-a/machinedeployments/a-pool-x"


def test_an_object_is_known_by_its_path_whichever_part_is_written():
    assert object_of(patch(f"{TEMPLATE}/status?fieldManager=x", {})) == TEMPLATE
    assert object_of(Call("POST", TEMPLATES, encoded({"metadata": {"name": "compute"}}))) == TEMPLATE


def test_writes_of_one_object_keep_their_order_and_a_namespace_comes_before_what_is_in_it():
    calls = [
        patch("/api/v1/namespaces/capi-a?force=true", {}),
        patch(f"{NAMESPACED}?force=true", {}),
        patch("/api/v1/namespaces/capi-b", {}),
        patch(f"{NAMESPACED}/status", {}),
        patch(NODE, {}),
    ]

    assert predecessors(calls) == [(), (0,), (), (1, 0), ()]


def test_what_an_operator_writes_to_lead_is_no_part_of_its_work(tmp_path):
    lease = "/apis/coordination.k8s.io/v1/namespaces/nodeyard-system/leases"
    calls = [
        Call("POST", "/api/v1/namespaces", encoded({"metadata": {"name": "nodeyard-system"}})),
        Call("POST", lease, encoded({"metadata": {"name": "nodeyard-pools"}})),
        patch(f"{lease}/nodeyard-pools", {}),
        patch(NODE, {}),
    ]
    record = tmp_path / "writes.jsonl"
    record.write_bytes(b"".join(msgspec.json.encode(call) + b"\n" for call in calls))

    assert recorded(record) == calls[-1:]


def test_writes_are_counted_by_what_they_are_for():
    calls = [
        patch(f"{NODE}?fieldManager=x", {}),
        patch(NODE, {}),
        patch(TEMPLATE, {}),
        patch(f"{TEMPLATE}/status?fieldManager=x", {}),
        Call("POST", f"{EVENTS}namespaces/default/events"),
    ]

    assert Tally.of(calls) == Tally(nodes=2, templates=1, statuses=1, events=1)
