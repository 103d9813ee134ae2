"""Which changes replace machines: those of a version or of a reference to a template. Everything else is in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeyard.plan.model import Disruption, FieldChange

_REPLACING = {
    "spec.template.spec.version": "the Kubernetes version",
    "spec.template.spec.infrastructureRef": "the machine (class, provider settings)",
    "spec.template.spec.bootstrap": "labels or taints that only a new node can get",
    "spec.template.spec.failureDomain": "the failure domain",
    "spec.version": "the Kubernetes version",
    "spec.machineTemplate.spec.infrastructureRef": "the machine (provider settings)",
    "spec.kubeadmConfigSpec": "the configuration of the control plane",
}


def reasons(changed: Iterable[FieldChange]) -> tuple[str, ...]:
    """What in a change makes Cluster API replace machines; nothing where it changes them in place."""
    paths = [change.path for change in changed]
    found = [text for prefix, text in _REPLACING.items() if any(_is_below(path, prefix) for path in paths)]
    return tuple(dict.fromkeys(found))


def replacement(
    changed: Iterable[FieldChange], nodes: Sequence[str]
) -> tuple[Disruption, tuple[str, ...], tuple[str, ...]]:
    """How disruptive changing an object that exists is, for which nodes, and why."""
    why = reasons(changed) if nodes else ()
    return (Disruption.REPLACES, tuple(nodes), why) if why else (Disruption.NONE, (), ())


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
