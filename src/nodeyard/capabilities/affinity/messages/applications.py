"""Texts about ApplicationDefinitions, applications and their HelmReleases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.message_format import listed


def _application(facts: Object) -> str:
    return f"{facts.get('kind', 'application')} {facts.get('namespace', '')}/{facts.get('name', '')}"


def _definition(facts: Object) -> str:
    return f"{names.DEFINITION_KIND} {facts.get('definition', '')}".rstrip()


def _release(facts: Object) -> str:
    return f"{names.RELEASE_KIND} {facts.get('namespace', '')}/{facts.get('release', '')}"


def _errors(facts: Object) -> str:
    return "; ".join(map(str, facts.get("errors", ())))


def _class(facts: Object) -> str:
    return f'{names.CLASS_KIND} "{facts.get("class", "")}"'


def _tenant(facts: Object) -> str:
    return f"tenant {facts['tenant']}" if facts.get("tenant") else "its tenant"


def _allowed(facts: Object) -> str:
    allowed = facts.get("allowed") or ()
    return f"{_tenant(facts)} allows {listed(allowed, 10) or 'no class'}"


def _can_choose(facts: Object) -> bool:
    """Return whether the tenant allows every class, or at least one."""
    return facts.get("allowed") is None or bool(facts["allowed"])


def _add_to(facts: Object, what: str = "a class") -> str:
    return f"add {what} to spec.allowedAffinityClasses of {_tenant(facts)}"


# definitions


def _in_use(facts: Object) -> str:
    number, users = facts.get("applications", 0), facts.get("users") or ()
    named = f" ({listed(users, 10)})" if users else ""
    of = f"{number} {'application' if number == 1 else 'applications'} of kind {facts.get('kind', '')}"
    return f"{_definition(facts)} is in use by {of}{named}: delete them first, deleting the CRD would delete them all"


def _not_ours(facts: Object) -> str:
    return (
        f"CRD {facts.get('crd', '')} was created by {facts.get('by') or 'somebody else'} and is used as it is: "
        f"spec.application.openAPISchema of {_definition(facts)} is not applied"
    )


def _simplified(facts: Object) -> str:
    return (
        f"Kind {facts.get('kind', '')} is served without {listed(facts.get('left_out', ()))}: a CRD schema cannot "
        "express these, so the API server does not check them"
    )


def _rival(facts: Object) -> str:
    return (
        f"Kind {facts.get('kind', '')} or its plural is already declared by the older {names.DEFINITION_KIND} "
        f"{listed(facts.get('rivals', ()))}: choose another kind and plural for {_definition(facts)}"
    )


def _elsewhere(facts: Object) -> str:
    what = f"kind {facts['kind']}" if facts.get("kind") else "its kinds"
    return (
        f"Not managed here: an APIService serves {names.APPS_GROUP}, so {what} and the HelmReleases belong to the "
        "platform. Pods are checked against the class on its HelmReleases. To serve the kinds here, delete APIService "
        f"{names.VERSION}.{names.APPS_GROUP}"
    )


# class resolution


def _none(facts: Object) -> str:
    why = {
        "kept": "had no class when it was first released and keeps none until spec.affinityClass names one",
        "declined": "has no class: spec.affinityClass is empty",
    }.get(facts.get("why", ""), "has no class: spec.affinityClass is not set and there is no default")
    return f"{_application(facts)} {why}"


def _missing(facts: Object) -> str:
    """Render the design's own sentence to the letter; for an application, add the remedy."""
    found = f"{_class(facts)} is being deleted" if facts.get("deleting") else f"{_class(facts)} not found"
    if "kind" not in facts or "name" not in facts:
        return found
    return f"{found}: {_application(facts)} needs it. Create the class, or set spec.affinityClass to another"


def _not_allowed(facts: Object) -> str:
    if not facts.get("class") and not facts.get("default"):
        remedy = "set spec.affinityClass to an allowed class" if _can_choose(facts) else _add_to(facts)
        return f"{_application(facts)} sets no class but must have one: {_allowed(facts)}. To fix it, {remedy}"
    if not facts.get("class"):
        remedy = f"name an allowed class, or remove the field to get the default {facts['default']}"
        return (
            f"spec.affinityClass of {_application(facts)} is empty but a class is required: {_allowed(facts)}. To fix "
            f"it, {remedy if _can_choose(facts) else _add_to(facts)}"
        )
    remedy = f"Set spec.affinityClass to an allowed class, or {_add_to(facts, 'it')}"
    if not _can_choose(facts):
        remedy = f"To use it, {_add_to(facts, 'it')}"
    return f"{_application(facts)} may not use {_class(facts)}: {_allowed(facts)}. {remedy}"


