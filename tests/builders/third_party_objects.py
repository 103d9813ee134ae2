"""Objects of other projects' kinds: valid ones, and invalid ones with one fault each.

`SAMPLES` are decided by CRDs alone. `REFUSED_BY_WEBHOOKS` are denied by the projects' own webhooks, and by CEL rules of
our stand-in CRDs.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

CORE = "cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io/v1beta2"
PROXMOX = "infrastructure.cluster.x-k8s.io/v1alpha2"
FLUX = "helm.toolkit.fluxcd.io/v2"
NAMESPACE = "foreign"
ABSENT = object()


@dataclass(frozen=True)
class Sample:
    name: str
    object: dict[str, Any]
    fits: bool

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def obj(api_version: str, kind: str, spec: dict[str, Any], name: str = "sample") -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def changed(base: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return the object with one field set or removed; numbers in the path are list indexes."""
    made = copy.deepcopy(base)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    place: Any = made
    for step in steps:
        place = place[step] if isinstance(step, int) else place.setdefault(step, {})
    if value is ABSENT:
        del place[last]
    else:
        place[last] = value
    return made


def reference(group: str, kind: str) -> dict[str, str]:
    return {"apiGroup": group, "kind": kind, "name": "c-pool-p"}


CLUSTER = obj(
    CORE,
    "Cluster",
    {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}},
        "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
        "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "DockerCluster"),
    },
)

