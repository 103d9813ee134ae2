"""The CRD of NodeTemplate: nyallocator's fields with stricter validation, and Nodeyard's opt-in fields."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.kube.taints import EFFECTS
from nodeyard.schema.crd import Column, Definition

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_DNS = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = f"^({_DNS}([.]{_DNS})*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?$"
_KEY_MAX = SUBDOMAIN_MAX + 1 + LABEL_VALUE_MAX
_KEY_MESSAGE = "a key is an optional DNS prefix and a slash, and a name of at most 63 letters, digits, '-', '_' and '.'"
_VALUE_MESSAGE = (
    "a label value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
)
_LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"


def _cel_list(keys: frozenset[str]) -> str:
    return "[" + ", ".join(f"'{key}'" for key in sorted(keys)) + "]"


def _key_rule(key: str) -> str:
    """Return the CEL expression that validates one key."""
    return f"{key}.matches('{_KEY}') && {key}.indexOf('/') <= {SUBDOMAIN_MAX}"


_KEYS_RULE: Final[Object] = {"rule": f"self.all(k, {_key_rule('k')})", "message": _KEY_MESSAGE}
_VALUES_RULE: Final[Object] = {
    "rule": f"self.all(k, self[k].matches('{_LABEL_VALUE}'))",
    "message": _VALUE_MESSAGE,
}
_ONE_KEY: Final[Object] = {
    "maxLength": _KEY_MAX,
    "x-kubernetes-validations": [{"rule": _key_rule("self"), "message": _KEY_MESSAGE}],
}


def _map_rules(keys: frozenset[str], what: str) -> list[Object]:
    return [
        {
            "rule": f"self.all(k, !(k in {_cel_list(keys)}))",
            "message": f"{what} {', '.join(sorted(keys))} are reserved",
        },
        _KEYS_RULE,
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
                "rule": f"!(self.metadata.name in {_cel_list(names.RESERVED_NAMES)})",
                "message": f"the names {', '.join(sorted(names.RESERVED_NAMES))} are reserved: their role labels have "
                "another meaning",
            },
        ],
    },
    "spec": {
        "required": ["selector", "nodes"],
        "x-kubernetes-validations": [
            {
                "rule": "!has(self.dryRun) || !has(self.dry__dash__run) || self.dryRun == self.dry__dash__run",
                "message": "dryRun and dry-run are the same field and must have the same value",
            }
        ],
    },
    "spec.nodes": {"minimum": 0},
    "spec.priority": {"default": 1},
    "spec.selector": {"x-kubernetes-map-type": "atomic"},
    "spec.selector.matchLabels": {"maxProperties": 64, "x-kubernetes-validations": [_KEYS_RULE, _VALUES_RULE]},
    "spec.selector.matchLabels.*": {"maxLength": LABEL_VALUE_MAX},
    "spec.selector.matchExpressions": {"maxItems": 64},
    "spec.selector.matchExpressions[].key": _ONE_KEY,
    "spec.selector.matchExpressions[]": {
        "required": ["key", "operator"],
        "x-kubernetes-validations": [
            {
                "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : "
                "!has(self.values) || size(self.values) == 0",
                "message": "In and NotIn require values; Exists and DoesNotExist forbid them",
            }
        ],
    },
    "spec.selector.matchExpressions[].operator": {"enum": list(_OPERATORS)},
    "spec.selector.matchExpressions[].values": {"maxItems": 256},
    "spec.template.metadata.labels": {
        "maxProperties": 64,
        "x-kubernetes-validations": [
            *_map_rules(names.RESERVED_LABELS, "the labels"),
            _VALUES_RULE,
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
        "properties": {
            "key": {"type": "string", "description": "Key of the taint.", **_ONE_KEY},
            "value": {
                "type": "string",
                "description": "Value of the taint.",
                "maxLength": LABEL_VALUE_MAX,
                "x-kubernetes-validations": [{"rule": f"self.matches('{_LABEL_VALUE}')", "message": _VALUE_MESSAGE}],
            },
            "effect": {
                "type": "string",
                "description": "Effect of the taint: NoSchedule, PreferNoSchedule or NoExecute.",
            },
            "timeAdded": {"type": "string", "format": "date-time", "description": "Time when the taint was added."},
        },
        "x-kubernetes-validations": [
            {
                "rule": f"!(self.key in {_cel_list(names.RESERVED_TAINTS)})",
                "message": f"the taint {', '.join(sorted(names.RESERVED_TAINTS))} is reserved",
            },
            {
                "rule": f"self.effect in {_cel_list(frozenset(EFFECTS))}",
                "message": f"effect is one of {', '.join(sorted(EFFECTS))}",
            },
        ],
    },
    "spec.spread.topologyKey": {
        "maxLength": _KEY_MAX,
        "x-kubernetes-validations": [{"rule": f"self == '' || {_key_rule('self')}", "message": _KEY_MESSAGE}],
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
    description="A NodeTemplate claims spare nodes, sets labels, annotations and taints on them, and can release them.",
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
