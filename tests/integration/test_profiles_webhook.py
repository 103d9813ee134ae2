"""Webhooks of profiles, called by both servers."""

from __future__ import annotations

import itertools

import pytest
from tests.builders.profile_admission import path, session
from tests.builders.profiles import (
    SEED_ROLE_ANNOTATIONS,
    compute_body,
    compute_profile_body,
    node_body,
    role_body,
    service_body,
    telemetry_profile_body,
)
from tests.builders.rule_webhooks import VALIDATING, discard

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.controller import PROFILES
from nodeyard.kube.json import Object
from nodeyard.testing.operators import LOCAL_WEBHOOKS

DRY = {"dryRun": "All"}
BAD = {names.COMPUTE_PROFILE: "a,b"}
PAUSED = {"nodeyard.dev/paused": "true"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def http(api):
    return session(api)


@pytest.fixture
def namespace(api, http):
    name = f"profiles-webhook-{next(_numbers)}"
    assert http.post("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    yield name
    http.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def store(http, namespace):
    """Store objects in the namespace of the test, and return their paths."""

    def put(body: Object) -> str:
        answer = http.post(path(body), body)
        assert answer.status == 201, answer.content
        return f"{path(body)}/{body['metadata']['name']}"

    return put


@pytest.fixture
def guard(api, http, operator, eventually, namespace):
    """Start the operator, and wait until the API server calls its webhooks."""

    def start():
        operator(PROFILES, webhooks=LOCAL_WEBHOOKS)
        bad = node_body("asked", annotations=BAD, namespace=namespace)
        eventually(lambda: http.post(path(bad), bad, query=DRY).status == 422, "asked")

    yield start
    discard(api.rest, f"{VALIDATING}/nodeyard-{names.CAPABILITY}")


def test_a_choice_that_is_no_name_is_denied_before_it_is_stored(guard, http, namespace):
    guard()
    body = role_body(annotations=BAD, namespace=namespace)

    answer = http.post(path(body), body, query=DRY)

    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message.startswith(
        'admission webhook "roles.profiles.nodeyard.dev" denied the request: Annotation '
        f"{names.COMPUTE_PROFILE} on role edpm-compute is 'a,b', which is not the name of one ComputeProfile"
    )


def test_a_missing_role_and_a_missing_profile_are_reported(guard, http, namespace):
    guard()
    body = node_body("early", role="later", annotations={names.COMPUTE_PROFILE: "missing"}, namespace=namespace)

    answer = http.post(path(body), body, query=DRY)

    assert answer.status == 201
    assert any(
        "OpenStackDataPlaneRole later (spec.role of node early) does not exist" in each for each in answer.warnings
    )
    assert any("ComputeProfile" in each and "missing" in each for each in answer.warnings)


def test_a_bad_choice_from_before_can_be_kept_and_fixed(guard, http, store, namespace):
    where = store(node_body("old", annotations={**BAD, **PAUSED}, namespace=namespace))
    guard()

    renamed = http.patch(where, {"spec": {"hostName": "new"}}, query=DRY)
    worse = http.patch(where, {"metadata": {"annotations": {names.COMPUTE_PROFILE: "c,d"}}}, query=DRY)
    mended = http.patch(where, {"metadata": {"annotations": {names.COMPUTE_PROFILE: None}}}, query=DRY)

    assert (renamed.status, len(renamed.warnings)) == (200, 1)
    assert "allowed because it was already so before this change" in renamed.warnings[0]
    assert worse.status == 422
    assert (mended.status, mended.warnings) == (200, [])


def test_a_profile_in_use_is_not_deleted_until_nobody_has_it(guard, http, store, namespace, eventually):
    profile = store(telemetry_profile_body(namespace=namespace))
    store(role_body(annotations={names.TELEMETRY_PROFILE: "collector"}, namespace=namespace))
    node = store(node_body(annotations=PAUSED, namespace=namespace))
    guard()

    refused = http.delete(profile, query=DRY)
    assert http.patch(node, {"metadata": {"annotations": {names.TELEMETRY_PROFILE: ""}}}).status == 200

    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert "TelemetryProfile collector is in use by 1 node (edpm-compute-0)" in refused.message
    allowed = eventually(lambda: (http.delete(profile, query=DRY).status == 200) or None, "nobody has it")
    assert allowed


def test_a_namespace_goes_with_profiles_that_are_in_use(guard, http, store, namespace, eventually):
    profile = store(telemetry_profile_body(namespace=namespace))
    store(node_body(annotations={names.TELEMETRY_PROFILE: "collector", **PAUSED}, role="", namespace=namespace))
    guard()
    eventually(lambda: http.delete(profile, query=DRY).status == 403, "in use")

    assert http.delete(f"/api/v1/namespaces/{namespace}").status == 200

    eventually(lambda: http.get(profile).status == 404, "gone with its namespace")


def test_a_cell_cannot_change_while_computes_are_in_it(guard, http, store, namespace, eventually):
    role = store(role_body(annotations={names.CELL: "nova-cell1"}, namespace=namespace))
    node = store(node_body(annotations=PAUSED, namespace=namespace))
    store(compute_body(spec={"cellName": "nova-cell1"}, namespace=namespace))
    guard()
    moved = {"metadata": {"annotations": {names.CELL: "nova-cell2"}}}

    of_role, of_node = (http.patch(where, moved, query=DRY) for where in (role, node))

    assert (of_role.status, of_node.status) == (422, 422)
    assert "1 node (edpm-compute-0) would change cell. Keep 'nova-cell1', or create another role" in of_role.message
    assert "is in cell nova-cell1 and cannot move to nova-cell2" in of_node.message


def test_configuration_is_validated_before_it_is_stored(guard, http, store, namespace):
    store(role_body(annotations=SEED_ROLE_ANNOTATIONS, namespace=namespace))
    store(node_body(annotations=PAUSED, namespace=namespace))
    profile = store(compute_profile_body(namespace=namespace))
    guard()

    def become(config: str):
        return http.patch(profile, {"spec": {"customComputeServiceConfig": config}}, query=DRY)

    broken, empty, changed = become("no section\n"), become(""), become("[DEFAULT]\ncpu_allocation_ratio = 8.0\n")

    assert broken.status == 422
    assert "ComputeProfile/dell-r740-shared-cpus: spec.customComputeServiceConfig" in broken.message
    assert empty.status == 200
    assert any("customComputeServiceConfig" in warning for warning in empty.warnings)
    (warning,) = changed.warnings
    assert "reconfigures nova on 1 node (edpm-compute-0)" in warning


def test_a_key_that_another_service_claims_is_denied(guard, http, store, namespace, eventually):
    where = store(service_body("webhookstorage"))
    try:
        guard()
        body = service_body("webhookcopy", annotationKey="webhookstorage.openstack.org/webhookstorage-profile")

        answer = http.post(path(body), body, query=DRY)

        assert (answer.status, answer.reason) == (422, "Invalid")
        assert "is also declared by webhookstorage" in answer.message
    finally:
        http.delete(where)


def test_a_compute_moves_to_another_cell_as_the_refusal_says(guard, http, store, namespace, eventually):
    store(role_body(namespace=namespace))
    where = store(node_body("n0", annotations={names.CELL: "cell1"}, namespace=namespace))
    compute = f"/apis/{names.NOVA_API_VERSION}/namespaces/{namespace}/{names.COMPUTE_PLURAL}/n0"
    guard()
    eventually(lambda: http.get(compute).status == 200, "it has a compute")

    def choose(cell):
        return http.patch(where, {"metadata": {"annotations": {names.CELL: cell}}})

    refused = choose("cell2")
    assert refused.status == 422
    assert f"To move it, set {names.CELL} on the node to an empty value" in refused.message
    assert choose("").status == 200
    eventually(lambda: http.get(compute).status == 404, "the compute is gone")
    assert choose("cell2").status == 200
    eventually(lambda: http.get(compute).status == 200, "it is made anew")
    assert http.get(compute).json["spec"]["cellName"] == "cell2"
