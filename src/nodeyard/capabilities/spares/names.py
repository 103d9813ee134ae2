"""Label, annotation, taint and finalizer keys of spares. Keys with nyallocator's prefix are its interface."""

from __future__ import annotations

from typing import Final

from nodeyard.kube.names import RESTRICTED_DOMAIN, ROLE_PREFIX

GROUP: Final = "nyallocator.cybozu.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "NodeTemplate"
PLURAL: Final = "nodetemplates"
CAPABILITY: Final = "spares"
KEY: Final = "nodetemplates"
"""All templates compete for the same spares and are planned together, so there is one reconcile key."""
PODS_BY_NODE: Final = "node"
"""Name of the index of pods by `spec.nodeName`."""

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
"""Annotation: the settings that Nodeyard made on the node, and what they displaced."""
RECORD_DIGEST: Final = f"{RESTRICTED_DOMAIN}/nodeyard-spares-record"
"""Label: the digest of the record. A kubelet may annotate its node, but may not set labels of this domain."""
LABELLED: Final = "nodeyard.dev/spares-labelled"
"""Annotation: Nodeyard set the spare label and removes it with the taint."""
RELEASE: Final = "nodeyard.dev/spares-release"
"""Annotation: the node is being released; since when, and whether Nodeyard set the cordon."""

RESERVED_LABELS: Final = frozenset({SPARE_LABEL, TEMPLATE_LABEL, OUT_LABEL, OUT_ROLE_LABEL, RECORD_DIGEST})
RESERVED_ANNOTATIONS: Final = frozenset({RECORD, LABELLED, RELEASE})
RESERVED_TAINTS: Final = frozenset({SPARE_TAINT})
RESERVED_NAMES: Final = frozenset({SPARE_ROLE, OUT_ROLE})
"""Template names whose role label already has another meaning."""

PEER_LEASE: Final = "df4b84a0.cybozu.io"
PEER_NAMESPACE: Final = "nyallocator-system"


def role_label(template: str) -> str:
    return f"{ROLE_PREFIX}{template}"
