"""Machines on AWS with CAPA.

CAPA reads no Secret next to an AWSCluster. It uses an identity: a cluster-scoped object that an administrator creates,
with a Secret in CAPA's own namespace and the namespaces that may use it. So `credentialsSecretRef` becomes a reference
to the AWSClusterStaticIdentity with the Secret's name; without it CAPA uses its own credentials. Nodeyard creates no
identity: a cluster must not grant itself access to an AWS account.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools.planning.generation.kinds import Choice, InvalidSpec
from nodeyard.capabilities.pools.planning.generation.metadata import drop_empty
from nodeyard.capabilities.pools.types import AwsClass, AwsConfig, LatticeCluster
from nodeyard.kube.json import Object

INSTANCE_TYPE: Final = "t3.medium"
ROOT_VOLUME_GIB: Final = 100
ROOT_VOLUME_TYPE: Final = "gp3"
NODES_PROFILE: Final = "nodes.cluster-api-provider-aws.sigs.k8s.io"
CONTROL_PLANE_PROFILE: Final = "control-plane.cluster-api-provider-aws.sigs.k8s.io"
SMALLEST_VOLUME_GIB: Final = 8


def infrastructure(lc: LatticeCluster, choice: Choice) -> Object:
    """Return the spec of the AWSCluster. Raises InvalidSpec without a region."""
    config = _config(lc)
    if not config.region:
        raise InvalidSpec(
            "spec.provider.config.aws.region", "spec.provider.config.aws.region is empty; set the AWS region"
        )
    credentials = lc.spec.provider.credentials_secret_ref
    return drop_empty(
        region=config.region,
        sshKeyName=config.ssh_key_name,
        identityRef={"kind": "AWSClusterStaticIdentity", "name": credentials.name}
        if credentials and credentials.name
        else None,
        network=drop_empty(
            vpc=drop_empty(id=config.vpc_id or None), subnets=[{"id": each} for each in config.subnet_ids]
        ),
    )


def control_plane(lc: LatticeCluster) -> Object:
    config = _config(lc)
    return drop_empty(
        instanceType=config.cp_instance_type or None,
        rootVolumeSize=_volume(config.cp_root_volume_size, "spec.provider.config.aws.cpRootVolumeSize"),
        ami=config.ami_id or None,
        sshKeyName=config.ssh_key_name,
    )


def worker(lc: LatticeCluster, entry: AwsClass | None) -> Object:
    config, wanted = _config(lc), entry or AwsClass()
    return drop_empty(
        instanceType=wanted.instance_type or None,
        rootVolumeSize=_volume(wanted.root_volume_size, "spec.providers.aws.rootVolumeSize"),
        ami=wanted.ami or config.ami_id or None,
        sshKeyName=config.ssh_key_name,
    )


def machine(inputs: Object, choice: Choice, is_control_plane: bool) -> Object:
    return drop_empty(
        instanceType=inputs.get("instanceType", INSTANCE_TYPE),
        iamInstanceProfile=CONTROL_PLANE_PROFILE if is_control_plane else NODES_PROFILE,
        sshKeyName=inputs.get("sshKeyName"),
        ami=drop_empty(id=inputs.get("ami")),
        rootVolume={"size": inputs.get("rootVolumeSize", ROOT_VOLUME_GIB), "type": ROOT_VOLUME_TYPE},
    )


def _volume(gib: int | None, field: str) -> int | None:
    if gib is not None and gib < SMALLEST_VOLUME_GIB:
        raise InvalidSpec(field, f"{field} is {gib}; CAPA requires at least {SMALLEST_VOLUME_GIB} GiB")
    return gib


def _config(lc: LatticeCluster) -> AwsConfig:
    return lc.spec.provider.config.aws or AwsConfig()
