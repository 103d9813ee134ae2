"""Validation of spec.provider: the Kubernetes version, and exactly one immutable provider with its required fields.

The version is a full version and goes up one minor version at a time.

The fragments of schemas serve all kinds: bounded strings and numbers, enums, object names and taints.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.pools.types import PROVIDERS
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.kube.taints import EFFECTS
from nodeyard.schema.rules import KEY, KEY_MAX, KEY_MESSAGE, SUBDOMAIN, VALUE, VALUE_MESSAGE, checks, rule

# shared fragments


_TAINTS_MAX: Final = 24


def text(most: int = SUBDOMAIN_MAX) -> Object:
    return {"maxLength": most}


def count(least: int = 0, **more: int) -> Object:
    return {"minimum": least, "format": "int32", **more}


def enum(*values: str, default: str) -> Object:
    return {"enum": [str(value) for value in values], "default": str(default)}


def object_name(what: str) -> Object:
    return checks(
        rule(
            f"self == '' || self.matches('^{SUBDOMAIN}$')",
            f"the name of a {what} is lower case letters, digits, '-' and '.'",
        ),
        maxLength=SUBDOMAIN_MAX,
    )


def taint_list(path: str) -> dict[str, Object]:
    return {
        path: {
            "maxItems": _TAINTS_MAX,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["key", "effect"],
        },
        f"{path}[]": {"required": ["key", "effect"]},
        f"{path}[].key": checks(rule(f"self.matches('{KEY}')", KEY_MESSAGE), maxLength=KEY_MAX),
        f"{path}[].value": checks(rule(f"self.matches('{VALUE}')", VALUE_MESSAGE), maxLength=LABEL_VALUE_MAX),
        f"{path}[].effect": {"enum": list(EFFECTS)},
    }


# version

_SEMVER = r"^v?(0|[1-9][0-9]{0,4})([.](0|[1-9][0-9]{0,4})){2}(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$"


def _number(version: str, part: int) -> str:
    """Return CEL for one part of a version as a number."""
    digits = f"{version}.split('.')[{part}]"
    return f"int({digits}.replace('v', '').split('-')[0].split('+')[0])"


def _rank(version: str) -> str:
    """Return CEL for a number that orders versions, ignoring pre-releases."""
    return f"({_number(version, 0)} * 10000000000 + {_number(version, 1)} * 100000 + {_number(version, 2)})"


def _is_pre_release(version: str) -> str:
    """Return CEL that is true for a pre-release."""
    return f"{version}.split('+')[0].contains('-')"


_UNPARSABLE = f"!self.matches('{_SEMVER}') || !oldSelf.matches('{_SEMVER}')"
_VERSION: Final[Object] = checks(
    rule(
        f"self.matches('{_SEMVER}')",
        "version must be a full version such as 1.32.0 or v1.32.0",
        '"version \'" + self + "\' must be a full version such as 1.32.0 or v1.32.0"',
    ),
    rule(
        f"{_UNPARSABLE} || {_rank('self')} > {_rank('oldSelf')} || ({_rank('self')} == {_rank('oldSelf')} "
        f"&& (!{_is_pre_release('self')} || {_is_pre_release('oldSelf')}))",
        "version cannot go down",
        "'version cannot go down: it is ' + oldSelf + ' and would become ' + self",
    ),
    rule(
        f"{_UNPARSABLE} || ({_number('self', 0)} == {_number('oldSelf', 0)} "
        f"&& {_number('self', 1)} <= {_number('oldSelf', 1)} + 1)",
        "version must go up one minor version at a time",
        "'version must go up one minor version at a time: ' + oldSelf + ' cannot become ' + self + ' at once'",
    ),
    maxLength=64,
)

# provider

_GIVEN = ", ".join(f"has(self.{each})" for each in (*PROVIDERS, "openstack"))
AMI = checks(rule("self == '' || self.startsWith('ami-')", "must start with 'ami-'"), maxLength=64)
INSTANCE = checks(rule("size(self) != 1", "an instance type has at least two characters"), maxLength=64)
_MEMORY = count(8, multipleOf=8)
PROVIDER: Final[dict[str, Object]] = {
    "spec.provider": {"required": ["kubernetes", "config"]},
    "spec.provider.kubernetes": {"required": ["version"]},
    "spec.provider.kubernetes.version": _VERSION,
    "spec.provider.kubernetes.certSANs": {"maxItems": 64, "x-kubernetes-list-type": "set"},
    "spec.provider.kubernetes.certSANs[]": text(),
    "spec.provider.kubernetes.bootstrap": checks(
        rule(
            "self == 'kubeadm'",
            "this bootstrap is not supported: only kubeadm is",
            '"bootstrap \'" + self + "\' is not supported: only kubeadm is"',
        ),
        maxLength=32,
        default="kubeadm",
    ),
    "spec.provider.config": checks(
        rule("!has(self.openstack)", "openstack is not supported: use one of aws, docker and proxmox"),
        rule(f"[{_GIVEN}].exists_one(given, given)", "exactly one of aws, docker and proxmox must be set"),
        rule(
            " && ".join(f"has(self.{each}) == has(oldSelf.{each})" for each in PROVIDERS),
            "the provider is immutable: create another LatticeCluster",
        ),
    ),
    "spec.provider.config.aws": {"required": ["region"]},
    "spec.provider.config.aws.region": {"minLength": 1, "maxLength": 64},
    "spec.provider.config.aws.sshKeyName": text(255),
    "spec.provider.config.aws.amiId": AMI,
    "spec.provider.config.aws.vpcId": text(64),
    "spec.provider.config.aws.subnetIds": {"maxItems": 64},
    "spec.provider.config.aws.subnetIds[]": text(64),
    "spec.provider.config.aws.cpInstanceType": INSTANCE,
    "spec.provider.config.aws.cpRootVolumeSize": count(8),
    "spec.provider.config.docker.image": text(512),
    "spec.provider.config.proxmox": {
        "required": ["sourceNode", "templateId", "dnsServers", "ipv4Addresses", "ipv4Gateway", "controlPlaneEndpoint"]
    },
    "spec.provider.config.proxmox.sourceNode": {"minLength": 1, "maxLength": 63},
    "spec.provider.config.proxmox.templateId": count(1),
    "spec.provider.config.proxmox.dnsServers": {"minItems": 1, "maxItems": 16, "x-kubernetes-list-type": "set"},
    "spec.provider.config.proxmox.dnsServers[]": checks(
        rule("isIP(self)", "must be an IP address", '"\'" + self + "\' is not an IP address"'), maxLength=45
    ),
    "spec.provider.config.proxmox.ipv4Addresses": {"minItems": 1, "maxItems": 64, "x-kubernetes-list-type": "set"},
    "spec.provider.config.proxmox.ipv4Addresses[]": text(64),
    "spec.provider.config.proxmox.ipv4Prefix": count(1, maximum=32),
    "spec.provider.config.proxmox.ipv4Gateway": checks(
        rule(
            "isIP(self) && ip(self).family() == 4",
            "must be an IPv4 address",
            '"\'" + self + "\' is not an IPv4 address"',
        ),
        maxLength=45,
    ),
    "spec.provider.config.proxmox.controlPlaneEndpoint": {"minLength": 1, "maxLength": SUBDOMAIN_MAX},
    "spec.provider.config.proxmox.storage": text(),
    "spec.provider.config.proxmox.bridge": text(63),
    "spec.provider.config.proxmox.allowedNodes": {"maxItems": 256, "x-kubernetes-list-type": "set"},
    "spec.provider.config.proxmox.allowedNodes[]": text(63),
    **{f"spec.provider.config.proxmox.{who}Sockets": count(1) for who in ("cp", "worker")},
    **{f"spec.provider.config.proxmox.{who}Cores": count(1) for who in ("cp", "worker")},
    **{f"spec.provider.config.proxmox.{who}MemoryMib": _MEMORY for who in ("cp", "worker")},
    **{f"spec.provider.config.proxmox.{who}DiskSizeGb": count(5) for who in ("cp", "worker")},
    "spec.provider.credentialsSecretRef": {"required": ["name"]},
    "spec.provider.credentialsSecretRef.name": {"minLength": 1, "maxLength": SUBDOMAIN_MAX},
    "spec.provider.credentialsSecretRef.namespace": text(LABEL_VALUE_MAX),
}
