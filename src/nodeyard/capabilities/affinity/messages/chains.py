"""Texts for the steps that lead to a decision: tenant, release, owners, class. `why` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import PAUSED


def _tenant_policy(facts: Object) -> str:
    allowed = facts.get("allowed")
    within = "allows every class" if allowed is None else f"allows {', '.join(allowed) or 'no class'}"
    default = facts.get("default")
    return f"{within}; default {default}" if default else f"{within}; no default"


def _release_of(facts: Object) -> str:
    name, previous = facts.get("class"), facts.get("previous")
    source = "" if facts.get("recorded") else " (from its label; the Application has no record)"
    affinity_class = f"{f'class {name}' if name else 'no class'}{source}"
    transition = "" if previous is None else f", also {previous or 'no class'} until the release is ready"
    failed = f"; not ready: {facts['failure']}" if facts.get("failure") else ""
    return f"release of {facts.get('application', 'no application')}, {affinity_class}{transition}{failed}"


def _class_requires(facts: Object) -> str:
    parts = [f"{key}={value}" for key, value in sorted((facts.get("node_selector") or {}).items())]
    if terms := facts.get("terms"):
        parts.append(f"one of {terms} node affinity {'terms' if terms > 1 else 'term'}")
    required = " and ".join(parts) or "nothing"
    return f"requires {required}; enforcement {facts.get('enforcement', '')}"


def _finalizer(verb: str, preposition: str) -> Callable[[Object], str]:
    def render(facts: Object) -> str:
        is_class = "object" in facts
        finalizer = names.CLASS_FINALIZER if is_class else names.DEFINITION_FINALIZER
        of = facts["object"] if is_class else f"{names.DEFINITION_KIND} {facts.get('definition', '')}"
        return f"{verb} finalizer {finalizer} {preposition} {of}"

    return render


MESSAGES: Final[Mapping[str, Callable[[Object], str]]] = {
    Reason.TENANT_POLICY: _tenant_policy,
    Reason.NO_TENANT: lambda facts: (
        f"namespace {facts.get('namespace', '')} belongs to no tenant: every class is allowed"
    ),
    Reason.OWNED_BY: lambda facts: f"owner of {facts.get('below', '')}",
    Reason.INSTALLED_BY: lambda facts: f"installed {facts.get('below', '')} (label {names.FLUX_NAME})",
    Reason.RELEASE_OF: _release_of,
    Reason.CLASS_REQUIRES: _class_requires,
    Reason.USES_CLASS: lambda facts: f"uses class {facts.get('class', '')}",
    Reason.FINALIZER_ADDED: _finalizer("Added", "to"),
    Reason.FINALIZER_REMOVED: _finalizer("Removed", "from"),
    Reason.DELETING: lambda facts: f"{facts.get('object', 'It')} is being deleted",
    Reason.PAUSED: lambda facts: f"{facts.get('object', 'It')} is paused",
    Reason.END_PAUSE: lambda _facts: f"Remove the annotation {PAUSED}",
}
