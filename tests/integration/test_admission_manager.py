"""Certificates and registrations over time: shared, rotated, repaired, left unchanged; on both servers."""

import base64
import socket
import ssl
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.builders import labels
from tests.builders.background_load import Load
from tests.builders.rule_webhooks import (
    GUARDED,
    MUTATING,
    NAME,
    RULES,
    SECRET,
    VALIDATING,
    discard,
    discard_webhooks,
    guarded,
    look,
    validating,
)

from nodeyard.admission.certificates import RotationPolicy, authorities_in
from nodeyard.process.certificates import Authority
from nodeyard.runtime import rbac
from nodeyard.testing.operators import LOCAL_WEBHOOKS

RESTLESS = RotationPolicy(
    valid=timedelta(days=90), renew_before=timedelta(days=90) - timedelta(seconds=2), interval=0.2, settle=0.5
)
"""Rotate certificates every two seconds."""
PATIENT = RotationPolicy(interval=60, settle=60)
OWNER = rbac.registering_role(GUARDED)


@pytest.fixture(autouse=True)
def clean(api):
    """Delete webhooks and certificates before and after the test."""
    discard_webhooks(api.rest)
    discard(api.rest, SECRET)
    yield
    discard_webhooks(api.rest)
    discard(api.rest, SECRET)


@pytest.fixture
def start(clean, operator):
    """A ready operator with webhooks."""

    def start(capability=GUARDED, rotation=LOCAL_WEBHOOKS.rotation, **options):
        chosen = replace(LOCAL_WEBHOOKS, rotation=rotation, folder=options.pop("folder", None))
        return operator(capability, webhooks=chosen, **options)

    return start


@pytest.fixture
def registered(api, eventually):
    """Wait until a configuration is on the server; return it."""

    def find(path=VALIDATING):
        return eventually(lambda: look(api.rest, f"{path}/{NAME}"), "it is registered")

    return find


