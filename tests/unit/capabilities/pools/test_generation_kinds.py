"""Choice of provider kinds from those that the server serves."""

from __future__ import annotations

from typing import Any

import pytest

from nodeyard.capabilities.pools.planning.generation import (
    InvalidSpec,
    NotServed,
    cluster,
    control_plane_template,
    infrastructure_cluster,
    keep_family,
)
from nodeyard.capabilities.pools.snapshot import Served

from ....builders import pools as build
from ....golden.pools.clusters import AWS, DEV, DOCKER, OLD_PROXMOX, PROXMOX, SERVED


def kinds(served: Served, config: dict[str, Any] = build.DOCKER) -> list[str]:
    lc = build.cluster(config=config)
    made = infrastructure_cluster(lc, served)
    template = control_plane_template(lc, served)
    assert cluster(lc, served)["spec"]["infrastructureRef"]["kind"] == made["kind"]
    return [f"{made['apiVersion'].split('/')[1]} {made['kind']}", template.kind]


def test_the_dev_kinds_go_before_the_docker_kinds_they_replace() -> None:
    assert kinds(Served({**DOCKER, **DEV})) == ["v1beta2 DevCluster", "DevMachineTemplate"]
    assert kinds(Served(DOCKER)) == ["v1beta2 DockerCluster", "DockerMachineTemplate"]


def test_kinds_are_taken_in_pairs() -> None:
    half = {"DevCluster": ("v1beta2",), "DevMachineTemplate": ("v1beta1",)}
    assert kinds(Served({**DOCKER, **half})) == ["v1beta2 DockerCluster", "DockerMachineTemplate"]


@pytest.mark.parametrize(
    ("served", "version"), [(PROXMOX, "v1alpha2"), (OLD_PROXMOX, "v1alpha1")], ids=["both", "the old one"]
)
def test_the_newest_version_that_both_sides_know_is_written(served: dict[str, Any], version: str) -> None:
    assert kinds(Served(served), build.PROXMOX) == [f"{version} ProxmoxCluster", "ProxmoxMachineTemplate"]


def test_a_version_whose_shape_is_unknown_is_not_written() -> None:
    later = {"AWSCluster": ("v1beta3",), "AWSMachineTemplate": ("v1beta3",)}
    with pytest.raises(NotServed):
        kinds(Served(later), build.AWS)


def test_a_cluster_of_docker_kinds_stays_one_while_they_are_served() -> None:
    both = Served({**DOCKER, **DEV, **AWS})
    assert kinds(keep_family(both, "DockerCluster")) == ["v1beta2 DockerCluster", "DockerMachineTemplate"]
    assert kinds(keep_family(both, "DevCluster")) == ["v1beta2 DevCluster", "DevMachineTemplate"]
    assert kinds(keep_family(both, "DockerMachineTemplate"), build.AWS) == ["v1beta2 AWSCluster", "AWSMachineTemplate"]


def test_kinds_that_are_gone_are_not_kept() -> None:
    assert kinds(keep_family(Served(DEV), "DockerCluster")) == ["v1beta2 DevCluster", "DevMachineTemplate"]


@pytest.mark.parametrize("make", [cluster, infrastructure_cluster, control_plane_template])
def test_a_missing_crd_is_named_with_the_remedy(make: Any) -> None:
    with pytest.raises(NotServed) as refused:
        make(build.cluster(), Served(AWS))
    assert refused.value.kind == "DevCluster"
    assert refused.value.message == str(refused.value)
    assert "provider docker" in refused.value.message
    assert "DevCluster and DevMachineTemplate (v1beta2) or DockerCluster" in refused.value.message
    assert "install CAPD" in refused.value.message


@pytest.mark.parametrize(
    "config", [{}, {"openstack": {}}, {**build.AWS, **build.DOCKER}], ids=["none", "openstack", "two"]
)
def test_nothing_is_generated_without_exactly_one_known_provider(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="exactly one provider; supported: aws, docker, proxmox") as refused:
        cluster(build.cluster(config=config), SERVED)
    assert refused.value.field == "spec.provider.config"
