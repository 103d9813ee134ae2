"""The redactor: what names something is kept, what may be secret is hashed."""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeyard.bundle.redaction import HASHED, Redactor
from nodeyard.client.kubeconfig import parse_kubeconfig

SECRET = "hunter2-Tr0ub4dor"
KUBECONFIG = f"""
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "https://leaf.example:6443"}}}}]
users: [{{name: u, user: {{token: {SECRET}}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


@pytest.fixture
def redactor() -> Redactor:
    return Redactor()


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def obj(kind: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, **fields}


def annotated(**annotations: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x", "annotations": annotations}}


PLACES: dict[str, dict[str, Any]] = {
    "data of a Secret": obj("Secret", data={"password": in_base64(SECRET)}),
    "stringData": obj("Secret", stringData={"password": SECRET}),
    "data of a ConfigMap": obj("ConfigMap", data={"settings.yaml": f"password: {SECRET}"}),
    "last applied": annotated(**{"kubectl.kubernetes.io/last-applied-configuration": f'{{"stringData":"{SECRET}"}}'}),
    "another annotation": annotated(**{"example.com/hook": f"https://x.example/{SECRET}"}),
    "environment": obj("Pod", spec={"containers": [{"name": "c", "env": [{"name": "PASSWORD", "value": SECRET}]}]}),
    "a common word as environment": obj("Pod", spec={"containers": [{"env": [{"name": "A", "value": "zone"}]}]}),
    "arguments": obj("Pod", spec={"containers": [{"args": ["--password", SECRET], "command": ["sh", "-c", SECRET]}]}),
    "probes": obj("Pod", spec={"containers": [{"livenessProbe": {"exec": {"command": [SECRET]}}}]}),
    "headers": obj("Pod", spec={"containers": [{"httpGet": {"httpHeaders": [{"name": "A", "value": SECRET}]}}]}),
    "a condition": obj("Node", status={"conditions": [{"type": "Ready", "message": f"login with {SECRET} failed"}]}),
    "an event": obj("Event", "events.k8s.io/v1", note=f"dial tcp: password={SECRET}", reason="Failed"),
    "values": obj("HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": {"db": {"name": SECRET, "n": [SECRET]}}}),
    "a number": obj("HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": {"adminPassword": 815472}}),
    "an application": obj("Postgres", "apps.cozystack.io/v1alpha1", spec={"users": {"kind": SECRET}}),
    "an address": obj("Node", spec={"providerID": f"aws://user:{SECRET}@zone/i"}),
    "an image": obj("Pod", spec={"containers": [{"image": f"https://u:{SECRET}@registry/x"}]}),
    "managedFields": {
        **obj("Node"),
        "metadata": {
            "name": "x",
            "managedFields": [
                {
                    "manager": "kubectl",
                    "fieldsV1": {
                        f"f:{SECRET}": {},
                        f'k:{{"name":"{SECRET}"}}': {".": {}},
                        f'v:"{SECRET}"': {},
                        f"v:{SECRET}": {},
                        SECRET: {},
                    },
                }
            ],
        },
    },
    "a kubeconfig": obj("Cluster", "kosmos.io/v1alpha1", spec={"kubeconfig": in_base64(KUBECONFIG)}),
    "a kubeconfig in a Secret": obj("Secret", data={"value": in_base64(KUBECONFIG)}),
    "bootstrap data": obj(
        "KubeadmConfig", "bootstrap.cluster.x-k8s.io/v1beta2", spec={"files": [{"content": SECRET, "path": "/x"}]}
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_hashed(redactor: Redactor, place: str) -> None:
    found = msgspec.json.encode(redactor.redact(PLACES[place]["kind"], PLACES[place])).decode()
    for text in (SECRET, in_base64(SECRET), in_base64(KUBECONFIG), "815472", '"zone"'):
        assert text not in found


def test_names_words_and_numbers_are_kept(redactor: Redactor) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "uid": "0c1f5e5b-5b1b-4f43-9d6f-1d6f5d1f7c11",
            "labels": {"topology.kubernetes.io/zone": "zürich-1"},
            "annotations": {"nodeyard.dev/spares-record": '{"template":"web"}'},
            "creationTimestamp": "2026-11-19T12:00:00Z",
            "finalizers": ["nodeyard.dev/tenant"],
        },
        "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": {"cpu": "3500m", "memory": "16384000Ki"},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "False",
                    "reason": "KubeletNotReady",
                    "message": "container runtime network not ready on node n1",
                    "lastTransitionTime": "2026-11-19T12:00:00Z",
                }
            ],
        },
    }
    assert redactor.redact("Node", node) == node


def test_equal_words_have_equal_hashes_in_one_bundle_and_others_in_the_next(redactor: Redactor) -> None:
    assert redactor.text(SECRET) == redactor.text(SECRET)
    assert redactor.text(SECRET).startswith(HASHED)
    assert redactor.text(SECRET) != Redactor().text(SECRET)


def test_a_name_that_is_known_stays_readable_in_messages(redactor: Redactor) -> None:
    assert "compute-17" not in redactor.text("node compute-17 is not ready")
    redactor.redact("Node", {"metadata": {"name": "compute-17"}})
    assert redactor.text("node compute-17 is not ready") == "node compute-17 is not ready"


def test_managed_fields_of_fields_that_the_object_shows_are_kept(redactor: Redactor) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "x",
            "labels": {"wörk": "y"},
            "finalizers": ["a.b/c"],
            "managedFields": [
                {"fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:wörk": {}}, 'v:"a.b/c"': {}, "i:0": {}}}}
            ],
        },
        "status": {"conditions": [{"type": "Ready"}]},
    }
    assert redactor.redact("Node", node) == node


def test_a_kubeconfig_stays_one_that_leads_nowhere(redactor: Redactor) -> None:
    found = redactor.redact("Secret", obj("Secret", data={"value": in_base64(KUBECONFIG)}))
    config = parse_kubeconfig(base64.b64decode(found["data"]["value"]), source="test")
    assert config.server.endswith(".invalid")


def test_options_of_ini_files_keep_their_names(redactor: Redactor) -> None:
    text = "[compute]\ncpu_shared_set = 4-12,^8,15\n[DEFAULT]\ntransport_url=rabbit://u:hunter2@h/\nratio = 4.0\n"
    found = redactor.text(text)
    assert "hunter2" not in found
    assert found.splitlines()[:3] == text.splitlines()[:3]
    assert found.splitlines()[3].startswith("transport_url=")
    assert found.splitlines()[4] == "ratio = 4.0"


PIN = "4711"
PIN_PLACES: dict[str, dict[str, Any]] = {
    "environment": obj("Pod", spec={"containers": [{"env": [{"name": "PIN", "value": PIN}]}]}),
    "an annotation called pin": annotated(**{"example.com/pin": PIN}),
    "an annotation called password": annotated(**{"example.com/password": PIN}),
    "an annotation called access-key": annotated(**{"example.com/access-key": PIN}),
    "JSON in an annotation": annotated(**{"example.com/login": f'{{"user": "zone", "password": "{PIN}"}}'}),
    "a number in JSON in an annotation": annotated(**{"example.com/login": f'{{"password":{PIN}}}'}),
    "an option in an annotation": annotated(**{"example.com/hook": f"run --password {PIN}"}),
    "a query in an annotation": annotated(**{"example.com/hook": f"https://x.example/?user=a&token={PIN}"}),
    "a password in a URL": annotated(**{"example.com/hook": f"https://admin:{PIN}@x.example/"}),
    "a condition": obj("Node", status={"conditions": [{"type": "Ready", "message": f"password: {PIN} was refused"}]}),
    "values": obj("HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": {"db": {"password": PIN}}}),
    "a number in values": obj("HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": {"password": int(PIN)}}),
    "a list in values": obj("HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": {"passwords": [PIN]}}),
    "below a credential in values": obj(
        "HelmRelease", "helm.toolkit.fluxcd.io/v2", spec={"values": {"credentials": {"name": "zone", "code": int(PIN)}}}
    ),
}


@pytest.mark.parametrize("place", PIN_PLACES)
def test_a_short_number_that_is_a_secret_is_hashed(redactor: Redactor, place: str) -> None:
    found = msgspec.json.encode(redactor.redact(PIN_PLACES[place]["kind"], PIN_PLACES[place])).decode()
    # A hash may have the same four digits.
    assert PIN not in re.sub(f"{HASHED}[0-9a-f]{{12}}", "", found)
    assert in_base64(PIN) not in found


def test_a_message_about_a_secret_is_kept(redactor: Redactor) -> None:
    for text in ('secrets "kubeconfig" not found', "the token is expired", "https://10.0.0.1:6443: connection refused"):
        assert redactor.text(text) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "status", "data", "x"]), JSON), st.sampled_from("NSCHP"))
def test_any_object_is_redacted_to_json(body: dict[str, Any], initial: str) -> None:
    kind = {"N": "Node", "S": "Secret", "C": "ConfigMap", "H": "HelmRelease", "P": "Pod"}[initial]
    found = Redactor().redact(kind, body)
    assert set(found) == set(body)
    msgspec.json.encode(found)


@given(
    st.text(alphabet="abcdefghijklmnopqrstuvwxyz0123456789-_", min_size=12, max_size=30).map(lambda text: f"q9{text}7x")
)
def test_no_odd_word_is_kept_in_a_text(word: str) -> None:
    for text in (word, f"login {word} failed", f"password={word}", f"https://user:{word}@host/path", f'"{word}",'):
        assert word not in Redactor().text(text)


def test_names_that_software_joins_with_marks_are_kept(redactor: Redactor) -> None:
    redactor.learn("postgres")
    for text in ("status.allocatable shows what is free in the leaf", "postgres-", "the field _spec"):
        assert redactor.text(text) == text
    assert HASHED in redactor.text("status.hunter2")
    assert HASHED in redactor.text("hunter2-")


def test_a_schema_is_kept_and_names_the_fields_of_applications(redactor: Redactor) -> None:
    schema = '{"type":"object","properties":{"shardsPerZone":{"type":"integer"}}}'
    definition = {"application": {"kind": "Shop", "openAPISchema": schema}}

    stored = obj("ApplicationDefinition", "cozystack.io/v1alpha1", spec=definition)
    redacted = redactor.redact("ApplicationDefinition", stored)
    application = redactor.redact("Shop", obj("Shop", "apps.cozystack.io/v1alpha1", spec={"shardsPerZone": 3}))

    assert redacted["spec"]["application"]["openAPISchema"] == schema
    assert application["spec"] == {"shardsPerZone": 3}
