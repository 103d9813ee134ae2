"""Machine specs of each provider, and rejected inputs."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.pools.planning.generation import (
    InvalidSpec,
    bootstrap_template,
    control_plane_template,
    infrastructure_cluster,
    worker_template,
)
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import WorkerPool
from nodeyard.kube.json import Object

from ....builders import pools as build
from ....golden.pools.clusters import OLD_PROXMOX, SERVED


def machine(entry: Object | None, config: Object = build.DOCKER, served: Served = SERVED) -> Object:
    """Return the machine spec of a pool from the class's entry for the provider."""
    provider = next(iter(config))
    node_class = None if entry is None else build.node_class("c", **{provider: entry})
    pool = WorkerPool(node_class="" if entry is None else "c")
    made = worker_template(build.cluster(config=config), "p", pool, node_class, served)
    return made.spec["template"]["spec"]


def unfit(entry: Object, config: Object) -> InvalidSpec:
    with pytest.raises(InvalidSpec) as refused:
        machine(entry, config)
    assert refused.value.message == str(refused.value)
    return refused.value


def proxmox(**changes: Any) -> Object:
    return {"proxmox": {**build.PROXMOX["proxmox"], **changes}}


def test_an_aws_worker_without_a_class_has_the_designs_defaults() -> None:
    assert machine(None, build.AWS) == {
        "instanceType": "t3.medium",
        "iamInstanceProfile": "nodes.cluster-api-provider-aws.sigs.k8s.io",
        "sshKeyName": "ops",
        "ami": {"id": "ami-0123456789abcdef0"},
        "rootVolume": {"size": 100, "type": "gp3"},
    }


def test_an_aws_class_goes_before_the_cluster() -> None:
    made = machine({"instanceType": "m5.large", "ami": "ami-2", "rootVolumeSize": 50}, build.AWS)
    assert (made["instanceType"], made["ami"], made["rootVolume"]["size"]) == ("m5.large", {"id": "ami-2"}, 50)


def test_an_empty_ssh_key_and_a_missing_one_differ() -> None:
    assert machine(None, {"aws": {"region": "r", "sshKeyName": ""}})["sshKeyName"] == ""
    assert "sshKeyName" not in machine(None, {"aws": {"region": "r"}})


def test_an_aws_control_plane_has_its_own_size_and_profile() -> None:
    config = {"aws": {"region": "r", "cpInstanceType": "m5.large", "cpRootVolumeSize": 80}}
    made = control_plane_template(build.cluster(config=config), SERVED).spec["template"]["spec"]
    assert made == {
        "instanceType": "m5.large",
        "iamInstanceProfile": "control-plane.cluster-api-provider-aws.sigs.k8s.io",
        "rootVolume": {"size": 80, "type": "gp3"},
    }


def test_credentials_are_an_identity_on_aws_and_a_secret_on_proxmox() -> None:
    given = {"credentialsSecretRef": {"name": "account"}}
    on_aws, on_proxmox = (
        infrastructure_cluster(build.cluster(config=config, provider=given), SERVED)["spec"]
        for config in (build.AWS, build.PROXMOX)
    )
    assert on_aws["identityRef"] == {"kind": "AWSClusterStaticIdentity", "name": "account"}
    assert on_proxmox["credentialsRef"] == {"name": "account"}


def test_a_docker_machine_has_no_image_unless_one_is_given() -> None:
    assert machine({"memory": "8Gi", "cpus": "2"}) == {"backend": {"docker": {}}}
    assert machine({"image": "a"}, {"docker": {"image": "b"}})["backend"]["docker"] == {"customImage": "a"}
    assert machine({}, {"docker": {"image": "b"}})["backend"]["docker"] == {"customImage": "b"}


@pytest.mark.parametrize(
    ("memory", "mib"),
    [("16Gi", 16384), ("8000Mi", 8000), ("8001Mi", 8008), ("1G", 960), ("2147483648", 2048)],
)
def test_memory_becomes_a_multiple_of_eight_mib(memory: str, mib: int) -> None:
    assert machine({"memory": memory}, build.PROXMOX)["memoryMiB"] == mib


