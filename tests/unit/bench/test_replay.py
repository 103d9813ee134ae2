"""The same writes for another fleet: only identities are exchanged."""

from __future__ import annotations

import json

from bench.load import Call, encoded
from bench.replay import EVENTS, NODES, TEMPLATES, Tally, retargeted

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


def test_writes_are_counted_by_what_they_are_for():
    calls = [
        patch(f"{NODE}?fieldManager=x", {}),
        patch(NODE, {}),
        patch(TEMPLATE, {}),
        patch(f"{TEMPLATE}/status?fieldManager=x", {}),
        Call("POST", f"{EVENTS}namespaces/default/events"),
    ]

    assert Tally.of(calls) == Tally(nodes=2, templates=1, statuses=1, events=1)
