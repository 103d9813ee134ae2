"""Every key string of spares, once. Those with nyallocator's prefix are its interface and never change."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.names import ROLE_PREFIX

GROUP: Final = "nyallocator.cybozu.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "NodeTemplate"
PLURAL: Final = "nodetemplates"
CAPABILITY: Final = "spares"
KEY: Final = "nodetemplates"
"""All templates share one stock and are planned together, so there is one key."""
PODS_BY_NODE: Final = "node"
"""The index of pods by the node they are bound to."""

SPARE_TAINT: Final = "node.cybozu.io/spare"
SPARE_ROLE: Final = "spare"
SPARE_LABEL: Final = f"{ROLE_PREFIX}{SPARE_ROLE}"
TEMPLATE_LABEL: Final = f"{GROUP}/node-template"
OUT_LABEL: Final = f"{GROUP}/out-of-management"
OUT_ROLE: Final = "out-of-management"
OUT_ROLE_LABEL: Final = f"{ROLE_PREFIX}{OUT_ROLE}"
FINALIZER: Final = f"{GROUP}/finalizer"
TRUE: Final = "true"

RECORD: Final = "nodeyard.dev/spares-record"
"""On a node: what we set there and what stood there before."""
LABELLED: Final = "nodeyard.dev/spares-labelled"
"""On a node: the spare label is ours, and goes with the taint."""
RELEASE: Final = "nodeyard.dev/spares-release"
"""On a node: it is being given back; since when, and whether the cordon is ours."""

RESERVED_LABELS: Final = frozenset({SPARE_LABEL, TEMPLATE_LABEL, OUT_LABEL, OUT_ROLE_LABEL})
RESERVED_ANNOTATIONS: Final = frozenset({RECORD, LABELLED, RELEASE})
RESERVED_TAINTS: Final = frozenset({SPARE_TAINT})
RESERVED_NAMES: Final = frozenset({SPARE_ROLE, OUT_ROLE})
"""A template of this name would set a role label that means something else."""

ORIGINAL_LEASE: Final = "df4b84a0.cybozu.io"
ORIGINAL_NAMESPACE: Final = "nyallocator-system"


def role_label(template: str) -> str:
    return f"{ROLE_PREFIX}{template}"
