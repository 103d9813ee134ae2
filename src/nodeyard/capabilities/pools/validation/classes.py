"""Validation of LatticeNodeClass: at least one provider entry, within the provider's limits."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools.types import PROVIDERS
from nodeyard.capabilities.pools.validation.providers import AMI, INSTANCE, count, text
from nodeyard.kube.json import Object
from nodeyard.schema.rules import CONDITIONS, checks, rule

NODE_CLASS: Final[dict[str, Object]] = {
    "": {"required": ["spec"]},
    "spec": {"required": ["providers"]},
    "spec.providers": checks(
        rule(
            " || ".join(f"has(self.{each})" for each in PROVIDERS),
            "must set at least one of aws, docker and proxmox",
        )
    ),
    "spec.providers.aws.instanceType": INSTANCE,
    "spec.providers.aws.ami": AMI,
    "spec.providers.aws.rootVolumeSize": count(8),
    "spec.providers.docker.image": text(512),
    "spec.providers.docker.extraMounts": {"maxItems": 64},
    "spec.providers.docker.extraMounts[]": {"required": ["containerPath", "hostPath"]},
    "spec.providers.docker.extraMounts[].containerPath": {"minLength": 1, "maxLength": 4096},
    "spec.providers.docker.extraMounts[].hostPath": {"minLength": 1, "maxLength": 4096},
    "spec.providers.proxmox": checks(
        rule(
            "!has(self.template) || self.template == '' || !has(self.templateId)",
            "template and templateId exclude each other",
        )
    ),
    "spec.providers.proxmox.cores": count(1),
    "spec.providers.proxmox.sockets": count(1),
    "spec.providers.proxmox.memory": checks(
        rule(
            "self == '' || isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",
            "memory must be a quantity such as 16Gi",
        ),
        maxLength=32,
    ),
    "spec.providers.proxmox.template": checks(
        rule(
            "self.matches('^([A-Za-z0-9_][-A-Za-z0-9_+.]*)?$')",
            "template is a Proxmox tag: letters, digits, '_', '-', '+' and '.'",
        ),
        maxLength=128,
    ),
    "spec.providers.proxmox.templateId": count(1),
    "spec.providers.proxmox.diskSizeGb": count(5),
    "status.conditions": CONDITIONS,
}