def _withdrawn(facts: Object) -> str:
    if not facts.get("class"):
        return (
            f"{_application(facts)} still has no class, which is no longer allowed: {_allowed(facts)}. {_move(facts)}"
            "; until then its pods follow spec.unownedPods of its tenants"
        )
    return (
        f"{_application(facts)} still has {_class(facts)}, which is no longer allowed: {_allowed(facts)}. "
        f"{_move(facts)}; until then its pods keep running where they are"
    )


def _move(facts: Object) -> str:
    """Render the way to an allowed class."""
    if not _can_choose(facts):
        return f"First {_add_to(facts)}"
    if facts.get("class"):
        return "Set spec.affinityClass to an allowed class"
    return "Remove spec.affinityClass, or set it to an allowed class"


def _no_default(facts: Object) -> str:
    error = f": {facts['error']}" if facts.get("error") else ""
    remedy = (
        f"Set spec.affinityClass of {_application(facts)}, or spec.defaultAffinityClass of {_tenant(facts)}, to an "
        "allowed class"
        if _can_choose(facts)
        else f"To give {_application(facts)} a class, {_add_to(facts)}"
    )
    return f"The default {_class(facts)} of {_tenant(facts)} cannot be used{error}. {remedy}"


# releases


def _applied(facts: Object) -> str:
    placed = f" with {_class(facts)}" if facts.get("class") else ""
    return f"Applied {_release(facts)} of {_application(facts)}{placed}"


def _changed(facts: Object) -> str:
    if not facts.get("class"):
        return f"Removed the class of {_application(facts)}: its pods now follow spec.unownedPods of its tenants"
    before = _class({"class": facts["previous"]}) if facts.get("previous") else "no class"
    return (
        f"Changed {_application(facts)} from {before} to {_class(facts)}: pods of both are admitted until its release "
        "is ready"
    )


def _pending(facts: Object) -> str:
    if facts.get("why") == "going":
        return (
            f"{_release(facts)} belongs to an earlier application and is being deleted: {_application(facts)} waits "
            "for it"
        )
    detail = f": {facts['message']}" if facts.get("message") else ""
    return f"{_release(facts)} is not ready yet{detail}"


def _name_conflict(facts: Object) -> str:
    whose = f"belongs to {facts['of']}" if facts.get("of") else "lacks the labels of this application"
    return (
        f"{_release(facts)} already exists and {whose}: {_application(facts)} cannot be released. Choose another name, "
        "or delete that HelmRelease"
    )


def _released_otherwise(facts: Object) -> str:
    return (
        f"{_application(facts)} is already released as {names.RELEASE_KIND} {facts.get('namespace', '')}/"
        f"{facts.get('other', '')}; {facts.get('release', '')} would install it a second time. Restore "
        f"spec.release.prefix of {_definition(facts)}, or delete that HelmRelease with everything it runs"
    )