def presented(port):
    """Return the served certificate in PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port), 5) as plain, context.wrap_socket(plain) as secure:
        return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True))


def stored(rest, name):
    return base64.b64decode(rest.get(SECRET)["data"][name])


def bundle(configuration):
    return authorities_in(base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"]))


def without_bundle(webhook):
    return {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": ""}}


def await_looks(running, eventually):
    """Wait for a few more rounds of certificates and registrations."""
    before = running.metric("nodeyard_client_requests_total", verb="get", resource="secrets")
    eventually(
        lambda: running.metric("nodeyard_client_requests_total", verb="get", resource="secrets") > before + 3,
        "it looked a few times more",
    )


def a_rule(name="probe", team="blue"):
    return {"apiVersion": labels.API_VERSION, "kind": "LabelRule", "metadata": {"name": name}, "spec": {"team": team}}


# certificates


def test_replicas_share_one_secret_whoever_was_first(api, start):
    first, second = start(identity="first"), start(identity="second")

    certificates = {presented(each.ports["webhooks"]) for each in (first, second)}

    assert len(certificates) == 1
    assert certificates.pop() in stored(api.rest, "tls.crt").decode()
    assert first.write_counts().get("create secrets", 0) + second.write_counts().get("create secrets", 0) == 1


def test_a_secret_that_is_lost_is_put_back_as_it_was(api, start, eventually):
    start()
    before = stored(api.rest, "tls.crt")

    api.rest.call("DELETE", SECRET)

    eventually(lambda: look(api.rest, SECRET), "it is back")
    assert stored(api.rest, "tls.crt") == before


def test_certificates_rotate_without_a_refused_request(api, start, registered, eventually):
    running = start(guarded(validating(failure_policy="Fail")), rotation=RESTLESS)
    registered()
    eventually(lambda: running.metric("nodeyard_webhook_reviews_total") or ask(api), "the API server asks")
    seen, load = [], Load()
    load.repeat(lambda: ask(api))

    with load:
        eventually(lambda: len(noted(seen, presented(running.ports["webhooks"]))) >= 4, "three rotations", timeout=60)

    assert load.faults == []
    assert load.counts[0] > 10
    assert len(bundle(registered())) >= 2


def ask(api):
    api.rest.call("POST", f"{RULES}?dryRun=All", a_rule())


def noted(seen, certificate):
    if certificate not in seen:
        seen.append(certificate)
    return seen


def test_a_follower_presents_nothing_that_is_not_yet_trusted(api, start, registered, eventually):
    """A client that sees the new CA late still gets the certificate of the old one."""
    slow = start(identity="slow", rotation=replace(PATIENT, interval=0.2)).wait_until_leading()
    registered()
    before = presented(slow.ports["webhooks"])

    due = RotationPolicy(valid=timedelta(days=90), renew_before=timedelta(days=91), interval=60, settle=60)
    hasty = start(identity="hasty", rotation=due)

    eventually(lambda: len(bundle(registered())) >= 2, "both are trusted")
    assert before not in stored(api.rest, "tls.crt").decode()
    assert before in stored(api.rest, "previous.crt").decode()
    assert presented(slow.ports["webhooks"]) == before
    assert presented(hasty.ports["webhooks"]) == before


def test_certificates_of_the_user_are_read_again_when_they_change(api, start, registered, eventually, tmp_path):
    def put(authority):
        pair = authority.server("127.0.0.1")
        for name, part in (("tls.crt", pair.certificate), ("tls.key", pair.key), ("ca.crt", authority.pem)):
            (tmp_path / name).write_bytes(part)
        return pair

    first, second = Authority(), Authority()
    put(first)
    running = start(folder=tmp_path)
    assert bundle(registered()) == authorities_in(first.pem)

    pair = put(second)

    eventually(lambda: bundle(registered()) == authorities_in(second.pem), "the bundle follows")
    eventually(lambda: presented(running.ports["webhooks"]) == pair.certificate.decode(), "the certificate follows")
    assert look(api.rest, SECRET) is None


# registration


def test_registered_webhooks_exclude_system_namespaces(start, registered):
    start()

    for path in (VALIDATING, MUTATING):
        (entry,) = registered(path)["webhooks"]
        (exempt,) = entry["namespaceSelector"]["matchExpressions"]
        assert {"kube-system", "kube-node-lease", "nodeyard-system"} == set(exempt["values"])
        assert entry["failurePolicy"] == "Ignore"
        assert entry["sideEffects"] == "None"
        assert "system:serviceaccount:nodeyard-system:" in entry["matchConditions"][0]["expression"]


def test_drift_is_repaired(api, start, registered, eventually):
    running = start()
    wanted = registered()["webhooks"]

    api.rest.call("DELETE", f"{VALIDATING}/{NAME}")
    eventually(lambda: registered()["webhooks"] == wanted, "it is back")
    changed = registered()
    changed["webhooks"][0] |= {
        "failurePolicy": "Fail",
        "timeoutSeconds": 30,
        "objectSelector": {"matchLabels": {"a": "b"}},
    }
    changed["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(Authority().pem).decode()
    api.rest.call("PUT", f"{VALIDATING}/{NAME}", changed)

    eventually(lambda: registered()["webhooks"] == wanted, "it is as declared")
    # Counted after the response was sent, perhaps after our read.
    eventually(lambda: running.metric("nodeyard_webhook_registrations_total", reason="drift"), "it is counted")
    assert running.metric("nodeyard_webhook_registrations_total", reason="drift") == 1


def test_a_condition_that_switches_a_webhook_off_is_taken_out_again(api, start, registered, eventually):
    start()
    wanted = registered()["webhooks"]
    changed = registered()
    changed["webhooks"][0]["matchConditions"].append({"name": "never", "expression": "false"})
    changed["webhooks"].append({**changed["webhooks"][0], "name": "other.example.com", "failurePolicy": "Ignore"})
    api.rest.call("PUT", f"{VALIDATING}/{NAME}", changed)

    eventually(lambda: registered()["webhooks"][0] == wanted[0], "it is as declared")
    other = registered()["webhooks"][1]
    assert (other["name"], len(other["matchConditions"])) == ("other.example.com", 2), "what is not ours is left alone"


RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
SWITCHED_OFF = {
    "never matching": {"matchConditions": [{"name": "never", "expression": "false"}]},
    "for nothing": {"rules": []},
    "for another resource": {"rules": [RULE | {"resources": ["secrets"]}]},
    "for no namespace": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    "for no object": {"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
    "elsewhere": {"clientConfig": {"url": "https://127.0.0.1:1/validate"}},
}


@pytest.mark.parametrize("change", SWITCHED_OFF.values(), ids=SWITCHED_OFF)
def test_a_webhook_that_is_switched_off_is_put_back(api, start, registered, eventually, change):
    start()
    wanted = registered()["webhooks"]
    changed = registered()
    changed["webhooks"][0] |= change
    api.rest.call("PUT", f"{VALIDATING}/{NAME}", changed)

    eventually(lambda: registered()["webhooks"] == wanted, "it is as declared")


def test_foreign_fields_of_a_configuration_are_kept(api, start, registered, eventually):
    running = start()
    changed = registered()
    other = {**changed["webhooks"][0], "name": "other.example.com", "failurePolicy": "Ignore"}
    changed["webhooks"].append(other)
    api.rest.call("PUT", f"{VALIDATING}/{NAME}", changed)
    eventually(lambda: running.metric("nodeyard_webhook_registrations_total") >= 2, "both kinds are registered")
    before = running.metric("nodeyard_webhook_registrations_total")

    await_looks(running, eventually)

    assert running.metric("nodeyard_webhook_registrations_total") == before
    assert {entry["name"] for entry in registered()["webhooks"]} == {"rules.labels.nodeyard.dev", "other.example.com"}


def test_a_webhook_that_is_no_longer_declared_is_removed(start, registered, eventually):
    running = start()
    assert registered(MUTATING)["webhooks"]
    running.stop()

    start(guarded(validating()))

    eventually(lambda: not registered(MUTATING).get("webhooks"), "the mutating one is gone")
    assert registered()["webhooks"]


def test_in_observe_only_mode_nothing_is_registered_or_stored(api, start, eventually):
    running = start(observe=True).wait_until_leading()

    await_looks(running, eventually)

    assert look(api.rest, f"{VALIDATING}/{NAME}") is None
    assert look(api.rest, SECRET) is None
    assert running.write_counts() == {}


def test_in_observe_only_mode_only_certificates_of_registered_webhooks_are_renewed(api, start, registered, eventually):
    first = start(guarded(validating(failure_policy="Fail")))
    before = registered()
    first.stop()
    observer = start(guarded(validating(failure_policy="Fail")), observe=True, rotation=RESTLESS).wait_until_leading()
    seen = []

    eventually(lambda: len(noted(seen, presented(observer.ports["webhooks"]))) >= 3, "two renewals", timeout=60)

    assert bundle(registered()) - bundle(before), "API servers trust the new ones too"
    assert list(map(without_bundle, registered()["webhooks"])) == list(map(without_bundle, before["webhooks"]))
    written = {"update secrets", "patch validatingwebhookconfigurations.admissionregistration.k8s.io"}
    assert set(observer.write_counts()) == written


def test_nothing_is_registered_while_the_peer_operator_runs(api, start, registered, eventually):
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": labels.PEER, "namespace": "default"},
        "spec": {"renewTime": "2999-01-01T00:00:00.000000Z"},
    }
    path = f"/apis/coordination.k8s.io/v1/namespaces/default/leases/{labels.PEER}"
    api.rest.create(lease)
    try:
        running = start().wait_until_leading()
        await_looks(running, eventually)
        assert look(api.rest, f"{VALIDATING}/{NAME}") is None
    finally:
        discard(api.rest, path)

    assert registered()["webhooks"]


def test_only_the_leader_registers(start, eventually):
    leader = start(identity="leader").wait_until_leading()
    eventually(lambda: leader.metric("nodeyard_webhook_registrations_total") >= 2, "both kinds are registered")
    follower = start(identity="follower")

    await_looks(follower, eventually)

    assert follower.metric("nodeyard_webhook_registrations_total") == 0
    assert leader.metric("nodeyard_webhook_registrations_total") == 2


def test_webhooks_are_removed_when_the_operator_is_uninstalled(api, start, registered, eventually):
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": OWNER},
        "rules": [],
    }
    api.rest.replace_or_create(role)
    running = start()
    eventually(lambda: registered()["metadata"].get("ownerReferences"), "the role owns them")
    registered(MUTATING)
    running.stop()

    api.rest.call("DELETE", f"/apis/rbac.authorization.k8s.io/v1/clusterroles/{OWNER}")

    for path in (VALIDATING, MUTATING):
        eventually(lambda path=path: look(api.rest, f"{path}/{NAME}") is None, "it is gone")
