"""What is said about tenants, their namespaces and values.

Some of the reasons are also those of applications; the facts of a tenant have the kind Tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.plan.layout import counted
from nodeyard.plan.sentences import listed

_NAMED: Final = 10


def sentence(reason: str, facts: Object) -> str:
    return SENTENCES[Reason(reason)](facts)


def is_about_tenant(facts: Object) -> bool:
    return facts.get("kind") == names.TENANT_KIND


def _tenant(facts: Object) -> str:
    return f"{names.TENANT_KIND} {facts.get('namespace', '')}/{facts.get('name', '')}"


def _own(facts: Object) -> str:
    return f"Namespace {facts.get('own', '')}"


def _values(facts: Object) -> str:
    return f"Secret {facts.get('own', '')}/{names.VALUES_SECRET}"


def _errors(facts: Object) -> str:
    return "; ".join(map(str, facts.get("errors", ())))


# where it is


def _bad_name(facts: Object) -> str:
    return f"{_tenant(facts)} cannot have a namespace: {_errors(facts)}. Make it again under another name"


def _parent_missing(facts: Object) -> str:
    missing, kind = facts.get("missing", ""), names.TENANT_KIND
    if facts.get("why") == "gone":
        return f"{_tenant(facts)} has no parent: there is no namespace {missing}"
    if facts.get("why") == "foreign":
        return f"{_tenant(facts)} has no parent: the namespace {missing} was not made for the {kind} of its name"
    return (
        f"{_tenant(facts)} has no parent: the namespace {missing} belongs to no {kind}. Make the {kind} of {missing}, "
        "or make this one in the namespace of another tenant"
    )


def _name_conflict(facts: Object) -> str:
    whose = f"of the {names.TENANT_KIND} with uid {facts['of']}" if facts.get("of") else "not made for a tenant"
    return (
        f"{_own(facts)} exists and is {whose}, so {_tenant(facts)} leaves it alone. Delete it, choose another name, or "
        f"hand it over: kubectl annotate --overwrite namespace {facts.get('own', '')} "
        f"{names.TENANT}={facts.get('uid', '')}"
    )


def _going(facts: Object) -> str:
    return f"Namespace {facts.get('going', '')} is being deleted: {_tenant(facts)} waits until it is gone"


def _bad_host(facts: Object) -> str:
    remedy = "Set spec.host to another" if facts.get("is_own") else "Set spec.host to a shorter one"
    return f"The host {facts.get('host', '')!r} of {_tenant(facts)} cannot be used: {_errors(facts)}. {remedy}"


def _bad_values(facts: Object) -> str:
    return (
        f"{_values(facts)} stays as it is: {names.VALUES_KEY} of Secret {facts.get('of', '')}/{names.VALUES_SECRET}, "
        f"which it is made from, cannot be read: {facts.get('error', '')}"
    )


# its classes


def _not_in_parent(facts: Object) -> str:
    classes, allowed = facts.get("classes", ()), facts.get("allowed") or ()
    within = f"allows only {listed(allowed, _NAMED)}" if allowed else "allows no class"
    return (
        f"spec.allowedAffinityClasses of {_tenant(facts)} has {listed(classes, _NAMED)}, but its parent "
        f"{facts.get('parent', '')} {within}. Take {_them(classes)} out, or have {_them(classes)} allowed there first"
    )


def _default_not_allowed(facts: Object) -> str:
    allowed = facts.get("allowed") or ()
    among = f"not among the allowed classes {listed(allowed, _NAMED)}" if allowed else "not allowed: no class is"
    own = facts.get("source") == facts.get("own")
    whose = "" if own else f", inherited from {facts.get('source', '')},"
    remedy = 'one of them, or to "" for none' if allowed else '"" for none'
    return (
        f"The default class {facts.get('default', '')} of {_tenant(facts)}{whose} is {among}. Set "
        f"spec.defaultAffinityClass to {remedy}; until then applications that name no class are refused"
    )


def _class_missing(facts: Object) -> str:
    classes = facts.get("classes", ())
    one = len(classes) == 1
    return (
        f"{_tenant(facts)} names {names.CLASS_KIND} {listed(classes, _NAMED)}, which {'does' if one else 'do'} not "
        "exist. "
        f"Create {_them(classes)}, or take {_them(classes)} out"
    )


def _them(classes: Sequence[Any]) -> str:
    return "it" if len(classes) == 1 else "them"


# when it goes


def _in_use(facts: Object) -> str:
    children, applications = facts.get("children") or (), facts.get("applications", 0)
    parts = []
    if children:
        parts.append(f"{counted(len(children), 'tenant')} ({listed(children, _NAMED)})")
    if applications:
        named = f" ({listed(facts['users'], _NAMED)})" if facts.get("users") else ""
        parts.append(f"{counted(applications, 'application')}{named}")
    return f"{_tenant(facts)} is in use by {' and '.join(parts)} in {facts.get('own', '')}: delete these first"


SENTENCES: Final[Mapping[Reason, Callable[[Object], str]]] = {
    # what is done
    Reason.FINALIZER_ADDED: lambda facts: f"Takes {_tenant(facts)} into care",
    Reason.FINALIZER_REMOVED: lambda facts: f"Is done with {_tenant(facts)}",
    Reason.NAMESPACE_APPLIED: lambda facts: f"{_own(facts)} is made what {_tenant(facts)} says",
    Reason.NAMESPACE_DELETED: lambda facts: f"{_own(facts)} goes with {_tenant(facts)}: nothing in it is in use",
    Reason.VALUES_APPLIED: lambda facts: f"{_values(facts)} tells applications what {_tenant(facts)} says",
    # why it is not
    Reason.PAUSED: lambda facts: f"{_tenant(facts)} is paused",
    Reason.SERVED_ELSEWHERE: lambda facts: (
        f"An APIService serves {names.APPS_GROUP}: the namespace and the values of {_tenant(facts)} are the platform's"
    ),
    Reason.BAD_NAME: _bad_name,
    Reason.PARENT_MISSING: _parent_missing,
    Reason.NAME_CONFLICT: _name_conflict,
    Reason.NAMESPACE_GOING: _going,
    Reason.BAD_HOST: _bad_host,
    Reason.BAD_VALUES: _bad_values,
    Reason.NOT_IN_PARENT: _not_in_parent,
    Reason.DEFAULT_NOT_ALLOWED: _default_not_allowed,
    Reason.CLASS_MISSING: _class_missing,
    Reason.TENANT_IN_USE: _in_use,
    Reason.UNWATCHED: lambda facts: (
        f"{_tenant(facts)} stays, since it is not known whether it has applications: {facts.get('error', '')}"
    ),
    # how it stands
    Reason.DELETING: lambda facts: f"{_tenant(facts)} is being deleted",
    Reason.NAMESPACE_PENDING: lambda facts: f"{_own(facts)} is not there yet",
    Reason.TENANT_READY: lambda facts: f"{_own(facts)} is as {_tenant(facts)} says",
    Reason.CLASSES_VALID: lambda facts: (
        f"Every class that {_tenant(facts)} names exists and is allowed"
        if facts.get("named")
        else f"{_tenant(facts)} names no class of its own"
    ),
}
