"""CRD validation of profiles: valid objects pass unchanged, invalid ones are denied with field and message."""

from __future__ import annotations

from typing import Any

import pytest
from tests.builders.profile_admission import DRY, PLURALS, STRICT, in_default, path, refused, samples, session
from tests.builders.profiles import (
    SEED_NODE_ANNOTATIONS,
    SEED_ROLE_ANNOTATIONS,
    agent_body,
    compute_body,
    compute_profile_body,
    network_profile_body,
    node_body,
    role_body,
    service_body,
    telemetry_profile_body,
)

from nodeyard.kube.json import Object


@pytest.fixture(scope="module")
def http(api):
    return session(api)


@pytest.fixture
def store(http):
    """Stores an object for the test."""
    paths = []

    def put(body: Object) -> Any:
        body = in_default(body)
        paths.append(f"{path(body)}/{body['metadata']['name']}")
        answer = http.post(path(body), body, query=STRICT)
        assert answer.status == 201, answer.content
        return answer

    yield put
    for each in paths:
        http.delete(each)


@pytest.fixture
def change(http, store):
    """Stores an object, and tries a merge patch on its spec."""

    def ask(body: Object, spec: Object | None) -> Any:
        store(body)
        body = in_default(body)
        return http.patch(f"{path(body)}/{body['metadata']['name']}", {"spec": spec}, query={"dryRun": "All"})

    return ask


def without_spec(body: Object) -> Object:
    return {key: value for key, value in body.items() if key != "spec"}


# valid objects

GOOD = {
    **{
        f"sample {number}, {each['kind']} {each['metadata']['name']}": each
        for number, each in enumerate(samples())
        if each["kind"] in PLURALS
    },
    "the seed's role": role_body(annotations=SEED_ROLE_ANNOTATIONS),
    "the seed's node": node_body("edpm-compute-1", annotations=SEED_NODE_ANNOTATIONS),
    "the seed's compute": compute_body("edpm-compute-0", "dell-r740-shared-cpus"),
    "an agent": agent_body(),
    "a role without a spec": without_spec(role_body()),
    "a node without a role": node_body(role=""),
    "policies": node_body(profileUpdatePolicy="Manual"),
    "a policy left to the role": node_body(profileUpdatePolicy=""),
    "a role as upstream had it": role_body(
        dataPlane="edpm",
        baremetalSetTemplate={"osImage": "x", "domainName": "a.example"},
        nodeTemplate={
            "ansibleUser": "cloud-admin",
            "ansiblePort": 22,
            "ansibleVars": "edpm_ovn: true\n",
            "ansibleSSHPrivateKeySecret": "key",
            "networks": [{"network": "CtlPlane", "fixedIP": "192.168.122.100"}],
            "networkConfig": {"template": "templates/net.j2"},
            "extraMounts": [{"mounts": [{"name": "a", "mountPath": "/a"}]}],
            "nova": {"cellName": "cell1", "novaInstance": "nova", "deploy": True},
        },
        env=[{"name": "A", "value": "b"}],
        deployStrategy={"deploy": True, "ansibleTags": "x"},
        networkAttachments=["internalapi"],
        services=["configure-network", "run-os"],
        preProvisioned=True,
    ),
    "a profile of numbers": compute_profile_body(spec={"maxUnavailable": 3, "progressDeadlineSeconds": 1}),
    "a profile of shares": compute_profile_body(spec={"maxUnavailable": "100%", "renderAs": "Secret"}),
    "a profile that selects": network_profile_body(spec={"nodeSelector": {"example.com/rack": ""}, "priority": -5}),
    "a profile that selects all": telemetry_profile_body(spec={"nodeSelector": {}}),
    "a profile of nothing": telemetry_profile_body(),
    "a service": service_body(maxUnavailable="10%", progressDeadlineSeconds=60),
    "a service that waits for an annotation": service_body(createWhenAnnotation="storage.openstack.org/pool"),
    "a service without an object": service_body(object=None, nodeField=None, profileField=None),
}


@pytest.mark.parametrize("body", GOOD.values(), ids=GOOD)
def test_a_good_one_passes_and_stays_as_it_is(http, body):
    body = in_default(body)

    answer = http.post(path(body), body, query=DRY)

    assert answer.status == 201, answer.content
    assert answer.warnings == []
    assert answer.json.get("spec") == body.get("spec")


@pytest.mark.parametrize("body", [role_body(), node_body(), compute_profile_body(), telemetry_profile_body()])
def test_a_null_spec_counts_as_missing(http, body):
    body = {**in_default(body), "spec": None}

    answer = http.post(path(body), body, query=DRY)

    assert answer.status == 201, answer.content
    assert not answer.json.get("spec")


def test_no_default_overrides_the_role(http, store):
    written = {"node": {"nova": {"customServiceConfig": "[DEFAULT]\ndebug = true\n"}}, "role": "edpm-compute"}

    store(node_body("pd-inheriting", spec=written))

    stored = http.get(f"{path(in_default(node_body()))}/pd-inheriting").json
    assert stored["spec"] == written
    assert "status" not in stored


