"""The table of what may cross from a leaf node to its mirror: label keys, taints and addresses.

The root trusts a leaf no more than a kubelet. A leaf may set on its mirror what the admission plugin NodeRestriction
lets a kubelet set on its own node, and no key by which an operator of the root owns a node. The rules are those of
https://github.com/kubernetes/kubernetes/blob/master/plugin/pkg/admission/noderestriction/admission.go.
docs/clustertree.md shows `POLICY`; the first row that matches a key decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import Final

from nodeyard.capabilities.clustertree.snapshot import NodeAddress
from nodeyard.kube.names import OWNERS_PREFIXES, REGION, ROLE_PREFIX, ZONE, subdomain_faults
from nodeyard.kube.objects import Taint
from nodeyard.kube.short_cache import cache_short
from nodeyard.kube.taints import NO_EXECUTE, NO_SCHEDULE


class Crossing(StrEnum):
    YES = "yes"
    NO = "no"
    AS_CORDON = "as a cordon"
    """The mirror is cordoned instead of tainted, so that it does not offer resources that no pod can use."""


@dataclass(frozen=True)
class Rule:
    keys: tuple[str, ...]
    """`key`, `domain/*`, `*.domain/*` for all its subdomains, or `*`."""
    label: Crossing
    taint: Crossing
    reason: str


POLICY: Final = (
    Rule(
        ("node-restriction.kubernetes.io/*", "*.node-restriction.kubernetes.io/*"),
        Crossing.NO,
        Crossing.AS_CORDON,
        "Isolation in the root relies on these keys; no kubelet may set them either",
    ),
    Rule(
        (
            *(f"{prefix}*" for prefix in OWNERS_PREFIXES),
            "node.cybozu.io/*",
            "kosmos.io/*",
            "kosmos-io/*",
            "cozystack.io/*",
            "*.cozystack.io/*",
            "cluster.x-k8s.io/*",
            "*.cluster.x-k8s.io/*",
        ),
        Crossing.NO,
        Crossing.AS_CORDON,
        "An operator owns or reserves a node of its own cluster by them; the root may run the same operator",
    ),
    Rule(
        (f"{ROLE_PREFIX}*",),
        Crossing.NO,
        Crossing.YES,
        "The root gives its nodes their roles; as a taint the key only keeps pods off",
    ),
    Rule(
        ("node.kubernetes.io/*",),
        Crossing.YES,
        Crossing.NO,
        "A kubelet may set the labels; the root derives the taints from the conditions and the cordon",
    ),
    Rule(
        (
            ZONE,
            REGION,
            "failure-domain.beta.kubernetes.io/*",
            "beta.kubernetes.io/instance-type",
            "beta.kubernetes.io/arch",
            "kubelet.kubernetes.io/*",
            "*.kubelet.kubernetes.io/*",
            "*.node.kubernetes.io/*",
        ),
        Crossing.YES,
        Crossing.YES,
        "A kubelet may set them, and the root's scheduler needs the topology; a leaf model's labels override them",
    ),
    Rule(
        ("kubernetes.io/*", "*.kubernetes.io/*", "k8s.io/*", "*.k8s.io/*"),
        Crossing.NO,
        Crossing.AS_CORDON,
        "Reserved for parts of Kubernetes: controllers of the root act on them, and no kubelet may set them",
    ),
    Rule(("*",), Crossing.YES, Crossing.YES, "Anything else describes the leaf node"),
)

_IP_TYPES: Final = ("InternalIP", "ExternalIP")
_NAME_TYPES: Final = ("Hostname", "InternalDNS", "ExternalDNS")
_LOCAL: Final = "localhost"
# Metadata services outside the link-local block: AWS, Alibaba Cloud, Azure.
_METADATA_SERVICES: Final = frozenset(("fd00:ec2::254", "100.100.100.200", "168.63.129.16"))


def may_cross_label(key: str) -> bool:
    return _rule(key).label is Crossing.YES


def may_cross_taint(taint: Taint) -> bool:
    return _rule(taint.key).taint is Crossing.YES


def is_cordon(taint: Taint) -> bool:
    """Return True if the mirror is cordoned instead of getting the taint."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE) and _rule(taint.key).taint is Crossing.AS_CORDON


def may_cross_address(address: NodeAddress) -> bool:
    """The root's API server connects to node addresses: a leaf must not direct it to the root's own machines."""
    if address.type in _IP_TYPES:
        return _is_unicast(address.address)
    return address.type in _NAME_TYPES and _is_host_name(address.address)


@cache_short(4096)
def _rule(key: str) -> Rule:
    return next(rule for rule in POLICY if any(_matches(pattern, key) for pattern in rule.keys))


def _matches(pattern: str, key: str) -> bool:
    if not pattern.endswith("*"):
        return key == pattern
    domain, slash, _ = key.rpartition("/")
    wanted = pattern.removesuffix("/*")
    if wanted.startswith("*."):
        return bool(slash) and domain.endswith(wanted[1:])
    return pattern == "*" or (bool(slash) and domain == wanted)


def _is_unicast(text: str) -> bool:
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address.sixtofour or address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or str(address) in _METADATA_SERVICES
    )


def _is_host_name(text: str) -> bool:
    """Return True for a DNS name. Resolvers read a last label that is a number, even hexadecimal, as an IP."""
    name = text.lower().removesuffix(".")
    last = name.rpartition(".")[2]
    is_number = last.isdecimal() or (last.startswith("0x") and all(each in "0123456789abcdef" for each in last[2:]))
    return not subdomain_faults(name) and not is_number and last != _LOCAL


def table() -> str:
    """Render the policy as Markdown for docs/clustertree.md."""
    rows = (
        f"| {', '.join(f'`{key}`' for key in rule.keys)} | {rule.label} | {rule.taint} | {rule.reason} |"
        for rule in POLICY
    )
    return "\n".join(("| key | label crosses | taint crosses | why |", "|---|---|---|---|", *rows))
