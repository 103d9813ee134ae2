"""Replaying recorded writes: preconditions, order and counts."""

from __future__ import annotations

import json

import msgspec
from bench.load import Call, encode
from bench.replay import (
    EVENTS,
    NODES,
    TEMPLATES,
    WriteCounts,
    drop_preconditions,
    object_of,
    predecessors,
    read_record,
    retarget,
)

NODE = f"{NODES}/n1"
TEMPLATE = f"{TEMPLATES}/compute"
HERE = {
    NODE: {"name": "n1", "uid": "new", "resourceVersion": "900"},
    TEMPLATE: {"name": "compute", "uid": "other", "resourceVersion": "901"},
}


def patch(path: str, body: dict) -> Call:
    return Call("PATCH", path, encode(body), "application/merge-patch+json")


def body_of(call: Call) -> dict:
    return json.loads(call.body)


def test_the_precondition_of_a_node_patch_is_replaced_by_that_of_the_current_node():
    sent = patch(
        f"{NODE}?fieldManager=x",
        {"metadata": {"uid": "old", "resourceVersion": "7", "labels": {"a": "b"}}, "spec": {"taints": []}},
    )

    (call,) = retarget([sent], HERE)

    assert (call.method, call.path, call.content_type) == (sent.method, sent.path, sent.content_type)
    assert body_of(call) == {
        "metadata": {"uid": "new", "resourceVersion": "900", "labels": {"a": "b"}},
        "spec": {"taints": []},
    }


def test_a_patch_without_preconditions_gets_none():
    (call,) = retarget([patch(NODE, {"metadata": {"labels": {"a": "b"}}})], HERE)

    assert body_of(call) == {"metadata": {"labels": {"a": "b"}}}


def test_preconditions_of_templates_are_removed():
    sent = [
        patch(TEMPLATE, {"metadata": {"uid": "old", "resourceVersion": "7", "finalizers": ["f"]}}),
        patch(f"{TEMPLATE}/status?fieldManager=x", {"metadata": {"uid": "old"}, "status": {"currentNodes": 1}}),
    ]

    finalizer, status = map(body_of, retarget(sent, HERE))

    assert finalizer == {"metadata": {"finalizers": ["f"]}}
    assert status == {"metadata": {}, "status": {"currentNodes": 1}}


def test_calls_for_other_objects_are_unchanged():
    event = Call("POST", f"{EVENTS}namespaces/default/events", encode({"reason": "Claimed"}))

    assert retarget([event], HERE) == [event]


def test_dropping_preconditions_keeps_the_rest_of_the_call():
    sent = patch(f"{NODE}?force=true", {"metadata": {"uid": "old", "resourceVersion": "7", "name": "n1"}, "spec": {}})

    call = drop_preconditions(sent)

    assert (call.method, call.path, call.content_type) == (sent.method, sent.path, sent.content_type)
    assert body_of(call) == {"metadata": {"name": "n1"}, "spec": {}}
    assert drop_preconditions(call) is call


NAMESPACED = "/apis/cluster.x-k8s.io/v1beta2/namespaces/capi-a/machinedeployments/a-pool-x"


def test_subresources_have_the_path_of_their_object():
    assert object_of(patch(f"{TEMPLATE}/status?fieldManager=x", {})) == TEMPLATE
    assert object_of(Call("POST", TEMPLATES, encode({"metadata": {"name": "compute"}}))) == TEMPLATE


def test_writes_of_one_object_keep_their_order_and_a_namespace_precedes_its_contents():
    calls = [
        patch("/api/v1/namespaces/capi-a?force=true", {}),
        patch(f"{NAMESPACED}?force=true", {}),
        patch("/api/v1/namespaces/capi-b", {}),
        patch(f"{NAMESPACED}/status", {}),
        patch(NODE, {}),
    ]

    assert predecessors(calls) == [(), (0,), (), (1, 0), ()]


def test_the_operators_lease_and_its_namespace_are_not_read(tmp_path):
    lease = "/apis/coordination.k8s.io/v1/namespaces/nodeyard-system/leases"
    calls = [
        Call("POST", "/api/v1/namespaces", encode({"metadata": {"name": "nodeyard-system"}})),
        Call("POST", lease, encode({"metadata": {"name": "nodeyard-pools"}})),
        patch(f"{lease}/nodeyard-pools", {}),
        patch(NODE, {}),
    ]
    record = tmp_path / "writes.jsonl"
    record.write_bytes(b"".join(msgspec.json.encode(call) + b"\n" for call in calls))

    assert read_record(record) == calls[-1:]


def test_writes_are_counted_by_purpose():
    calls = [
        patch(f"{NODE}?fieldManager=x", {}),
        patch(NODE, {}),
        patch(TEMPLATE, {}),
        patch(f"{TEMPLATE}/status?fieldManager=x", {}),
        Call("POST", f"{EVENTS}namespaces/default/events"),
    ]

    assert WriteCounts.of(calls) == WriteCounts(nodes=2, templates=1, statuses=1, events=1)
