"""Machines that are containers on one host: CAPD, for development.

A class may give memory and CPUs; CAPD has no such settings, so they are left out, and a change of them is no change.
Without an image CAPD takes the one of the Kubernetes version, which a fixed image would contradict.
"""

from __future__ import annotations

from nodeyard.capabilities.pools.generation.kinds import Choice, is_docker
from nodeyard.capabilities.pools.generation.metadata import given
from nodeyard.capabilities.pools.types import DockerClass, DockerConfig, LatticeCluster, Mount
from nodeyard.kube.json import Object


def infrastructure(lc: LatticeCluster, choice: Choice) -> Object:
    """The spec of the DevCluster or DockerCluster: nothing but that it is Docker."""
    return {} if is_docker(choice) else {"backend": {"docker": {}}}


def control_plane(lc: LatticeCluster) -> Object:
    return given(image=_config(lc).image or None)


def worker(lc: LatticeCluster, entry: DockerClass | None) -> Object:
    wanted = entry or DockerClass()
    return given(
        image=wanted.image or _config(lc).image or None,
        extraMounts=[_mount(each) for each in wanted.extra_mounts],
    )


def machine(asked: Object, choice: Choice, is_control_plane: bool) -> Object:
    container = given(customImage=asked.get("image"), extraMounts=asked.get("extraMounts"))
    return container if is_docker(choice) else {"backend": {"docker": container}}


def _mount(mount: Mount) -> Object:
    return given(containerPath=mount.container_path, hostPath=mount.host_path, readOnly=mount.read_only or None)


def _config(lc: LatticeCluster) -> DockerConfig:
    return lc.spec.provider.config.docker or DockerConfig()