MACHINE_SPEC = {
    "clusterName": "c",
    "version": "v1.32.0",
    "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate")},
    "infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "DockerMachineTemplate"),
    "deletion": {"nodeDrainTimeoutSeconds": 300, "nodeVolumeDetachTimeoutSeconds": 300},
}
LABELS = {"cluster.x-k8s.io/cluster-name": "c", "cluster.x-k8s.io/deployment-name": "c-pool-p"}
POOL = {
    "clusterName": "c",
    "replicas": 0,
    "selector": {"matchLabels": LABELS},
    "template": {"metadata": {"labels": LABELS}, "spec": MACHINE_SPEC},
}
DEPLOYMENT = obj(
    CORE,
    "MachineDeployment",
    {
        **POOL,
        "rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "10%"}}},
    },
)
MACHINE_SET = obj(CORE, "MachineSet", POOL)
MACHINE = obj(CORE, "Machine", MACHINE_SPEC)
CONFIG = obj(
    BOOTSTRAP,
    "KubeadmConfigTemplate",
    {
        "template": {
            "spec": {
                "joinConfiguration": {
                    "nodeRegistration": {
                        "kubeletExtraArgs": [{"name": "node-labels", "value": "lattice.dev/pool=gpu"}],
                        "taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
                    }
                }
            }
        }
    },
)
REGISTRATION = "spec.template.spec.joinConfiguration.nodeRegistration"
CONTROL = obj(
    CONTROL_PLANE,
    "KubeadmControlPlane",
    {
        "replicas": 3,
        "version": "v1.32.0",
        "machineTemplate": {
            "spec": {"infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "DockerMachineTemplate")}
        },
        "kubeadmConfigSpec": {
            "clusterConfiguration": {"apiServer": {"certSANs": ["localhost"]}},
            "initConfiguration": {
                "nodeRegistration": {"kubeletExtraArgs": [{"name": "eviction-hard", "value": "nodefs.available<0%"}]}
            },
        },
    },
)
DOCKER_CLUSTER = obj(INFRASTRUCTURE, "DockerCluster", {})
DOCKER = obj(
    INFRASTRUCTURE, "DockerMachineTemplate", {"template": {"spec": {"customImage": "node:v1.32.0", "extraMounts": []}}}
)
DEV_CLUSTER = obj(INFRASTRUCTURE, "DevCluster", {"backend": {"inMemory": {}}})
DEV = obj(
    INFRASTRUCTURE,
    "DevMachineTemplate",
    {"template": {"spec": {"backend": {"docker": {"customImage": "node:v1.32.0"}}}}},
)
AWS_CLUSTER = obj(INFRASTRUCTURE, "AWSCluster", {"region": "eu-central-1", "sshKeyName": "k"})
AWS = obj(
    INFRASTRUCTURE,
    "AWSMachineTemplate",
    {
        "template": {
            "spec": {
                "instanceType": "t3.medium",
                "iamInstanceProfile": "nodes",
                "ami": {"id": "ami-1"},
                "rootVolume": {"size": 100, "type": "gp3"},
            }
        }
    },
)
PROXMOX_CLUSTER = obj(
    PROXMOX,
    "ProxmoxCluster",
    {
        "dnsServers": ["10.0.0.1"],
        "ipv4Config": {"addresses": ["10.0.0.10-10.0.0.20"], "gateway": "10.0.0.1", "prefix": 24},
    },
)
PROXMOX_TEMPLATE = obj(
    PROXMOX,
    "ProxmoxMachineTemplate",
    {
        "template": {
            "spec": {
                "sourceNode": "pve1",
                "templateID": 9000,
                "numCores": 4,
                "memoryMiB": 16384,
                "network": {
                    "networkDevices": [{"name": "net0", "bridge": "vmbr0", "model": "virtio", "defaultIPv4": True}]
                },
            }
        }
    },
)
RELEASE = obj(
    FLUX,
    "HelmRelease",
    {
        "interval": "5m",
        "chartRef": {"kind": "ExternalArtifact", "name": "postgres", "namespace": "cozy-system"},
        "values": {"replicas": 2, "_scheduling": {"nodeSelector": {"zone": "a"}}},
        "valuesFrom": [{"kind": "Secret", "name": "cozystack-values"}],
        "install": {"timeout": "5m", "strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}},
        "upgrade": {"strategy": {"name": "RetryOnFailure", "retryInterval": "30s"}, "disableWait": True},
        "maxHistory": 5,
    },
)

GOOD = {
    "a cluster": CLUSTER,
    "a machine deployment": DEPLOYMENT,
    "a machine deployment without replicas": changed(DEPLOYMENT, "spec.replicas", ABSENT),
    "a machine deployment with an empty selector": changed(DEPLOYMENT, "spec.selector", {"matchLabels": {}}),
    "a machine deployment without a selector": changed(DEPLOYMENT, "spec.selector", ABSENT),
    "a machine set": MACHINE_SET,
    "a machine": MACHINE,
    "a machine with a data secret": changed(MACHINE, "spec.bootstrap", {"dataSecretName": "data"}),
    "a kubeadm template": CONFIG,
    "a kubeadm template with a taint without value": changed(
        CONFIG, f"{REGISTRATION}.taints", [{"key": "a", "effect": "NoSchedule", "value": ""}]
    ),
    "a kubeadm template without taints": changed(CONFIG, f"{REGISTRATION}.taints", []),
    "a control plane": CONTROL,
    "a control plane without kubeadm": changed(CONTROL, "spec.kubeadmConfigSpec", ABSENT),
    "a docker cluster": DOCKER_CLUSTER,
    "a docker template": DOCKER,
    "a dev cluster": DEV_CLUSTER,
    "a dev template": DEV,
    "an aws cluster": AWS_CLUSTER,
    "an aws template": AWS,
    "a proxmox cluster": PROXMOX_CLUSTER,
    "a proxmox template": PROXMOX_TEMPLATE,
    "a proxmox template by tags": changed(
        changed(PROXMOX_TEMPLATE, "spec.template.spec.templateID", ABSENT),
        "spec.template.spec.templateSelector",
        {"matchTags": ["ubuntu-22.04"]},
    ),
    "a release": RELEASE,
    "a release of a chart in a repository": changed(
        changed(RELEASE, "spec.chartRef", ABSENT),
        "spec.chart",
        {"spec": {"chart": "redis", "sourceRef": {"kind": "HelmRepository", "name": "r"}}},
    ),
}

BAD = {
    "a cluster with an empty spec": {**CLUSTER, "spec": {}},
    "a cluster without ranges": changed(CLUSTER, "spec.clusterNetwork.pods", {}),
    "a cluster whose reference has a version": changed(
        CLUSTER, "spec.controlPlaneRef", {"apiVersion": CONTROL_PLANE, "kind": "KubeadmControlPlane", "name": "c"}
    ),
    "a deployment whose reference has no group": changed(
        DEPLOYMENT, "spec.template.spec.infrastructureRef.apiGroup", ABSENT
    ),
    "a deployment whose reference has a version": changed(
        DEPLOYMENT, "spec.template.spec.bootstrap.configRef.apiVersion", "bootstrap.cluster.x-k8s.io/v1beta2"
    ),
    "a deployment with the old drain timeout": changed(DEPLOYMENT, "spec.template.spec.nodeDrainTimeout", "300s"),
    "a deployment with a long cluster name": changed(DEPLOYMENT, "spec.clusterName", "c" * 64),
    "a deployment without a bootstrap": changed(DEPLOYMENT, "spec.template.spec.bootstrap", ABSENT),
    "a deployment with no deletion settings": changed(DEPLOYMENT, "spec.template.spec.deletion", {}),
    "a deployment with a negative drain timeout": changed(
        DEPLOYMENT, "spec.template.spec.deletion.nodeDrainTimeoutSeconds", -1
    ),
    "a deployment with an empty taint list": changed(DEPLOYMENT, "spec.template.spec.taints", []),
    "a deployment with a taint without propagation": changed(
        DEPLOYMENT, "spec.template.spec.taints", [{"key": "a", "effect": "NoSchedule"}]
    ),
    "a deployment with a taint of empty value": changed(
        DEPLOYMENT,
        "spec.template.spec.taints",
        [{"key": "a", "effect": "NoSchedule", "propagation": "Always", "value": ""}],
    ),
    "a deployment with an unknown strategy": changed(DEPLOYMENT, "spec.rollout.strategy.type", "Recreate"),
    "a deployment with an unknown field": changed(DEPLOYMENT, "spec.strategy", {"type": "RollingUpdate"}),
    "a machine set without a template": changed(MACHINE_SET, "spec.template", ABSENT),
    "a machine without infrastructure": changed(MACHINE, "spec.infrastructureRef", ABSENT),
    "a kubeadm template whose arguments are a map": changed(
        CONFIG, f"{REGISTRATION}.kubeletExtraArgs", {"node-labels": "a=b"}
    ),
    "a kubeadm template with no arguments": changed(CONFIG, f"{REGISTRATION}.kubeletExtraArgs", []),
    "a kubeadm template with an argument twice": changed(
        CONFIG, f"{REGISTRATION}.kubeletExtraArgs", [{"name": "v", "value": "1"}, {"name": "v", "value": "2"}]
    ),
    "a kubeadm template with a long argument": changed(
        CONFIG, f"{REGISTRATION}.kubeletExtraArgs", [{"name": "node-labels", "value": "a" * 1025}]
    ),
    "a kubeadm template with an empty registration": changed(CONFIG, REGISTRATION, {}),
    "a kubeadm template with an empty spec": changed(CONFIG, "spec.template.spec", {}),
    "a control plane with the old infrastructure reference": changed(
        CONTROL, "spec.machineTemplate", {"infrastructureRef": reference("infrastructure.cluster.x-k8s.io", "X")}
    ),
    "a control plane with an empty kubeadm": changed(CONTROL, "spec.kubeadmConfigSpec", {}),
    "a control plane without a version": changed(CONTROL, "spec.version", ABSENT),
    "a docker template with cpus": changed(DOCKER, "spec.template.spec.cpus", 4),
    "a docker template without a template": {**DOCKER, "spec": {}},
    "a dev template without a backend": changed(DEV, "spec.template.spec", {}),
    "an aws template without a size": changed(AWS, "spec.template.spec.instanceType", ABSENT),
    "an aws template with a short size": changed(AWS, "spec.template.spec.instanceType", "t"),
    "an aws template with a small disk": changed(AWS, "spec.template.spec.rootVolume.size", 7),
    "an aws cluster of an unknown identity": changed(AWS_CLUSTER, "spec.identityRef", {"kind": "Me", "name": "x"}),
    "a proxmox template without a network": changed(PROXMOX_TEMPLATE, "spec.template.spec.network", ABSENT),
    "a proxmox template with the old network": changed(
        PROXMOX_TEMPLATE, "spec.template.spec.network", {"default": {"bridge": "vmbr0", "model": "virtio"}}
    ),
    "a proxmox template with odd memory": changed(PROXMOX_TEMPLATE, "spec.template.spec.memoryMiB", 1001),
    "a proxmox template with raw names": changed(PROXMOX_TEMPLATE, "spec.template.spec.cores", 4),
    "a proxmox template of no template": changed(PROXMOX_TEMPLATE, "spec.template.spec.templateID", ABSENT),
    "a proxmox template with a bad card": changed(
        PROXMOX_TEMPLATE, "spec.template.spec.network.networkDevices.0.name", "eth0"
    ),
    "a proxmox template with a small disk": changed(
        PROXMOX_TEMPLATE, "spec.template.spec.disks", {"bootVolume": {"disk": "scsi0", "sizeGb": 4}}
    ),
    "a proxmox cluster without addresses": changed(PROXMOX_CLUSTER, "spec.ipv4Config", ABSENT),
    "a release without an interval": changed(RELEASE, "spec.interval", ABSENT),
    "a release with a strange interval": changed(RELEASE, "spec.interval", "5 minutes"),
    "a release without a chart": changed(RELEASE, "spec.chartRef", ABSENT),
    "a release with two charts": changed(
        RELEASE, "spec.chart", {"spec": {"chart": "redis", "sourceRef": {"kind": "HelmRepository", "name": "r"}}}
    ),
    "a release of an unknown chart kind": changed(RELEASE, "spec.chartRef.kind", "GitRepository"),
    "a release with a long name": changed(RELEASE, "spec.releaseName", "r" * 54),
    "a release with values from nowhere": changed(RELEASE, "spec.valuesFrom.0.kind", "Pod"),
    "a release that remediates with an interval": changed(
        RELEASE, "spec.upgrade.strategy", {"name": "RemediateOnFailure", "retryInterval": "30s"}
    ),
    "a release with an unknown field": changed(RELEASE, "spec.chartreF", {}),
}

SAMPLES = [
    *(Sample(name, made, True) for name, made in GOOD.items()),
    *(Sample(name, made, False) for name, made in BAD.items()),
]

LONG_NAME = "p" * 64
REFUSED_BY_WEBHOOKS = {
    "a deployment with a long name": changed(DEPLOYMENT, "metadata.name", LONG_NAME),
    "a deployment of two clusters": changed(DEPLOYMENT, "spec.template.spec.clusterName", "other"),
    "a deployment with half a version": changed(DEPLOYMENT, "spec.template.spec.version", "v1.32"),
    "a cluster with a long name": changed(CLUSTER, "metadata.name", LONG_NAME),
}
IMMUTABLE = {
    "a docker template": (DOCKER, "spec.template.spec.customImage", "node:v1.33.0"),
    "a dev template": (DEV, "spec.template.spec.backend.docker.customImage", "node:v1.33.0"),
    "an aws template": (AWS, "spec.template.spec.instanceType", "t3.large"),
}
