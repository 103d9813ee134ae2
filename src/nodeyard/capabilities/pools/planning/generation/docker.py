"""Machines as containers on one host with CAPD, for development.

CAPD has no settings for memory and CPUs, so those of a class are ignored and changing them has no effect. Without an
image CAPD uses the image of the Kubernetes version; a fixed default image would contradict the version.
"""

from __future__ import annotations

from nodeyard.capabilities.pools.planning.generation.kinds import Choice, is_docker
from nodeyard.capabilities.pools.planning.generation.metadata import drop_empty
from nodeyard.capabilities.pools.types import DockerClass, DockerConfig, LatticeCluster, Mount
from nodeyard.kube.json import Object


def infrastructure(lc: LatticeCluster, choice: Choice) -> Object:
    """Return the spec of the DevCluster or DockerCluster: only the backend."""
    return {} if is_docker(choice) else {"backend": {"docker": {}}}


def control_plane(lc: LatticeCluster) -> Object:
    return drop_empty(image=_config(lc).image or None)


def worker(lc: LatticeCluster, entry: DockerClass | None) -> Object:
    wanted = entry or DockerClass()
    return drop_empty(
        image=wanted.image or _config(lc).image or None,
        extraMounts=[_mount(each) for each in wanted.extra_mounts],
    )


def machine(inputs: Object, choice: Choice, is_control_plane: bool) -> Object:
    container = drop_empty(customImage=inputs.get("image"), extraMounts=inputs.get("extraMounts"))
    return container if is_docker(choice) else {"backend": {"docker": container}}


def _mount(mount: Mount) -> Object:
    return drop_empty(containerPath=mount.container_path, hostPath=mount.host_path, readOnly=mount.read_only or None)


def _config(lc: LatticeCluster) -> DockerConfig:
    return lc.spec.provider.config.docker or DockerConfig()
