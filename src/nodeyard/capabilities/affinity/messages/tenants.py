"""Texts about tenants, their namespaces and values.

Applications share some of the reasons. The facts of a tenant have the kind Tenant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.kube.json import Object
from nodeyard.kube.names import PAUSED
from nodeyard.plan.layout import counted
from nodeyard.plan.message_format import listed

_NAMED: Final = 10


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


# namespace and values


def _bad_name(facts: Object) -> str:
    return f"{_tenant(facts)} cannot have a namespace: {_errors(facts)}. Recreate it under another name"


def _parent_missing(facts: Object) -> str:
    missing, kind = facts.get("missing", ""), names.TENANT_KIND
    if facts.get("why") == "gone":
        return f"{_tenant(facts)} has no parent: namespace {missing} does not exist"
    if facts.get("why") == "foreign":
        return f"{_tenant(facts)} has no parent: namespace {missing} was not created for the {kind} of its name"
    return (
        f"{_tenant(facts)} has no parent: namespace {missing} belongs to no {kind}. Create the {kind} of {missing}, "
        "or create this one in the namespace of another tenant"
    )


def _name_conflict(facts: Object) -> str:
    whose = f"belongs to the {names.TENANT_KIND} with uid {facts['of']}" if facts.get("of") else "belongs to no tenant"
    return (
        f"{_own(facts)} already exists and {whose}, so {_tenant(facts)} does not use it. Delete it, choose another "
        f"name, or hand it over: kubectl annotate --overwrite namespace {facts.get('own', '')} "
        f"{names.TENANT}={facts.get('uid', '')}"
    )


def _going(facts: Object) -> str:
    return f"Namespace {facts.get('going', '')} is being deleted: {_tenant(facts)} waits until it is gone"


def _bad_host(facts: Object) -> str:
    remedy = "Set spec.host to another name" if facts.get("is_own") else "Set spec.host to a shorter name"
    return f"Host {facts.get('host', '')!r} of {_tenant(facts)} is invalid: {_errors(facts)}. {remedy}"


def _bad_values(facts: Object) -> str:
    return (
        f"{_values(facts)} is not updated: {names.VALUES_KEY} of its source, Secret {facts.get('of', '')}/"
        f"{names.VALUES_SECRET}, cannot be read: {facts.get('error', '')}"
    )


# classes


def _not_in_parent(facts: Object) -> str:
    classes, allowed = facts.get("classes", ()), facts.get("allowed") or ()
    within = f"allows only {listed(allowed, _NAMED)}" if allowed else "allows no class"
    return (
        f"spec.allowedAffinityClasses of {_tenant(facts)} has {listed(classes, _NAMED)}, but its parent "
        f"{facts.get('parent', '')} {within}. Remove {_them(classes)}, or allow {_them(classes)} in the parent first"
    )


def _default_not_allowed(facts: Object) -> str:
    allowed = facts.get("allowed") or ()
    among = f"not one of the allowed classes {listed(allowed, _NAMED)}" if allowed else "not allowed: no class is"
    own = facts.get("source") == facts.get("own")
    whose = "" if own else f", inherited from {facts.get('source', '')},"
    remedy = 'one of them, or to "" for none' if allowed else '"" for none'
    return (
        f"The default class {facts.get('default', '')} of {_tenant(facts)}{whose} is {among}. Set "
        f"spec.defaultAffinityClass to {remedy}; until then applications that name no class are rejected"
    )


def _class_missing(facts: Object) -> str:
    classes = facts.get("classes", ())
    one = len(classes) == 1
    return (
        f"{_tenant(facts)} names {names.CLASS_KIND} {listed(classes, _NAMED)}, which {'does' if one else 'do'} not "
        f"exist. Create {_them(classes)}, or remove {_them(classes)} from the spec"
    )


def _them(classes: Sequence[Any]) -> str:
    return "it" if len(classes) == 1 else "them"


# deletion


def _in_use(facts: Object) -> str:
    children, applications = facts.get("children") or (), facts.get("applications", 0)
    parts = []
    if children:
        parts.append(f"{counted(len(children), 'tenant')} ({listed(children, _NAMED)})")
    if applications:
        named = f" ({listed(facts['users'], _NAMED)})" if facts.get("users") else ""
        parts.append(f"{counted(applications, 'application')}{named}")
    return f"{_tenant(facts)} is in use by {' and '.join(parts)} in {facts.get('own', '')}: delete them first"


def _contents(facts: Object) -> str:
    """List the objects that are deleted with a Namespace, as far as they are known."""
    left = facts.get("left") or {}
    known = [counted(number, kind) for kind, number in left.items()]
    return ", ".join([*known, "everything else in it, such as Secrets"])


MESSAGES: Final[Mapping[Reason, Callable[[Object], str]]] = {
    # actions
    Reason.FINALIZER_ADDED: lambda facts: f"Added finalizer {names.TENANT_FINALIZER} to {_tenant(facts)}",
    Reason.FINALIZER_REMOVED: lambda facts: f"Removed finalizer {names.TENANT_FINALIZER} from {_tenant(facts)}",
    Reason.NAMESPACE_APPLIED: lambda facts: f"Applied {_own(facts)} of {_tenant(facts)}",
    Reason.NAMESPACE_DELETED: lambda facts: f"Deleted {_own(facts)} of {_tenant(facts)}, with {_contents(facts)}",
    Reason.NAMESPACE_HELD: lambda facts: (
        f"Deletion of {_tenant(facts)} waits for approval: it deletes {_own(facts)} with {_contents(facts)}. Delete "
        f"what is left in the namespace, or run {' '.join(filter(None, ('nodeyard approve', facts.get('id'))))}"
    ),
    Reason.VALUES_APPLIED: lambda facts: f"Applied {_values(facts)} of {_tenant(facts)}",
    # refusals
    Reason.PAUSED: lambda facts: f"{_tenant(facts)} is paused by annotation {PAUSED}",
    Reason.SERVED_ELSEWHERE: lambda facts: (
        f"Not managed here: an APIService serves {names.APPS_GROUP}, so the namespace and values of {_tenant(facts)} "
        "belong to the platform"
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
    Reason.CLASS_TAKEN: lambda facts: (
        f"this change of {_tenant(facts)} revokes {names.CLASS_KIND} {listed(facts.get('classes', ()))} in "
        f"{facts.get('place', '')}: {listed(facts.get('users', ()), _NAMED)} keep it, and their pods keep running "
        "where they are, until they name another class"
    ),
    Reason.TENANT_IN_USE: _in_use,
    Reason.UNWATCHED: lambda facts: (
        f"{_tenant(facts)} is not deleted: the contents of {_own(facts)} are unknown: {facts.get('error', '')}"
    ),
    # states
    Reason.DELETING: lambda facts: f"{_tenant(facts)} is being deleted",
    Reason.NAMESPACE_PENDING: lambda facts: f"{_own(facts)} does not exist yet",
    Reason.TENANT_READY: lambda facts: f"{_own(facts)} matches {_tenant(facts)}",
    Reason.CLASSES_VALID: lambda facts: (
        f"All classes of {_tenant(facts)} exist and are allowed"
        if facts.get("named")
        else f"{_tenant(facts)} names no class of its own"
    ),
}
