"""What the server itself checks of a Cluster. An object that is valid for Kosmos is valid here.

Kosmos checks next to nothing. What no node can carry, such as a taint of an effect that there is none of, and values of
our own fields are refused here; what only the other models or the leaf can tell becomes a condition.
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
    """In place of anything at all: just these fields."""
    return {**schema, "x-kubernetes-preserve-unknown-fields": None}


_LINK: Final[Object] = {
    "type": "object",
    "properties": {
        "enable": _described("Whether the leaf is joined to the network.", {"type": "boolean"}, default=True),
        "cni": _described("The leaf's network plugin.", _TEXT, default="calico"),
        "networkType": _described(
            "How nodes of two clusters reach each other.", _TEXT, enum=["p2p", "gateway"], default="p2p"
        ),
        "ipFamily": _described("Which address families are joined.", _TEXT, default="all"),
        "useIPPool": _described("Whether pod networks are taken from IP pools.", {"type": "boolean"}, default=False),
        "localCIDRs": _described("Networks within the cluster.", {"type": "object"})
        | {"x-kubernetes-preserve-unknown-fields": True},
        "bridgeCIDRs": _described("Networks between clusters.", {"type": "object"})
        | {"x-kubernetes-preserve-unknown-fields": True},
        "nicNodeNames": _described(
            "The network interface of some nodes.",
            {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        ),
        "defaultNICName": _described("The network interface of the others.", _TEXT, default="*"),
        "globalCIDRsMap": _described(
            "Networks as other clusters see them.", {"type": "object", "additionalProperties": _TEXT}
        ),
        "autodetectionMethod": _described("How the interface is found.", _TEXT),
    },
}
_LINK_STATUS: Final[Object] = {
    "type": "object",
    "properties": {
        "podCIDRs": _described("The leaf's pod networks.", _TEXTS),
        "serviceCIDRs": _described("The leaf's service networks.", _TEXTS),
    },
}
_SELECTOR: Final[Object] = {
    "type": "object",
    "additionalProperties": None,
    "properties": {
        "matchLabels": _described("Labels that have to be equal.", {"type": "object", "additionalProperties": _TEXT}),
        "matchExpressions": _described(
            "Requirements that have to hold.",
            {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": _described("The label's key.", _TEXT),
                        "operator": _described("In, NotIn, Exists or DoesNotExist.", _TEXT),
                        "values": _described("The values of In and NotIn.", _TEXTS),
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
            rule("self == '' || self.matches('^([0-9]+h)?([0-9]+m)?([0-9]+s)?$')", "must be a time such as 10m or 1h")
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
            "timeAdded": _described("Not used: the root's server sets it.", _TEXT, format="date-time"),
        }
    },
    "status.clusterLinkStatus": _closed(_LINK_STATUS),
    "status.conditions": CONDITIONS,
}
