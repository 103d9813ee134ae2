"""Defaults of nodes."""

from __future__ import annotations

from nodeyard.kube.json import Object

_CORE = "io.k8s.api.core.v1."


def node_spec(obj: Object) -> Object:
    """The first range of addresses, by its two names."""
    cidr, cidrs = obj.get("podCIDR"), obj.get("podCIDRs") or []
    if cidr and (not cidrs or cidrs[0] != cidr):
        return {**obj, "podCIDRs": [cidr]}
    return {**obj, "podCIDR": cidrs[0]} if cidrs and not cidr else obj


def node_status(obj: Object) -> Object:
    """All that a node has may be used, unless it says otherwise."""
    capacity = obj.get("capacity")
    return {**obj, "allocatable": capacity} if capacity and "allocatable" not in obj else obj


DEFAULTS = {_CORE + "NodeSpec": node_spec, _CORE + "NodeStatus": node_status}
