"""Machines that are EC2 instances: CAPA.

Credentials. CAPA reads no Secret beside an AWSCluster: it takes an identity, a cluster-scoped object that an
administrator makes and that names a Secret in CAPA's own namespace and the namespaces that may use it. So
`credentialsSecretRef` is answered with the AWSClusterStaticIdentity of the Secret's name; without it CAPA's own
credentials are used. Nothing here makes an identity: who may spend money on which account is not a cluster's to say.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools.generation.kinds import Choice
from nodeyard.capabilities.pools.generation.metadata import given
from nodeyard.capabilities.pools.generation.unfit import Unfit
from nodeyard.capabilities.pools.types import AwsClass, AwsConfig, LatticeCluster
from nodeyard.kube.json import Object

INSTANCE_TYPE: Final = "t3.medium"
ROOT_VOLUME_GIB: Final = 100
ROOT_VOLUME_TYPE: Final = "gp3"
NODES_PROFILE: Final = "nodes.cluster-api-provider-aws.sigs.k8s.io"
CONTROL_PLANE_PROFILE: Final = "control-plane.cluster-api-provider-aws.sigs.k8s.io"
SMALLEST_VOLUME_GIB: Final = 8


def infrastructure(lc: LatticeCluster, choice: Choice) -> Object:
    """The spec of the AWSCluster. Raises Unfit without a region."""
    config = _config(lc)
    if not config.region:
        raise Unfit("spec.provider.config.aws.region", "spec.provider.config.aws.region is empty; name the AWS region")
    credentials = lc.spec.provider.credentials_secret_ref
    return given(
        region=config.region,
        sshKeyName=config.ssh_key_name,
        identityRef=_identity(credentials.name) if credentials and credentials.name else None,
        network=given(vpc=given(id=config.vpc_id or None), subnets=[{"id": each} for each in config.subnet_ids]),
    )


def control_plane(lc: LatticeCluster) -> Object:
    config = _config(lc)
    return given(
        instanceType=config.cp_instance_type or None,
        rootVolumeSize=_volume(config.cp_root_volume_size, "spec.provider.config.aws.cpRootVolumeSize"),
        ami=config.ami_id or None,
        sshKeyName=config.ssh_key_name,
    )


def worker(lc: LatticeCluster, entry: AwsClass | None) -> Object:
    config, wanted = _config(lc), entry or AwsClass()
    return given(
        instanceType=wanted.instance_type or None,
        rootVolumeSize=_volume(wanted.root_volume_size, "spec.providers.aws.rootVolumeSize"),
        ami=wanted.ami or config.ami_id or None,
        sshKeyName=config.ssh_key_name,
    )


def machine(asked: Object, choice: Choice, is_control_plane: bool) -> Object:
    return given(
        instanceType=asked.get("instanceType", INSTANCE_TYPE),
        iamInstanceProfile=CONTROL_PLANE_PROFILE if is_control_plane else NODES_PROFILE,
        sshKeyName=asked.get("sshKeyName"),
        ami=given(id=asked.get("ami")),
        rootVolume={"size": asked.get("rootVolumeSize", ROOT_VOLUME_GIB), "type": ROOT_VOLUME_TYPE},
    )


def _identity(name: str) -> Object:
    return {"kind": "AWSClusterStaticIdentity", "name": name}


def _volume(gib: int | None, field: str) -> int | None:
    if gib is not None and gib < SMALLEST_VOLUME_GIB:
        raise Unfit(field, f"{field} is {gib}; CAPA takes {SMALLEST_VOLUME_GIB} GiB and more")
    return gib


def _config(lc: LatticeCluster) -> AwsConfig:
    return lc.spec.provider.config.aws or AwsConfig()
