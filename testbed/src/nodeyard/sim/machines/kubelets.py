"""Labels and taints that a kubelet registers its node with, from the KubeadmConfig, or why it does not register.

A kubelet refuses to start with a kubernetes.io or k8s.io label that is not one of its own, and NodeRestriction rejects
such labels as well. Cluster API does not report this: the machine runs and no node appears.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nodeyard.kube.json import Object
from nodeyard.kube.names import label_value_faults, qualified_name_faults
from nodeyard.sim.machines import names

_RESERVED_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_WELL_KNOWN: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "beta.kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_UNINITIALIZED: Final = {"key": names.UNINITIALIZED, "effect": "NoSchedule"}
_CONTROL_PLANE: Final = {"key": names.CONTROL_PLANE_ROLE, "effect": "NoSchedule"}


class RegistrationError(Exception):
    """The kubelet exits at its start, or the API server rejects its node."""


@dataclass(frozen=True)
class Registration:
    """Labels and taints of a new node."""

    labels: Mapping[str, str]
    taints: tuple[Object, ...]


def registration(config: Object, *, is_control_plane: bool) -> Registration:
    """Read the spec of a machine's KubeadmConfig; raise RegistrationError."""
    section = config.get("initConfiguration") if is_control_plane else None
    section = section or config.get("joinConfiguration") or {}
    options = section.get("nodeRegistration") or {}
    arguments = {one["name"]: one["value"] for one in options.get("kubeletExtraArgs") or ()}
    labels = _labels(arguments.get("node-labels", ""))
    return Registration(labels, tuple(_unique(_taints(options, arguments, is_control_plane=is_control_plane))))


def is_refused(key: str) -> bool:
    """Return whether a kubelet may not set this label on its node."""
    domain, slash, _ = key.partition("/")
    if not slash or not _is_under(domain, _RESERVED_DOMAINS):
        return False
    return key not in _WELL_KNOWN and not _is_under(domain, _KUBELET_DOMAINS)


def _labels(text: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.strip().partition("=")
        if not equals or qualified_name_faults(key) or label_value_faults(value):
            raise RegistrationError(f'--node-labels: "{pair}" is not a label')
        if is_refused(key):
            raise RegistrationError(f'--node-labels: unknown "kubernetes.io" or "k8s.io" label "{key}"')
        labels[key] = value
    return labels


def _taints(options: Object, arguments: Mapping[str, str], *, is_control_plane: bool) -> list[Object]:
    """Return the taints: the argument replaces the list and Cluster API's own taint."""
    if "register-with-taints" in arguments:
        return [_taint(text) for text in filter(None, arguments["register-with-taints"].split(","))]
    given = options.get("taints")
    if is_control_plane:
        return [_CONTROL_PLANE] if given is None else list(given)
    return [*(given or ()), _UNINITIALIZED]


def _taint(text: str) -> Object:
    key, colon, effect = text.rpartition(":")
    if not colon or effect not in _EFFECTS:
        raise RegistrationError(f'--register-with-taints: "{text}" is not a taint')
    name, _, value = key.partition("=")
    return {"key": name, "effect": effect, **({"value": value} if value else {})}


def _unique(taints: Iterable[Object]) -> list[Object]:
    found: dict[tuple[str, str], Object] = {}
    for taint in taints:
        same = taint["key"], taint["effect"]
        if same in found:
            raise RegistrationError(f"duplicated taints with the same key and effect: {same[0]}:{same[1]}")
        found[same] = {key: value for key, value in taint.items() if value != ""}
    return list(found.values())


def _is_under(domain: str, parents: tuple[str, ...]) -> bool:
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)
