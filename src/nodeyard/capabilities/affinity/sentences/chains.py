"""What is said about each step on the way to a decision: tenant, release, owners, class. `why` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object


def _tenant_says(facts: Object) -> str:
    allowed = facts.get("allowed")
    within = "allows every class" if allowed is None else f"allows {', '.join(allowed) or 'no class'}"
    default = facts.get("default")
    return f"{within}; its default is {default}" if default else f"{within} and has no default"


def _release_of(facts: Object) -> str:
    name, previous = facts.get("class"), facts.get("previous")
    carries = f"carries the class {name}" if name else "carries no class"
    switching = "" if previous is None else f", until it is ready {previous or 'no class'} too"
    return f"the release of {facts.get('application', 'no application')}, {carries}{switching}"


def _class_asks(facts: Object) -> str:
    parts = [f"{key}={value}" for key, value in sorted((facts.get("node_selector") or {}).items())]
    if terms := facts.get("terms"):
        parts.append(f"one of {terms} node affinity {'terms' if terms > 1 else 'term'}")
    asked = " and ".join(parts) or "nothing"
    return f"asks for {asked}; pods outside: {facts.get('enforcement', '')}"


def _object(verb: str) -> Callable[[Object], str]:
    return lambda facts: f"{verb} {facts.get('object') or facts.get('definition', '')}"


SENTENCES: Final[Mapping[str, Callable[[Object], str]]] = {
    Reason.TENANT_SAYS: _tenant_says,
    Reason.NO_TENANT: lambda facts: (
        f"the namespace {facts.get('namespace', '')} is no tenant's: every class is allowed"
    ),
    Reason.OWNED_BY: lambda facts: f"the owner of {facts.get('below', '')}",
    Reason.INSTALLED_BY: lambda facts: f"installed {facts.get('below', '')}, as its label {names.FLUX_NAME} says",
    Reason.RELEASE_OF: _release_of,
    Reason.CLASS_ASKS: _class_asks,
    Reason.USES_CLASS: lambda facts: f"names the class {facts.get('class', '')}",
    Reason.FINALIZER_ADDED: _object("Takes into care"),
    Reason.FINALIZER_REMOVED: _object("Is done with"),
    Reason.DELETING: lambda facts: f"{facts.get('object', 'It')} is being deleted",
    Reason.PAUSED: lambda facts: f"{facts.get('object', 'It')} is paused",
    Reason.END_PAUSE: lambda _facts: "End the pause",
}