@pytest.mark.parametrize(
    "body",
    [
        role_body("pd-foreign", invented={"a": [1]}, nodeTemplate={"invented": 1, "nova": {"invented": "x"}}),
        node_body("pd-foreign", invented={"a": [1]}, node={"invented": 1, "networkConfig": {"invented": 2}}),
        compute_body("pd-foreign", spec={"novaComputeContainerImage": "x", "dnsConfig": {"nameservers": ["1.1.1.1"]}}),
        agent_body("pd-foreign", spec={"ovnMetadataAgentImage": "x"}),
    ],
    ids=lambda body: body["kind"],
)
def test_fields_of_the_openstack_operators_that_we_do_not_know_are_kept(store, body):
    assert store(body).json["spec"] == body["spec"]


def test_a_status_of_the_openstack_operators_is_kept_whole(http, store):
    body = in_default(compute_body("pd-status"))
    store(body)
    condition = {"type": "Ready", "status": "False", "severity": "Error", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    status = {"hash": {"input": "abc"}, "conditions": [condition], "networkAttachments": {"a": ["b"]}}

    answer = http.patch(f"{path(body)}/pd-status/status", {"status": status})

    assert answer.status == 200, answer.content
    assert answer.json["status"] == status


def test_a_field_of_a_profile_that_is_misspelt_is_not_dropped_in_silence(http):
    body = in_default(compute_profile_body(spec={"customServiceConfig": "x"}))

    answer = http.post(path(body), body, query=DRY)

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert 'unknown field "spec.customServiceConfig"' in answer.message


# invalid objects


def profile(**spec: Any) -> Object:
    return compute_profile_body(spec=spec)


NAME = "lower-case letters, digits, '-' and '.', and starts and ends with a letter or digit"
KEY = "an annotation key is a DNS prefix, a slash and a name"
SHARE = "maxUnavailable is a number from 1 or a percentage from 1% to 100%"
IDLE = "nodeField, profileField, createWhenAnnotation need spec.object: set object, or remove them"
BAD = {
    "a role whose name is no label": (role_body("r" * 64), "", "becomes the value of label openstackdataplanerole"),
    "a node whose name is no label": (node_body("n" * 64), "", "becomes the value of label openstackdataplanenode"),
    "a role that is no name": (node_body(role="Compute"), "spec.role", NAME),
    "two roles": (node_body(role="a,b"), "spec.role", NAME),
    "another policy": (node_body(profileUpdatePolicy="Never"), "spec.profileUpdatePolicy", "Unsupported value"),
    "another policy of a role": (role_body(profileUpdatePolicy="auto"), "spec.profileUpdatePolicy", "Unsupported"),
    "a port beyond": (node_body(node={"ansiblePort": 70000}), "spec.node.ansiblePort", "less than or equal to 65535"),
    "none unavailable": (profile(maxUnavailable=0), "spec.maxUnavailable", SHARE),
    "less than none unavailable": (profile(maxUnavailable=-1), "spec.maxUnavailable", SHARE),
    "no share unavailable": (profile(maxUnavailable="0%"), "spec.maxUnavailable", SHARE),
    "more than all unavailable": (profile(maxUnavailable="101%"), "spec.maxUnavailable", SHARE),
    "a share without its sign": (profile(maxUnavailable="25"), "spec.maxUnavailable", SHARE),
    "no deadline": (profile(progressDeadlineSeconds=0), "spec.progressDeadlineSeconds", "greater than or equal to 1"),
    "rendered as something else": (profile(renderAs="Pod"), "spec.renderAs", "Unsupported value"),
    "too much configuration": (
        compute_profile_body(config="x" * 524289),
        "spec.customComputeServiceConfig",
        "Too long",
    ),
    "a label key": (profile(nodeSelector={"a b": "c"}), "spec.nodeSelector", "a label key is a name"),
    "a label value": (profile(nodeSelector={"a": "b c"}), "spec.nodeSelector", "a label value is at most 63"),
    "a compute of a profile that is no name": (compute_body(profile="A"), "spec.computeProfileName", NAME),
    "an agent of a profile that is no name": (agent_body(profile="a,b"), "spec.networkProfileName", NAME),
    "a compute without a spec": (without_spec(compute_body()), "spec", "Required value"),
    "an agent without a spec": (without_spec(agent_body()), "spec", "Required value"),
    "a service without a key": (service_body(annotationKey=None), "spec.annotationKey", "Required value"),
    "a service without profiles": (service_body(profile=None), "spec.profile", "Required value"),
    "a service without a kind": (service_body(profile={"apiVersion": "a/v1"}), "spec.profile.kind", "Required value"),
    "a service without a version": (service_body(object={"kind": "A"}), "spec.object.apiVersion", "Required value"),
    "a key without a prefix": (service_body(annotationKey="storage-profile"), "spec.annotationKey", KEY),
    "an empty key": (service_body(annotationKey=""), "spec.annotationKey", KEY),
    "a key of two slashes": (service_body(annotationKey="a/b/c"), "spec.annotationKey", KEY),
    "the key of nova": (
        service_body(annotationKey="nova.openstack.org/compute-profile"),
        "spec.annotationKey",
        "belong to built-in services",
    ),
    "the key of the cell": (
        service_body(annotationKey="nova.openstack.org/cell"),
        "spec.annotationKey",
        "belong to built-in services",
    ),
    "the name of nova": (service_body("nova"), "", "neutron, nova, telemetry are built in: choose another name"),
    "a name with a dot": (service_body("a.b"), "", "metadata.name becomes the value of label"),
    "a group without a version": (
        service_body(profile={"apiVersion": "storage", "kind": "A"}),
        "spec.profile.apiVersion",
        "apiVersion is group and version",
    ),
    "a plural for a kind": (
        service_body(profile={"apiVersion": "a.b/v1", "kind": "storageprofiles"}),
        "spec.profile.kind",
        "a kind is written like StorageProfile",
    ),
    "an object without a field for the node": (service_body(nodeField=None), "spec", "an object needs nodeField and"),
    "an object without a field for the profile": (
        service_body(profileField=""),
        "spec",
        "an object needs nodeField and",
    ),
    "one field for both": (service_body(profileField="nodeName"), "spec", "one field cannot hold both names"),
    "fields without an object": (service_body(object=None), "spec", IDLE),
    "a condition without an object": (
        service_body(object=None, nodeField=None, profileField=None, createWhenAnnotation="a.b/c"),
        "spec",
        IDLE,
    ),
    "a path for a field": (service_body(configField="a.b"), "spec.configField", "this is one field of a spec"),
    "an empty share": (service_body(maxUnavailable="%"), "spec.maxUnavailable", SHARE),
    "no deadline of a service": (service_body(progressDeadlineSeconds=0), "spec.progressDeadlineSeconds", "to 1"),
    "a condition that is no key": (
        service_body(createWhenAnnotation="pool"),
        "spec.createWhenAnnotation",
        "an annotation key is a DNS prefix",
    ),
    "one key for both": (
        service_body(createWhenAnnotation="storage.openstack.org/storage-profile"),
        "spec",
        "createWhenAnnotation must differ from annotationKey",
    ),
}


@pytest.mark.parametrize(("body", "field", "message"), BAD.values(), ids=BAD)
def test_a_bad_one_is_refused_with_its_field(http, body, field, message):
    body = in_default(body)

    refused(http.post(path(body), body, query=DRY), field, message)


# changes


def test_a_cell_is_immutable_and_all_other_fields_can_be_changed(change):
    changed = change(compute_body("pd-cell"), {"cellName": "nova-cell1"})
    kept = change(compute_body("pd-kept", spec={"cellName": "nova-cell1"}), {"computeProfileName": "other"})

    assert (changed.status, kept.status) == (200, 200)


@pytest.mark.parametrize("cell", ["nova-cell2", "", None], ids=["another", "empty", "none"])
def test_a_cell_that_is_set_cannot_change(change, cell):
    answer = change(compute_body("pd-moving", spec={"cellName": "nova-cell1"}), {"cellName": cell})

    refused(answer, "spec", "cellName cannot change from nova-cell1: nova does not move computes between cells")


def test_a_compute_cannot_lose_its_spec_and_the_cell_with_it(change):
    answer = change(compute_body("pd-bare", spec={"cellName": "nova-cell1"}), None)

    refused(answer, "spec", "Required value")


# printer columns


def test_kubectl_shows_what_a_node_has(http, store):
    body = in_default(node_body("pd-shown"))
    store(body)
    status = {
        "profiles": {"nova": {"value": "dell"}, "neutron": {"value": "dpdk"}, "telemetry": {"value": "collector"}},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Reconciled",
                "message": "all is well",
                "lastTransitionTime": "2030-01-01T00:00:00Z",
            }
        ],
    }
    assert http.patch(f"{path(body)}/pd-shown/status", {"status": status}).status == 200

    table = http.get(f"{path(body)}/pd-shown", accept="application/json;as=Table;g=meta.k8s.io;v=v1").json

    named = [column["name"] for column in table["columnDefinitions"]]
    assert named == ["Name", "Role", "Compute", "Network", "Telemetry", "Ready", "Held", "Age", "Message"]
    assert table["rows"][0]["cells"][:6] == ["pd-shown", "edpm-compute", "dell", "dpdk", "collector", "True"]


@pytest.mark.parametrize("name", ["osdprole", "osdpnode", "cprof", "nprof", "tprof", "nec", "ovnma", "profsvc"])
def test_every_kind_is_found_by_a_short_name_of_its_own(api, http, name):
    groups = [group["preferredVersion"]["groupVersion"] for group in http.get("/apis").json["groups"]]
    lists = [http.get(f"/apis/{group}").json["resources"] for group in groups]
    core = http.get("/api/v1").json["resources"]

    found = [each["name"] for resources in [core, *lists] for each in resources if name in each.get("shortNames", ())]

    assert len(found) == 1
