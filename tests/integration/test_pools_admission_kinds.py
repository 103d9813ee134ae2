"""CRD validation of LatticeNodeClasses, LatticeServices and the example."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.builders.pool_admission import CLASSES, CLUSTERS, DRY, KEY, SERVICES, VALUE, refused, session
from tests.builders.pools import class_body, service_body

from nodeyard.kube.json import Object

EXAMPLE = Path(__file__).parents[2] / "examples" / "02-pools"


@pytest.fixture(scope="module")
def http(api):
    return session(api)


@pytest.mark.parametrize(
    "body",
    [
        class_body("medium", docker={}),
        class_body("gpu-large", aws={"instanceType": "p4d.24xlarge", "ami": "ami-1", "rootVolumeSize": 200}),
        class_body("highmem", proxmox={"cores": 8, "memory": "64Gi", "template": "ubuntu-22.04"}),
        class_body("mounted", docker={"extraMounts": [{"containerPath": "/a", "hostPath": "/b", "readOnly": True}]}),
        class_body("quiet", docker={"memory": "4Gi", "cpus": 2}, aws={"instanceType": "t3.large"}),
    ],
    ids=lambda body: body["metadata"]["name"],
)
def test_a_good_class_passes(http, body):
    answer = http.post(CLASSES, body, query=DRY)

    assert answer.status == 201, answer.content
    assert answer.json["spec"] == body["spec"]


BAD_CLASSES = {
    "no provider": (
        {**class_body(), "spec": {"providers": {}}},
        "spec.providers",
        "must set at least one of aws, docker and proxmox",
    ),
    "no providers": ({**class_body(), "spec": {}}, "spec.providers", "Required value"),
    "a small root volume": (
        class_body(aws={"rootVolumeSize": 7}),
        "spec.providers.aws.rootVolumeSize",
        "spec.providers.aws.rootVolumeSize in body should be greater than or equal to 8",
    ),
    "an instance type": (
        class_body(aws={"instanceType": "t"}),
        "spec.providers.aws.instanceType",
        "an instance type has at least two characters",
    ),
    "memory": (
        class_body(proxmox={"memory": "lots"}),
        "spec.providers.proxmox.memory",
        "memory must be a quantity such as 16Gi",
    ),
    "no memory": (
        class_body(proxmox={"memory": "0"}),
        "spec.providers.proxmox.memory",
        "memory must be a quantity such as 16Gi",
    ),
    "a template that is no tag": (
        class_body(proxmox={"template": "ubuntu 22"}),
        "spec.providers.proxmox.template",
        "template is a Proxmox tag: letters, digits, '_', '-', '+' and '.'",
    ),
    "two templates": (
        class_body(proxmox={"template": "a", "templateId": 100}),
        "spec.providers.proxmox",
        "template and templateId exclude each other",
    ),
    "no cores": (
        class_body(proxmox={"cores": 0}),
        "spec.providers.proxmox.cores",
        "spec.providers.proxmox.cores in body should be greater than or equal to 1",
    ),
    "a mount from nowhere": (
        class_body(docker={"extraMounts": [{"containerPath": "/a"}]}),
        "spec.providers.docker.extraMounts[0].hostPath",
        "Required value",
    ),
}


@pytest.mark.parametrize(("body", "field", "message"), BAD_CLASSES.values(), ids=BAD_CLASSES)
def test_a_bad_class_is_refused_with_field_and_reason(http, body, field, message):
    refused(http.post(CLASSES, body, query=DRY), field, message)


# services


def tolerating(**given: str) -> Object:
    return service_body(tolerations=[given])


@pytest.mark.parametrize(
    "body",
    [
        service_body("least"),
        service_body("seed", {"workload-type": "gpu"}, [{"key": "nvidia.com/gpu", "operator": "Exists"}]),
        service_body("everything", {}, [{"operator": "Exists"}]),
        service_body("equal", {}, [{"key": "a", "value": "b", "effect": "NoExecute"}]),
    ],
    ids=lambda body: body["metadata"]["name"],
)
def test_a_good_service_passes(http, body):
    answer = http.post(SERVICES, body, query=DRY)

    assert answer.status == 201, answer.content
    assert answer.json["spec"] == body["spec"]


def test_further_lattice_fields_of_a_service_are_kept(http):
    body = service_body("whole")
    body["spec"]["containers"] = {"main": {"image": "nginx"}}

    assert http.post(SERVICES, body, query=DRY).json["spec"] == body["spec"]


TOLERATION = "spec.placement.tolerations[0]"
BAD_SERVICES = {
    "a selector key": (
        service_body("a", {"a b": "c"}),
        "spec.placement.nodeSelector",
        f"'a b' is no label key: {KEY}",
    ),
    "a selector value": (service_body("a", {"a": "b!"}), "spec.placement.nodeSelector", VALUE),
    "no key": (
        tolerating(value="a"),
        TOLERATION,
        "operator must be Exists if key is empty",
    ),
    "a value that is not looked at": (
        tolerating(key="a", operator="Exists", value="b"),
        TOLERATION,
        "value must be empty if operator is Exists",
    ),
    "an operator": (
        tolerating(key="a", operator="Gt", value="1"),
        f"{TOLERATION}.operator",
        'Unsupported value: "Gt": supported values: "", "Equal", "Exists"',
    ),
    "an effect": (
        tolerating(key="a", effect="Never"),
        f"{TOLERATION}.effect",
        'Unsupported value: "Never": supported values: "", "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ),
}


@pytest.mark.parametrize(("body", "field", "message"), BAD_SERVICES.values(), ids=BAD_SERVICES)
def test_a_bad_service_is_refused_with_field_and_reason(http, body, field, message):
    refused(http.post(SERVICES, body, query=DRY), field, message)


# the example


@pytest.mark.parametrize("file", sorted(path.name for path in EXAMPLE.glob("*.yaml")))
def test_every_manifest_of_the_example_passes(http, file):
    for body in yaml.safe_load_all((EXAMPLE / file).read_text()):
        path = {"LatticeCluster": CLUSTERS, "LatticeNodeClass": CLASSES, "LatticeService": SERVICES}[body["kind"]]
        answer = http.post(path, body, query=DRY)
        assert answer.status == 201, answer.content
