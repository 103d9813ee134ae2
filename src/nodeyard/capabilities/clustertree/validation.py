"""CRD validation of Cluster. Every object that is valid for Kosmos is valid here.

Kosmos validates almost nothing. The schema rejects what no node can have, such as an unknown taint effect, and invalid
values of Nodeyard's own fields. Errors that depend on other models or on the leaf become conditions.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.clustertree.types import Counting
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.kube.taints import EFFECTS
from nodeyard.schema.rules import CONDITIONS, rule

_MOST_MODELS: Final = 5000
_TEXT: Final[Object] = {"type": "string"}
_TEXTS: Final[Object] = {"type": "array", "items": {"type": "string"}}


def _described(description: str, schema: Object, **more: object) -> Object:
    return {"description": description, **schema, **more}


def _closed(schema: Object) -> Object:
    """Replace a free-form object by exactly these fields."""
    return {**schema, "x-kubernetes-preserve-unknown-fields": None}


_LINK: Final[Object] = {
    "type": "object",
    "properties": {
        "enable": _described("Enables ClusterLink for the leaf.", {"type": "boolean"}, default=True),
        "cni": _described("CNI plugin of the leaf.", _TEXT, default="calico"),
        "networkType": _described(
            "Connection between nodes of two clusters: p2p or gateway.", _TEXT, enum=["p2p", "gateway"], default="p2p"
        ),
        "ipFamily": _described("IP families that are connected.", _TEXT, default="all"),
        "useIPPool": _described("Takes pod networks from IP pools.", {"type": "boolean"}, default=False),
        "localCIDRs": _described("CIDRs within the cluster.", {"type": "object"})
        | {"x-kubernetes-preserve-unknown-fields": True},
        "bridgeCIDRs": _described("CIDRs between clusters.", {"type": "object"})
        | {"x-kubernetes-preserve-unknown-fields": True},
        "nicNodeNames": _described(
            "Network interfaces by node.",
            {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        ),
        "defaultNICName": _described("Network interface of all other nodes.", _TEXT, default="*"),
        "globalCIDRsMap": _described(
            "CIDRs of the leaf as other clusters see them.", {"type": "object", "additionalProperties": _TEXT}
        ),
        "autodetectionMethod": _described("Method that detects the network interface.", _TEXT),
    },
}
_LINK_STATUS: Final[Object] = {
    "type": "object",
    "properties": {
        "podCIDRs": _described("Pod CIDRs of the leaf.", _TEXTS),
        "serviceCIDRs": _described("Service CIDRs of the leaf.", _TEXTS),
    },
}
_SELECTOR: Final[Object] = {
    "type": "object",
    "additionalProperties": None,
    "properties": {
        "matchLabels": _described(
            "Labels that a leaf node must have.", {"type": "object", "additionalProperties": _TEXT}
        ),
        "matchExpressions": _described(
            "Label requirements that a leaf node must meet.",
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": _described("The label's key.", _TEXT),
                        "operator": _described("In, NotIn, Exists or DoesNotExist.", _TEXT),
                        "values": _described("Values for In and NotIn.", _TEXTS),
                    },
                },
            },
        ),
    },
}


_MODELS: Final = "spec.clusterTreeOptions.leafModels"

CLUSTER: Final[dict[str, Object]] = {
    "spec.kubeconfig": {"format": "byte"},
    "spec.kubeconfigSecretRef": {"required": ["name"]},
    "spec.kubeconfigSecretRef.name": {"minLength": 1, "maxLength": SUBDOMAIN_MAX},
    "spec.kubeconfigSecretRef.namespace": {"maxLength": LABEL_VALUE_MAX},
    "spec.kubeconfigSecretRef.key": {"maxLength": SUBDOMAIN_MAX},
    "spec.namespace": {"default": "kosmos-system"},
    "spec.clusterLinkOptions": _closed(_LINK),
    "spec.clusterTreeOptions.enable": {"default": True},
    "spec.clusterTreeOptions.credentialGrace": {
        "maxLength": 20,
        "x-kubernetes-validations": [
            rule(
                "self == '' || self.matches('^([0-9]+h)?([0-9]+m)?([0-9]+s)?$')", "must be a duration such as 10m or 1h"
            )
        ],
    },
    "spec.clusterTreeOptions.resources.countPods": {
        "enum": [str(each) for each in Counting],
        "default": str(Counting.SCHEDULED),
    },
    "spec.clusterTreeOptions.resources.reservePercent": {"minimum": 0, "maximum": 100, "format": "int32"},
    _MODELS: {"maxItems": _MOST_MODELS},
    f"{_MODELS}[].nodeSelector.labelSelector": _SELECTOR,
    f"{_MODELS}[].taints[]": {
        "properties": {
            "key": _described("The taint's key.", _TEXT, minLength=1, maxLength=SUBDOMAIN_MAX + 1 + LABEL_VALUE_MAX),
            "value": _described("The taint's value.", _TEXT, maxLength=LABEL_VALUE_MAX),
            "effect": _described("NoSchedule, PreferNoSchedule or NoExecute.", _TEXT, enum=list(EFFECTS)),
            "timeAdded": _described("Ignored: the root's API server sets it.", _TEXT, format="date-time"),
        }
    },
    "status.clusterLinkStatus": _closed(_LINK_STATUS),
    "status.conditions": CONDITIONS,
}
