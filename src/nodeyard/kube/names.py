"""Key strings of Kubernetes and of Nodeyard itself, each once, and the syntax of names, labels and keys.

The `*_faults` functions return the errors of the API server; an empty list means valid.
"""

from __future__ import annotations

import re

# Nodeyard's own
GROUP = "nodeyard.dev"
NAMESPACE = "nodeyard-system"
PAUSED = "nodeyard.dev/paused"
APPROVE = "nodeyard.dev/approve"
APPROVALS = "nodeyard.dev/approvals"
"""Annotation for people: who approved which plan, when and why."""
CAPABILITY = "nodeyard.dev/capability"
"""Label of what is written on behalf of one."""
SHARE_KEY = "nodeyard.dev/key"
"""Annotation of a Lease by which replicas share a capability's keys out: which key it is for."""
OPERATOR = "nodeyard.dev/operator"
"""Annotation of an operator's Lease: version, limit, observe mode and held plans (`runtime.publication`)."""
WEBHOOK_CERTIFICATES = "nodeyard-webhook-certificates"
"""The Secret with the webhook certificates of all replicas."""

# Node keys
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ROLE_PREFIX = "node-role.kubernetes.io/"
TAINT_NOT_READY = "node.kubernetes.io/not-ready"
TAINT_UNREACHABLE = "node.kubernetes.io/unreachable"
TAINT_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
LEASE_NAMESPACE = "kube-node-lease"
MIRROR_POD = "kubernetes.io/config.mirror"
NAMESPACE_NAME = "kubernetes.io/metadata.name"

# These keys say which capability manages a node; other capabilities leave it alone
MIRRORED_NODE = "kosmos.io/node"
"""Label of a node that mirrors a leaf cluster."""
MIRRORED_CLUSTER = "kosmos-io/owned-by-cluster"
"""Annotation of such a node: which leaf."""
POOL_DRAINING = "lattice.dev/draining"
"""Annotation of a node that its worker pool is draining."""
OWNERS_PREFIXES = ("nyallocator.cybozu.io/", "lattice.dev/", f"{GROUP}/")
"""Prefixes of label keys by which a node belongs to something in its own cluster: they say nothing in another one."""

RESTRICTED_DOMAIN = "node-restriction.kubernetes.io"
"""Label keys under this domain are out of a kubelet's reach: the NodeRestriction admission plugin refuses them."""

LABEL_VALUE_MAX = 63
SUBDOMAIN_MAX = 253

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_RE = re.compile(_LABEL)
_DNS_1035_RE = re.compile(_DNS_1035)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)
_QUALIFIED_RE = re.compile(_QUALIFIED)
_VALUE_RE = re.compile(f"({_QUALIFIED})?")


def is_restricted(key: str) -> bool:
    """Return True for a label key that no kubelet may set on its node."""
    domain = key.rpartition("/")[0]
    return domain == RESTRICTED_DOMAIN or domain.endswith(f".{RESTRICTED_DOMAIN}")


def label_faults(name: str) -> list[str]:
    """Validate a DNS-1123 label: namespaces, and names that become part of a host name."""
    faults = []
    if len(name) > LABEL_VALUE_MAX:
        faults.append(f"must be no more than {LABEL_VALUE_MAX} characters")
    if _LABEL_RE.fullmatch(name):
        return faults
    if _SUBDOMAIN_RE.fullmatch(name):
        faults.append("must not contain dots")
    else:
        faults.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            f"'{_LABEL}')"
        )
    return faults


def dns_1035_faults(name: str) -> list[str]:
    """Validate a DNS-1035 label, which begins with a letter: Services, Helm releases, plurals of kinds."""
    faults = []
    if len(name) > LABEL_VALUE_MAX:
        faults.append(f"must be no more than {LABEL_VALUE_MAX} characters")
    if not _DNS_1035_RE.fullmatch(name):
        faults.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            f"validation is '{_DNS_1035}')"
        )
    return faults


def subdomain_faults(name: str) -> list[str]:
    """Validate a DNS-1123 subdomain: the names of most objects."""
    faults = []
    if len(name) > SUBDOMAIN_MAX:
        faults.append(f"must be no more than {SUBDOMAIN_MAX} characters")
    if not _SUBDOMAIN_RE.fullmatch(name):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SUBDOMAIN}')"
        )
    return faults


def qualified_name_faults(key: str) -> list[str]:
    """Validate a label, annotation or taint key: an optional DNS prefix and slash, and a name."""
    prefix, slash, name = key.rpartition("/")
    faults = []
    if "/" in prefix:
        return [
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults.extend(f"prefix part {fault}" for fault in subdomain_faults(prefix))
    if not name:
        faults.append("name part must be non-empty")
    elif len(name) > LABEL_VALUE_MAX:
        faults.append(f"name part must be no more than {LABEL_VALUE_MAX} bytes")
    if not _QUALIFIED_RE.fullmatch(name):
        faults.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}')"
        )
    return faults


def label_value_faults(value: str) -> list[str]:
    faults = []
    if len(value) > LABEL_VALUE_MAX:
        faults.append(f"must be no more than {LABEL_VALUE_MAX} bytes")
    if not _VALUE_RE.fullmatch(value):
        faults.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            f"validation is '({_QUALIFIED})?')"
        )
    return faults