MESSAGES: Final[Mapping[Reason, Callable[[Object], str] | str]] = {
    # definitions
    Reason.DEFINITION_SERVED: lambda facts: f"Applied CRD {facts.get('crd', '')} for kind {facts.get('kind', '')}",
    Reason.DEFINITION_CLOSED: lambda facts: (
        f"{_definition(facts)} is being deleted: CRD {facts.get('crd', '')} rejects new {facts.get('kind', '')} "
        "objects, and is deleted in a few seconds if it has none"
    ),
    Reason.DEFINITION_WITHDRAWN: lambda facts: (
        f"Deleted CRD {facts.get('crd', '')} of {_definition(facts)}: there is no {facts.get('kind', '')} left"
    ),
    Reason.BAD_DEFINITION: lambda facts: f"{_definition(facts)} cannot be served: {_errors(facts)}",
    Reason.BAD_SCHEMA: lambda facts: (
        f"spec.application.openAPISchema of {_definition(facts)} is not a valid schema: {facts.get('error', '')}. "
        "The CRD stays as it is"
    ),
    Reason.SCHEMA_SIMPLIFIED: _simplified,
    Reason.DUPLICATE_DEFINITION: _rival,
    Reason.CRD_NOT_MANAGED: _not_ours,
    Reason.DEFINITION_IN_USE: _in_use,
    Reason.UNWATCHED: lambda facts: (
        f"Applications of kind {facts.get('kind', '')} cannot be watched: {facts.get('error', '')}"
    ),
    Reason.ESTABLISHING: lambda facts: (
        f"Waiting for the API server to serve CRD {facts.get('crd', '')}{': ' if facts.get('error') else ''}"
        f"{facts.get('error') or ''}"
    ),
    Reason.SERVED: lambda facts: f"Kind {facts.get('kind', '')} is served in {names.APPS_API_VERSION}",
    Reason.SERVED_ELSEWHERE: _elsewhere,
    # applications
    Reason.DELETING: lambda facts: f"{facts.get('object') or 'It'} is being deleted",
    Reason.RESERVED_KEY: lambda facts: (
        f"spec of {_application(facts)} has {listed(facts.get('keys', ()))}: keys that begin with "
        f"'{names.RESERVED_PREFIX}' are reserved for the platform. Remove them"
    ),
    Reason.BAD_NAME: lambda facts: (
        f"{_application(facts)} cannot be released under its name: {_errors(facts)}. Choose another name"
    ),
    Reason.NAME_CONFLICT: _name_conflict,
    Reason.CLASS_EXPLICIT: lambda facts: f"{_application(facts)} sets spec.affinityClass to {_class(facts)}",
    Reason.CLASS_STICKY: lambda facts: (
        f"{_application(facts)} keeps {_class(facts)}, the default when it was first released, until "
        "spec.affinityClass names another"
    ),
    Reason.CLASS_DEFAULT: lambda facts: (
        f"{_application(facts)} gets {_class(facts)}, the default of {_tenant(facts)}: spec.affinityClass is not set"
    ),
    Reason.CLASS_NONE: _none,
    Reason.CLASS_MISSING: _missing,
    Reason.CLASS_NOT_ALLOWED: _not_allowed,
    Reason.CLASS_WITHDRAWN: _withdrawn,
    Reason.DEFAULT_NOT_ALLOWED: _no_default,
    # releases
    Reason.RELEASE_APPLIED: _applied,
    Reason.VALUES_CLEARED: lambda facts: (
        f"Removed values and class labels from {_release(facts)} that {_application(facts)} does not set"
    ),
    Reason.CLASS_RECORDED: lambda facts: (
        f"Recorded {_class(facts) if facts.get('class') else 'no class'} as the class of {_application(facts)}"
    ),
    Reason.CLASS_CHANGED: _changed,
    Reason.CLASS_SETTLED: lambda facts: (
        f"Completed the change of {_application(facts)} to {_class(facts)}: {_release(facts)} is ready, pods of the "
        "previous class are no longer admitted"
    ),
    Reason.RELEASE_NOT_SERVED: lambda facts: (
        f"{_application(facts)} cannot be released: the API server does not serve {names.RELEASE_KIND} in "
        f"{names.FLUX_API_VERSION}. Install Flux's helm-controller"
    ),
    Reason.RELEASE_PENDING: _pending,
    Reason.RELEASED_OTHERWISE: _released_otherwise,
    Reason.SWITCHING: lambda facts: (
        f"{_application(facts)} is changing to {_class(facts)}: pods of {facts.get('previous') or 'no class'} are "
        "admitted too until its release is ready"
    ),
    Reason.ENFORCED: lambda facts: f"Pods outside {_class(facts)} are denied",
    Reason.NOT_ENFORCED: lambda facts: (
        f"Not enforced: enforcement of {_class(facts)} is {facts.get('enforcement', '')} here, so pods outside it are "
        "admitted"
    ),
    Reason.WEBHOOK_MISSING: "Not enforced: the pod webhook is not registered (run with --webhook-bind)",
    # remedies
    Reason.CHOOSE_ALLOWED: lambda facts: (
        f"Set spec.affinityClass to one of {listed(facts['allowed'], 10)}"
        if facts.get("allowed")
        else f"Set spec.affinityClass to {'a' if _can_choose(facts) else 'another'} class"
        f"{'' if _can_choose(facts) else f', once {_tenant(facts)} allows one'}"
    ),
    Reason.ALLOW_CLASS: lambda facts: (
        f"Add {facts.get('class', 'it')} to spec.allowedAffinityClasses of {_tenant(facts)}"
    ),
    Reason.CREATE_CLASS: lambda facts: f"Create {_class(facts)}",
}