def test_a_vm_is_cloned_by_id_from_a_host_or_by_tag_from_wherever_it_is() -> None:
    by_tag = machine({"template": "ubuntu-22.04"}, build.PROXMOX)
    assert by_tag["templateSelector"] == {"matchTags": ["ubuntu-22.04"]}
    assert not {"sourceNode", "templateID"} & set(by_tag)
    by_id = machine({"templateId": 7}, build.PROXMOX)
    assert (by_id["sourceNode"], by_id["templateID"]) == ("pve1", 7)
    assert "templateSelector" not in by_id


def test_both_shapes_of_a_proxmox_network_have_the_same_bridge() -> None:
    new = machine(None, proxmox(bridge="vmbr7"))["network"]
    old = machine(None, proxmox(bridge="vmbr7"), Served(OLD_PROXMOX))["network"]
    assert new["networkDevices"][0]["bridge"] == old["default"]["bridge"] == "vmbr7"
    assert machine(None, build.PROXMOX)["network"]["networkDevices"][0]["bridge"] == "vmbr0"


@pytest.mark.parametrize(
    ("entry", "config", "field", "words"),
    [
        ({"memory": "lots"}, build.PROXMOX, "spec.providers.proxmox.memory", '"lots"'),
        ({"memory": "16384"}, build.PROXMOX, "spec.providers.proxmox.memory", "16384 bytes; use a quantity such as"),
        ({"memory": "-1Gi"}, build.PROXMOX, "spec.providers.proxmox.memory", '"-1Gi"'),
        ({"template": "a", "templateId": 1}, build.PROXMOX, "spec.providers.proxmox", "keep one"),
        ({}, proxmox(templateId=None), "spec.provider.config.proxmox.templateId", "no VM template is set"),
        ({}, proxmox(sourceNode=""), "spec.provider.config.proxmox.sourceNode", "template 9000 has no source node"),
        ({}, proxmox(workerMemoryMib=0), "spec.provider.config.proxmox.workerMemoryMib", "positive"),
        ({"rootVolumeSize": 4}, build.AWS, "spec.providers.aws.rootVolumeSize", "is 4"),
    ],
)
def test_unsupported_settings_are_refused_with_field_and_value(
    entry: Object, config: Object, field: str, words: str
) -> None:
    refusal = unfit(entry, config)
    assert refusal.field == field
    assert words in refusal.message


def test_a_class_without_an_entry_for_the_provider_is_unfit() -> None:
    node_class = build.node_class("c", aws={})
    with pytest.raises(InvalidSpec, match='"c" has no entry for docker') as refused:
        worker_template(build.cluster(), "p", WorkerPool(node_class="c"), node_class, SERVED)
    assert refused.value.field == "spec.providers.docker"


def test_a_missing_class_is_not_replaced_by_the_default() -> None:
    with pytest.raises(InvalidSpec, match='LatticeNodeClass "c" does not exist'):
        worker_template(build.cluster(), "p", WorkerPool(node_class="c"), None, SERVED)


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({"aws": {}}, "aws.region"),
        (proxmox(dnsServers=[]), "proxmox.dnsServers"),
        (proxmox(ipv4Addresses=[]), "proxmox.ipv4Addresses"),
        (proxmox(ipv4Gateway=""), "proxmox.ipv4Gateway"),
    ],
)
def test_an_infrastructure_without_what_it_needs_is_refused(config: Object, missing: str) -> None:
    with pytest.raises(InvalidSpec, match="is empty") as refused:
        infrastructure_cluster(build.cluster(config=config), SERVED)
    assert refused.value.field == f"spec.provider.config.{missing}"


@pytest.mark.parametrize(
    ("config", "arguments"),
    [
        (build.DOCKER, ["node-labels"]),
        (build.AWS, ["cloud-provider", "node-labels"]),
        (build.PROXMOX, ["provider-id", "node-labels"]),
    ],
    ids=["docker", "aws", "proxmox"],
)
def test_kubelets_get_the_arguments_that_cluster_api_needs(config: Object, arguments: list[str]) -> None:
    made = bootstrap_template(build.cluster(config=config), "p", WorkerPool())
    joining = made.spec["template"]["spec"]["joinConfiguration"]["nodeRegistration"]
    assert [each["name"] for each in joining["kubeletExtraArgs"]] == arguments
    assert "register-with-taints" not in arguments
    assert "taints" not in joining
