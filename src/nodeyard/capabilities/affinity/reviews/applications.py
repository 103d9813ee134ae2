"""Applications of any declared kind, before they are stored: name, reserved keys, and the class they ask for.

In the order in which CozyStack looks at a new one. An update is judged by what it changes: an application whose class
was withdrawn, or whose name would not be taken today, can still be scaled.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import application_kinds, is_served_elsewhere
from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.planning.choice import choose, wanted_class
from nodeyard.capabilities.affinity.planning.naming import tenant_facts
from nodeyard.capabilities.affinity.planning.releases import (
    conflict,
    facts_of,
    name_faults,
    release_name,
    reserved_keys,
)
from nodeyard.capabilities.affinity.planning.releasing import unusable_keys
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.capabilities.affinity.surroundings import standing_of
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import invalid, let_through
from nodeyard.runtime.webhooks import Review, Verdict, allowed, denied


def review(review: Review, view: View) -> Verdict:
    if review.object is None or review.subresource or review.kind.kind == names.TENANT_KIND:
        return allowed()
    application = _named(review.object, review)
    definition = application_kinds(view).get(review.kind.kind)
    if definition is None or application["metadata"].get("deletionTimestamp") or is_served_elsewhere(view):
        # One that nobody declares here, one that goes, or one of a platform that serves its kinds itself.
        return allowed()
    snapshot = _snapshot(application, definition, view)
    old = review.old_object
    refused = _create_faults(snapshot) if old is None else _update_faults(snapshot, old)
    if refused is not None:
        return refused
    verdict = _class_verdict(snapshot, old)
    return verdict.warning(*_warnings(snapshot, old)) if verdict.is_allowed else verdict


def _named(obj: Object, review: Review) -> Object:
    """The object as it will be called; what a server-made name begins with, where it has none yet."""
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or review.name
    named = {**metadata, "name": name, "namespace": review.namespace}
    return {**obj, "kind": review.kind.kind, "metadata": named}


def _snapshot(application: Object, definition: ApplicationDefinition, view: View) -> ApplicationSnapshot:
    metadata = application["metadata"]
    return ApplicationSnapshot(
        application=application,
        definition=definition,
        standing=standing_of(view, metadata["namespace"]),
        classes={each.name: each for each in view.all(names.CLASS_KIND)},
        release=view.get(names.RELEASE_KIND, release_name(definition, metadata["name"]), metadata["namespace"]),
    )


# what can never be released


def _create_faults(snapshot: ApplicationSnapshot) -> Verdict | None:
    application, definition = snapshot.application, snapshot.definition
    facts = facts_of(snapshot)
    if definition.is_deleting:
        return denied(text(Reason.DELETING, {**facts, "object": f"{names.DEFINITION_KIND} {definition.name}"}))
    tenant = snapshot.standing.tenant
    if tenant is not None and tenant.is_deleting:
        # Its namespace goes as soon as nothing is left in it.
        return denied(text(Reason.DELETING, tenant_facts(tenant)))
    if facts["name"] and (faults := name_faults(definition, facts["name"])):
        return invalid([text(Reason.BAD_NAME, {**facts, "errors": faults})])
    if reserved := reserved_keys(application):
        return invalid([text(Reason.RESERVED_KEY, {**facts, "keys": reserved})])
    found = None if snapshot.release is None else conflict(application, snapshot.release, facts)
    if found is not None and found[0] is Reason.NAME_CONFLICT:
        return denied(text(*found))
    return None


def _update_faults(snapshot: ApplicationSnapshot, old: Object) -> Verdict | None:
    """Names are not looked at again: they cannot change."""
    added = sorted(set(reserved_keys(snapshot.application)) - set(reserved_keys(old)))
    if not added:
        return None
    return invalid([text(Reason.RESERVED_KEY, facts_of(snapshot, keys=added))])


# the class


def _class_verdict(snapshot: ApplicationSnapshot, old: Object | None) -> Verdict:
    choice = choose(snapshot)
    if not choice.is_blocking and choice.reason is not Reason.CLASS_WITHDRAWN:
        return allowed()
    said = text(choice.reason, choice.facts)
    is_fresh = old is None or wanted_class(old) != wanted_class(snapshot.application)
    return denied(said) if is_fresh and choice.is_blocking else allowed(let_through(said))


def _warnings(snapshot: ApplicationSnapshot, old: Object | None) -> Iterator[str]:
    standing = [] if old is None else reserved_keys(old)
    if kept := sorted(set(standing) & set(reserved_keys(snapshot.application))):
        yield text(Reason.RESERVED_KEY, facts_of(snapshot, keys=kept))
    fresh = set(unusable_keys(snapshot.application["metadata"]))
    for key in sorted(fresh - set(unusable_keys((old or {}).get("metadata") or {}))):
        yield f"{key} is too long to be passed on to the HelmRelease as {names.USER_KEY_PREFIX}{key}, and is left out"
