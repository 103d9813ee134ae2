"""Example clusters for the golden files; each is named after what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from nodeyard.capabilities.pools import names
from nodeyard.capabilities.pools.planning import generation
from nodeyard.capabilities.pools.planning.generation import Template
from nodeyard.capabilities.pools.snapshot import Served
from nodeyard.capabilities.pools.types import LatticeCluster, LatticeNodeClass, WorkerPool, resolved_pools
from nodeyard.kube.json import Object

from ...builders import pools as build

DEV = {"DevCluster": ("v1beta2", "v1beta1"), "DevMachineTemplate": ("v1beta2", "v1beta1")}
DOCKER = {"DockerCluster": ("v1beta2", "v1beta1"), "DockerMachineTemplate": ("v1beta2", "v1beta1")}
AWS = {"AWSCluster": ("v1beta2",), "AWSMachineTemplate": ("v1beta2",)}
PROXMOX = {"ProxmoxCluster": ("v1alpha2", "v1alpha1"), "ProxmoxMachineTemplate": ("v1alpha2", "v1alpha1")}
OLD_PROXMOX = {"ProxmoxCluster": ("v1alpha1",), "ProxmoxMachineTemplate": ("v1alpha1",)}
SERVED = Served({**DEV, **DOCKER, **AWS, **PROXMOX})


@dataclass(frozen=True)
class Golden:
    cluster: LatticeCluster
    classes: dict[str, LatticeNodeClass] = field(default_factory=dict)
    served: Served = SERVED
    is_adopted: bool = False
    """Its pool `default` is a legacy MachineDeployment."""

    @property
    def name(self) -> str:
        return self.cluster.name

    def templates(self) -> list[Template]:
        return [self._control_plane(), *(each for pool in self._pools() for each in self._pool_templates(*pool))]

    def objects(self) -> Iterator[Object]:
        lc, control_plane = self.cluster, self._control_plane()
        yield generation.namespace(lc)
        yield generation.infrastructure_cluster(lc, self.served)
        yield generation.cluster(lc, self.served)
        yield control_plane.render(lc)
        yield generation.control_plane(lc, control_plane.name, control_plane.kind, lc.version)
        for pool_id, pool in self._pools():
            machines, bootstrap = self._pool_templates(pool_id, pool)
            yield machines.render(lc)
            yield bootstrap.render(lc)
            yield self._deployment(pool_id, pool, machines, bootstrap)

    def _pools(self) -> list[tuple[str, WorkerPool]]:
        return list(resolved_pools(self.cluster.spec.nodes).items())

    def _control_plane(self) -> Template:
        return generation.control_plane_template(self.cluster, self.served)

    def _pool_templates(self, pool_id: str, pool: WorkerPool) -> tuple[Template, Template]:
        node_class = self.classes.get(pool.node_class)
        return (
            generation.worker_template(self.cluster, pool_id, pool, node_class, self.served),
            generation.bootstrap_template(self.cluster, pool_id, pool),
        )

    def _deployment(self, pool_id: str, pool: WorkerPool, machines: Template, bootstrap: Template) -> Object:
        lc = self.cluster
        legacy = {"matchLabels": {names.CLUSTER_NAME_LABEL: self.name, "workers": "all"}}
        return generation.machine_deployment(
            lc,
            pool_id,
            pool,
            name=names.legacy_deployment(lc.name) if self.is_adopted else names.deployment(lc.name, pool_id),
            bootstrap=bootstrap.name,
            infrastructure_kind=machines.kind,
            infrastructure=machines.name,
            version=lc.version,
            replicas=0,
            selector=legacy if self.is_adopted else None,
            node_class=self.classes.get(pool.node_class),
        )


def _golden(cluster: LatticeCluster, *classes: LatticeNodeClass, **given: Any) -> Golden:
    return Golden(cluster, {each.metadata.name: each for each in classes}, **given)


def _sized(node_class: LatticeNodeClass, **resources: int) -> LatticeNodeClass:
    return msgspec.structs.replace(node_class, spec=msgspec.structs.replace(node_class.spec, resources=resources))


MEDIUM = build.node_class("medium", docker={"image": "kindest/node:v1.32.0"}, aws={"instanceType": "m5.xlarge"})
GPU_LARGE = build.node_class(
    "gpu-large",
    docker={
        "image": "example.org/node-gpu:v1.32.0",
        "extraMounts": [
            {"hostPath": "/dev/nvidia0", "containerPath": "/dev/nvidia0"},
            {"hostPath": "/opt/models", "containerPath": "/models", "readOnly": True},
        ],
    },
    aws={"instanceType": "p4d.24xlarge", "ami": "ami-0fedcba9876543210", "rootVolumeSize": 500},
)
MEMORY_OPTIMIZED = build.node_class("memory-optimized", docker={"memory": "64Gi", "cpus": "8"}, aws={})
SEED_CLASSES = (MEDIUM, GPU_LARGE, MEMORY_OPTIMIZED)

PROXMOX_CONFIG: Object = {
    "proxmox": {
        **build.PROXMOX["proxmox"],
        "storage": "ceph",
        "bridge": "vmbr1",
        "allowedNodes": ["pve1", "pve2"],
        "ipv4Prefix": 23,
        "cpSockets": 1,
        "cpCores": 4,
        "cpMemoryMib": 8190,
        "cpDiskSizeGb": 60,
        "workerCores": 8,
        "workerMemoryMib": 16384,
        "workerDiskSizeGb": 120,
    }
}
PROXMOX_POOLS: Object = {
    "big": build.pool(2, nodeClass="big"),
    "plain": build.pool(2),
    "tagged": build.pool(1, nodeClass="tagged"),
}
PROXMOX_CLASSES = (
    build.node_class(
        "big", proxmox={"sockets": 2, "cores": 16, "memory": "65G", "templateId": 9001, "diskSizeGb": 400}
    ),
    build.node_class("tagged", proxmox={"memory": "8Gi", "template": "ubuntu-22.04"}),
)
CREDENTIALS: Object = {"credentialsSecretRef": {"name": "account", "namespace": "accounts"}}

_GOLDEN = [
    _golden(build.cluster("docker-seed", controlPlane=3, workerPools=build.SEED_POOLS), *SEED_CLASSES),
    _golden(
        build.cluster("docker-kinds", controlPlane=3, workerPools=build.SEED_POOLS),
        *SEED_CLASSES,
        served=Served(DOCKER),
    ),
    _golden(build.cluster("docker-image", config={"docker": {"image": "example.org/node:7"}}, workers=1)),
    _golden(build.cluster("legacy-workers", controlPlane=3, workers=5)),
    _golden(build.cluster("legacy-adopted", controlPlane=1, workers=5), is_adopted=True),
    _golden(build.cluster("aws-plain", config={"aws": {"region": "eu-central-1"}}, controlPlane=3, workers=2)),
    _golden(
        build.cluster(
            "aws-classes",
            config={
                "aws": {
                    **build.AWS["aws"],
                    "vpcId": "vpc-1",
                    "subnetIds": ["subnet-a", "subnet-b"],
                    "cpInstanceType": "m5.large",
                    "cpRootVolumeSize": 80,
                }
            },
            provider=CREDENTIALS,
            controlPlane=3,
            workerPools=build.SEED_POOLS,
        ),
        *SEED_CLASSES,
    ),
    _golden(build.cluster("aws-no-key", config={"aws": {"region": "eu-west-1", "sshKeyName": ""}}, workers=1)),
    _golden(
        build.cluster(
            "proxmox", config=PROXMOX_CONFIG, provider=CREDENTIALS, controlPlane=3, workerPools=PROXMOX_POOLS
        ),
        *PROXMOX_CLASSES,
    ),
    _golden(build.cluster("proxmox-plain", config=build.PROXMOX, workers=1)),
    _golden(
        build.cluster(
            "proxmox-v1alpha1", config=PROXMOX_CONFIG, provider=CREDENTIALS, controlPlane=3, workerPools=PROXMOX_POOLS
        ),
        *PROXMOX_CLASSES,
        served=Served(OLD_PROXMOX),
    ),
    _golden(
        build.cluster(
            "autoscaled",
            autoscaling="ClusterAutoscaler",
            workerPools={
                "burst": build.pool(
                    0, min=0, max=20, nodeClass="sized", labels={"tier": "burst"}, taints=["burst=yes:NoSchedule"]
                ),
                "fixed": build.pool(2, nodeClass="sized"),
            },
        ),
        _sized(build.node_class("sized"), cores=8, memoryGi=32, storageGi=200),
    ),
    _golden(build.cluster("bounds-ignored", workerPools={"general": build.pool(5, min=3, max=10)})),
    _golden(
        build.cluster(
            "every-route",
            workerPools={
                "mixed": build.pool(
                    2,
                    labels={
                        "node-role.kubernetes.io/storage": "",
                        "node-restriction.kubernetes.io/zone": "a",
                        "team.node-restriction.kubernetes.io/owner": "db",
                        "node.cluster.x-k8s.io/tier": "gold",
                        "rack.node.cluster.x-k8s.io/row": "7",
                        "workload-type": "storage",
                        "example.org/disk": "nvme",
                        "topology.kubernetes.io/zone": "zone-1",
                        "node.kubernetes.io/instance-type": "large",
                    },
                    taints=["storage=only:NoSchedule", "busy:PreferNoSchedule", "busy=very:NoExecute"],
                )
            },
        )
    ),
    _golden(
        build.cluster(
            "dual-stack",
            provider={
                "kubernetes": {"version": "v1.33.1", "certSANs": ["api.example.org", "fd00::1"], "bootstrap": "kubeadm"}
            },
            networking={
                "podCIDRs": ["10.244.0.0/16", "fd00:10:244::/56"],
                "serviceCIDRs": ["10.96.0.0/16", "fd00:10:96::/112"],
                "serviceDomain": "k8s.example.org",
            },
            poolDrainTimeout=0,
            workers=1,
        )
    ),
    _golden(
        build.cluster("forced", poolDrainTimeout=60, poolDeletionPolicy="Force", workerPools={"old": build.pool(2)}),
    ),
]
GOLDEN = {each.name: each for each in _GOLDEN}
