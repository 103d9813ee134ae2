"""What is said about definitions, applications and their releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.sentences import listed


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


# definitions


def _in_use(facts: Object) -> str:
    number, users = facts.get("applications", 0), facts.get("users") or ()
    named = f" ({listed(users, 10)})" if users else ""
    of = f"{number} {'application' if number == 1 else 'applications'} of kind {facts.get('kind', '')}"
    return f"{_definition(facts)} is in use by {of}{named}: delete them first, since their kind goes with it"


def _not_ours(facts: Object) -> str:
    return (
        f"The CRD {facts.get('crd', '')} was made by {facts.get('by') or 'somebody else'} and is used as it is: "
        f"what {_definition(facts)} says about its schema is not in it"
    )


def _simplified(facts: Object) -> str:
    return (
        f"The kind {facts.get('kind', '')} is served, and a CRD cannot say {listed(facts.get('left_out', ()))}: "
        "these are not checked by the server"
    )


def _rival(facts: Object) -> str:
    return (
        f"{facts.get('kind', '')} or its plural is declared already by {names.DEFINITION_KIND} "
        f"{listed(facts.get('rivals', ()))}, which is older: choose another kind and plural for {_definition(facts)}"
    )


def _elsewhere(facts: Object) -> str:
    whose = f"the kind {facts['kind']}" if facts.get("kind") else "its kinds"
    return (
        f"An APIService serves {names.APPS_GROUP}, so {whose} and the releases are the platform's: nothing is made "
        "here, and pods are checked by the HelmReleases that it makes. They are served here once APIService "
        f"{names.VERSION}.{names.APPS_GROUP} is gone"
    )


# how a class stands


def _none(facts: Object) -> str:
    why = {
        "kept": "had no class when it was released, and keeps it so until it names one",
        "declined": "wants no class: spec.affinityClass is empty",
    }.get(facts.get("why", ""), "names no class, and there is no default")
    return f"{_application(facts)} {why}"


def _missing(facts: Object) -> str:
    """What the design itself says, to the letter, and about an application what to do."""
    said = f"{_class(facts)} is being deleted" if facts.get("deleting") else f"{_class(facts)} not found"
    if "kind" not in facts or "name" not in facts:
        return said
    return f"{said}: {_application(facts)} names or is given it. Create the class, or set spec.affinityClass to another"


def _not_allowed(facts: Object) -> str:
    if not facts.get("class") and not facts.get("default"):
        return (
            f"{_application(facts)} names no class, but {_allowed(facts)} and it cannot go without: set "
            "spec.affinityClass to one that is allowed"
        )
    if not facts.get("class"):
        return (
            f"spec.affinityClass of {_application(facts)} is empty, but {_allowed(facts)} and it cannot go without: "
            f"name one of them, or leave the field out for the default {facts['default']}"
        )
    return (
        f"{_application(facts)} cannot have {_class(facts)}: {_allowed(facts)}. Set spec.affinityClass to one that is "
        f"allowed, or have it added to allowedAffinityClasses of {_tenant(facts)}"
    )


def _withdrawn(facts: Object) -> str:
    if not facts.get("class"):
        return (
            f"{_application(facts)} keeps no class, which it may not choose any more: {_allowed(facts)}. Leave "
            f"spec.affinityClass out, or set it to one that is allowed; until then its pods may go anywhere"
        )
    return (
        f"{_application(facts)} keeps {_class(facts)}, which it may not choose any more: {_allowed(facts)}. Set "
        f"spec.affinityClass to one that is allowed; until then its pods stay where they are"
    )


def _no_default(facts: Object) -> str:
    error = f": {facts['error']}" if facts.get("error") else ""
    return (
        f"The default {_class(facts)} of {_tenant(facts)} cannot be used{error}. Set spec.affinityClass of "
        f"{_application(facts)} to a class that is allowed, or mend the tenant"
    )


# releases


def _applied(facts: Object) -> str:
    placed = f", placed by {_class(facts)}" if facts.get("class") else ""
    return f"{_application(facts)} is released as {_release(facts)}{placed}"


def _changed(facts: Object) -> str:
    if not facts.get("class"):
        return f"{_application(facts)} has no class any more: its pods are not checked"
    before = _class({"class": facts["previous"]}) if facts.get("previous") else "no class"
    return (
        f"{_application(facts)} goes from {before} to {_class(facts)}: pods of both are admitted until its release is "
        "ready"
    )


def _pending(facts: Object) -> str:
    if facts.get("why") == "going":
        return f"{_release(facts)} is being deleted and was an earlier one's: {_application(facts)} waits for it"
    said = f": {facts['message']}" if facts.get("message") else ""
    return f"{_release(facts)} is not ready yet{said}"


def _name_conflict(facts: Object) -> str:
    whose = f"is of {facts['of']}" if facts.get("of") else "is not labelled as its own"
    return (
        f"{_release(facts)} exists and {whose}: {_application(facts)} cannot be released under this name. Choose "
        "another name, or delete that release"
    )


def _released_otherwise(facts: Object) -> str:
    return (
        f"{_application(facts)} is released as {names.RELEASE_KIND} {facts.get('namespace', '')}/"
        f"{facts.get('other', '')}; {facts.get('release', '')} would be a second installation beside it. Set "
        f"spec.release.prefix of {_definition(facts)} back, or delete that release if what it runs may go"
    )


SENTENCES: Final[Mapping[Reason, Callable[[Object], str] | str]] = {
    # definitions
    Reason.DEFINITION_SERVED: lambda facts: f"The CRD {facts.get('crd', '')} serves {facts.get('kind', '')}",
    Reason.DEFINITION_CLOSED: lambda facts: (
        f"{_definition(facts)} is being deleted: no more {facts.get('kind', '')} can be made, and the CRD "
        f"{facts.get('crd', '')} goes in a few seconds if there is none"
    ),
    Reason.DEFINITION_WITHDRAWN: lambda facts: (
        f"The CRD {facts.get('crd', '')} goes with {_definition(facts)}: there is no {facts.get('kind', '')} left"
    ),
    Reason.BAD_DEFINITION: lambda facts: f"{_definition(facts)} cannot be served: {_errors(facts)}",
    Reason.BAD_SCHEMA: lambda facts: (
        f"spec.application.openAPISchema of {_definition(facts)} is no schema: {facts.get('error', '')}. What is "
        "served stays as it is"
    ),
    Reason.SCHEMA_SIMPLIFIED: _simplified,
    Reason.RIVAL: _rival,
    Reason.CRD_NOT_OURS: _not_ours,
    Reason.DEFINITION_IN_USE: _in_use,
    Reason.UNWATCHED: lambda facts: (
        f"Applications of kind {facts.get('kind', '')} cannot be watched: {facts.get('error', '')}"
    ),
    Reason.ESTABLISHING: lambda facts: (
        f"The server does not serve {facts.get('crd', '')} yet{': ' if facts.get('error') else ''}"
        f"{facts.get('error') or ''}"
    ),
    Reason.SERVED: lambda facts: f"{facts.get('kind', '')} is served in {names.APPS_API_VERSION}",
    Reason.SERVED_ELSEWHERE: _elsewhere,
    # applications
    Reason.DELETING: lambda facts: f"{facts.get('object') or 'It'} is being deleted",
    Reason.RESERVED_KEY: lambda facts: (
        f"spec of {_application(facts)} has {listed(facts.get('keys', ()))}: keys that begin with "
        f"'{names.RESERVED_PREFIX}' are the platform's. Take them out"
    ),
    Reason.BAD_NAME: lambda facts: (
        f"The name of {_application(facts)} cannot be released: {_errors(facts)}. Choose another name"
    ),
    Reason.NAME_CONFLICT: _name_conflict,
    Reason.CLASS_EXPLICIT: lambda facts: f"{_application(facts)} chooses {_class(facts)}",
    Reason.CLASS_STICKY: lambda facts: (
        f"{_application(facts)} keeps {_class(facts)}, the default when it was released, until it names another"
    ),
    Reason.CLASS_DEFAULT: lambda facts: (
        f"{_application(facts)} names no class and is given {_class(facts)}, the default of {_tenant(facts)}"
    ),
    Reason.CLASS_NONE: _none,
    Reason.CLASS_MISSING: _missing,
    Reason.CLASS_NOT_ALLOWED: _not_allowed,
    Reason.CLASS_WITHDRAWN: _withdrawn,
    Reason.DEFAULT_NOT_ALLOWED: _no_default,
    # releases
    Reason.RELEASE_APPLIED: _applied,
    Reason.VALUES_CLEARED: lambda facts: (
        f"Values of {_release(facts)} that are not those of {_application(facts)} are taken out"
    ),
    Reason.CLASS_CHANGED: _changed,
    Reason.CLASS_SETTLED: lambda facts: (
        f"{_release(facts)} is ready in {_class(facts)}: pods of the class before are not admitted any more"
    ),
    Reason.RELEASE_NOT_SERVED: lambda facts: (
        f"The server has no {names.RELEASE_KIND} in {names.FLUX_API_VERSION}: install Flux's helm-controller, and "
        f"{_application(facts)} is released"
    ),
    Reason.RELEASE_PENDING: _pending,
    Reason.RELEASED_OTHERWISE: _released_otherwise,
    Reason.SWITCHING: lambda facts: (
        f"{_application(facts)} goes to {_class(facts)}; until its release is ready, pods of "
        f"{facts.get('previous') or 'no class'} are admitted as well"
    ),
    Reason.ENFORCED: lambda facts: f"Pods outside {_class(facts)} are refused",
    Reason.NOT_ENFORCED: lambda facts: (
        f"{_class(facts)} is not enforced ({facts.get('enforcement', '')}): pods outside it are admitted"
    ),
    Reason.NOT_ASKED: lambda facts: (
        f"Pods outside {_class(facts)} are not refused: the API server does not ask nodeyard about pods. Run it with "
        "webhooks (--webhook-bind)"
    ),
    # what would change it
    Reason.CHOOSE_ALLOWED: lambda facts: (
        f"Set spec.affinityClass to one of {listed(facts['allowed'], 10)}"
        if facts.get("allowed")
        else "Set spec.affinityClass to a class that is allowed"
    ),
    Reason.ALLOW_CLASS: lambda facts: f"Add {facts.get('class', 'it')} to allowedAffinityClasses of {_tenant(facts)}",
    Reason.CREATE_CLASS: lambda facts: f"Create {_class(facts)}",
}
