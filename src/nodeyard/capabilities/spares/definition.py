"""The CRD of NodeTemplate: nyallocator's, with what it forgot to check, and our opt-in fields."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX
from nodeyard.kube.taints import EFFECTS
from nodeyard.schema.crd import Column, Definition

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


def _listed(keys: frozenset[str]) -> str:
    """As a CEL list."""
    return "[" + ", ".join(f"'{key}'" for key in sorted(keys)) + "]"


def _map_rules(keys: frozenset[str], what: str) -> list[Object]:
    return [
        {
            "rule": f"self.all(k, !(k in {_listed(keys)}))",
            "message": f"{what} {', '.join(sorted(keys))} are reserved",
        },
        {
            "rule": f"self.all(k, k.matches('{_KEY}') && size(k) <= 317)",
            "message": "a key is an optional DNS prefix, a slash and a name of at most 63 characters",
        },
    ]


_OVERLAY: Final[dict[str, Object]] = {
    "": {
        "required": ["spec"],
        "x-kubernetes-validations": [
            {
                "rule": f"size(self.metadata.name) <= {LABEL_VALUE_MAX}",
                "message": f"metadata.name becomes a label value: at most {LABEL_VALUE_MAX} characters",
            },
            {
                "rule": f"!(self.metadata.name in {_listed(names.RESERVED_NAMES)})",
                "message": f"the names {', '.join(sorted(names.RESERVED_NAMES))} are reserved: their role labels mean "
                "something else",
            },
        ],
    },
    "spec": {
        "required": ["selector", "nodes"],
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.dryRun) || !has(self.dry__dash__run) || self.dryRun == self.dry__dash__run",
                "message": "dryRun and dry-run are two spellings of one field and contradict each other",
            }
        ],
    },
    "spec.nodes": {"minimum": 0},
    "spec.priority": {"default": 1},
    "spec.selector": {"x-kubernetes-map-type": "atomic"},
    "spec.selector.matchExpressions": {"maxItems": 64},
    "spec.selector.matchExpressions[]": {
        "required": ["key", "operator"],
        "x-kubernetes-validations": [
            {
                "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : "
                "!has(self.values) || size(self.values) == 0",
                "message": "In and NotIn need values, Exists and DoesNotExist take none",
            }
        ],
    },
    "spec.selector.matchExpressions[].operator": {"enum": list(_OPERATORS)},
    "spec.selector.matchExpressions[].values": {"maxItems": 256},
    "spec.template.metadata.labels": {
        "maxProperties": 64,
        "x-kubernetes-validations": [
            *_map_rules(names.RESERVED_LABELS, "the labels"),
            {
                "rule": f"self.all(k, self[k].matches('{_LABEL_VALUE}'))",
                "message": "a label value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a "
                "letter or digit",
            },
        ],
    },
    "spec.template.metadata.labels.*": {"maxLength": LABEL_VALUE_MAX},
    "spec.template.metadata.annotations": {
        "maxProperties": 64,
        "x-kubernetes-validations": _map_rules(names.RESERVED_ANNOTATIONS, "the annotations"),
    },
    "spec.template.spec.taints": {
        "maxItems": 64,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["key", "effect"],
    },
    "spec.template.spec.taints[]": {
        "x-kubernetes-validations": [
            {
                "rule": f"!(self.key in {_listed(names.RESERVED_TAINTS)})",
                "message": f"the taint {', '.join(sorted(names.RESERVED_TAINTS))} is reserved",
            },
            {
                "rule": f"self.effect in {_listed(frozenset(EFFECTS))}",
                "message": f"effect is one of {', '.join(sorted(EFFECTS))}",
            },
        ],
    },
    "spec.release.evictAfterSeconds": {"minimum": 0},
    "status.conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
}
NODE_TEMPLATE: Final = Definition(
    type=NodeTemplate,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.KIND,
    plural=names.PLURAL,
    description="A NodeTemplate takes spare nodes, makes them what it says, keeps them so, and can give them back.",
    namespaced=False,
    short_names=("nt",),
    columns=(
        Column("current", ".status.currentNodes", "integer"),
        Column("desired", ".spec.nodes", "integer"),
        Column("sufficient", '.status.conditions[?(@.type=="Sufficient")].status'),
        Column("Ready", '.status.conditions[?(@.type=="ReconcileSuccess")].status'),
        Column("Priority", ".spec.priority", "integer", priority=1),
        Column("Age", ".metadata.creationTimestamp", "date"),
    ),
    overlay=_OVERLAY,
    scale=(".spec.nodes", ".status.currentNodes"),
)
