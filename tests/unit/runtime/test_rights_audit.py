"""The audit of rights: requests and the rights that they use."""

from dataclasses import replace

import msgspec
import pytest
from tests.builders import labels
from tests.builders.api_requests import ResourceRequest, Right, parse_request
from tests.builders.rights import COUNTED, Audit

from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.capability import Rule

LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
OWN = f"{LEASES}/nodeyard-labels"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
PARTS = Rule("parts.test", ("*",), ("get", "create", "patch"))
HOLDING = Rule("parts.test", ("*/finalizers",), ("update",))
CAPABILITY = replace(labels.LABELS, rbac=(PARTS, HOLDING))
ENGINE = {
    "create events.events.k8s.io",
    COUNTED,
    f"create leases.coordination.k8s.io in {NAMESPACE}",
    f"get leases.coordination.k8s.io in {NAMESPACE} named nodeyard-labels",
    f"update leases.coordination.k8s.io in {NAMESPACE} named nodeyard-labels",
}
PARTS_RIGHTS = {f"{verb} *.parts.test" for verb in PARTS.verbs} | {"update *.parts.test/finalizers"}
SCREW = "/apis/parts.test/v1/namespaces/default/screws/m4"


@pytest.fixture
def audit():
    return Audit(CAPABILITY)


def ask(audit, method, path, body=None, status=200, **query):
    """Return whether the answer to a request is lost."""
    found = parse_request(method, path, query)
    audit.record(found, b"" if body is None else msgspec.json.encode(body))
    return audit.drops_answer(found, status)


def test_without_requests_every_right_is_unused(audit):
    assert audit.unused(patience=0) == ENGINE | PARTS_RIGHTS
    assert audit.forbidden() == set()


def test_a_rare_right_is_not_reported_unless_it_is_missing(audit):
    assert audit.unused(ENGINE, patience=0) == PARTS_RIGHTS
    assert audit.unused(ENGINE | PARTS_RIGHTS | {"get moons"}, patience=0) == {"get moons"}


def test_a_request_is_attributed_to_the_narrowest_right(audit):
    ask(audit, "GET", OWN)
    ask(audit, "POST", EVENTS)
    left = audit.unused(PARTS_RIGHTS, patience=0)
    assert ENGINE - left == {
        "create events.events.k8s.io",
        f"get leases.coordination.k8s.io in {NAMESPACE} named nodeyard-labels",
    }


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("DELETE", SCREW, "delete screws.parts.test"),
        ("GET", f"{LEASES}/another", "get leases.coordination.k8s.io"),
        ("GET", LEASES.replace(NAMESPACE, "default") + "/nodeyard-labels", "get leases.coordination.k8s.io"),
        ("GET", "/api/v1/nodes", "list nodes"),
    ],
)
def test_a_request_that_no_right_covers_is_reported(audit, method, path, right):
    ask(audit, method, path)
    assert audit.forbidden() == {right}


def test_an_apply_that_creates_takes_both_rights(audit):
    ask(audit, "PATCH", SCREW, status=200)
    assert "create *.parts.test" in audit.unused(ENGINE, patience=0)
    ask(audit, "PATCH", SCREW, status=201)
    assert "create *.parts.test" not in audit.unused(ENGINE, patience=0)


def test_blocking_owner_deletion_needs_the_finalizers_right(audit):
    owner = {"apiVersion": "parts.test/v1", "kind": "Box", "name": "b", "uid": "u"}
    ask(audit, "PATCH", SCREW, {"metadata": {"ownerReferences": [owner]}})
    assert "update *.parts.test/finalizers" in audit.unused(ENGINE, patience=0)
    ask(audit, "PATCH", SCREW, {"metadata": {"ownerReferences": [{**owner, "blockOwnerDeletion": True}]}})
    assert "update *.parts.test/finalizers" not in audit.unused(ENGINE, patience=0)


def test_one_response_per_kind_of_write_is_lost(audit):
    assert not ask(audit, "GET", SCREW)
    assert not ask(audit, "PATCH", SCREW, status=409)
    assert ask(audit, "PATCH", SCREW)
    assert not ask(audit, "PATCH", f"{SCREW}/status")
    assert ask(audit, "PATCH", SCREW.replace("screws", "nails"))
    assert not ask(audit, "PUT", OWN), "the engine has its own tests"


def test_a_kind_may_represent_missing_ones():
    rule = Rule("parts.test", ("screws", "bolts"), ("get",))
    audit = Audit(replace(labels.LABELS, rbac=(rule,)), alike={"bolts": "screws"})
    assert audit.unused(ENGINE, patience=0) == {"get screws.parts.test"}
    audit.record(ResourceRequest(Right("parts.test", "bolts", "get"), "default", "m4"), b"")
    assert (audit.unused(ENGINE, patience=0), audit.forbidden()) == (set(), set())


def test_a_right_on_everything_that_is_used_for_one_fixed_name_is_loose(audit):
    ask(audit, "GET", SCREW)
    assert audit.too_broad("m4") == {"get *.parts.test"}
    ask(audit, "GET", f"{SCREW}0")
    assert audit.too_broad("m4") == set()
