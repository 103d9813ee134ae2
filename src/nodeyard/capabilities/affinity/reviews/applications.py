"""Review applications of any declared kind: name, reserved keys and class, in the order of CozyStack's checks.

Validation of updates is ratcheting: an application whose class was withdrawn, or whose name is no longer valid, can
still be scaled.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collect.applications import application_kinds, policy_of
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.messages.applications import (
    BadApplicationName,
    KeptFromDefault,
    NoClass,
    ReleaseConflict,
    ReservedKey,
)
from nodeyard.capabilities.affinity.messages.objects import Deleting
from nodeyard.capabilities.affinity.planning.application_plan import (
    conflict,
    name_faults,
    record_of,
    reserved_keys,
    unusable_keys,
)
from nodeyard.capabilities.affinity.planning.choice import choose, wanted_class
from nodeyard.capabilities.affinity.planning.class_record import Record, stored_record
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot, release_name
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import (
    AdmissionRequest,
    AdmissionResponse,
    allowed,
    denied,
    invalid,
    patched,
    warn_existing,
)


def review(review: AdmissionRequest, view: View) -> AdmissionResponse:
    if review.object is None or review.subresource or review.kind.kind == names.TENANT_KIND:
        return allowed()
    application = keep_record(_with_name(review.object, review), review.old_object)
    definition = application_kinds(view).get(review.kind.kind)
    if definition is None or application["metadata"].get("deletionTimestamp") or is_served_elsewhere(view):
        # Not declared here, being deleted, or served by the platform.
        return allowed()
    snapshot = _snapshot(application, definition, view)
    old = review.old_object
    refused = _create_faults(snapshot) if old is None else _update_faults(snapshot, old)
    if refused is not None:
        return refused
    response = _review_class(snapshot, old)
    return response.with_warnings(*_warnings(snapshot, old)) if response.is_allowed else response


def review_record(review: AdmissionRequest, view: View) -> AdmissionResponse:
    """Restore the record of the class, unless the new one is what the operator would record.

    Users who replace an object need not know of the record. The operator is recognized by the content it writes:
    outside a cluster it has no ServiceAccount of its own.
    """
    if review.object is None or review.old_object is None or review.subresource:
        return allowed()
    kept = keep_record(review.object, review.old_object)
    if kept is review.object:
        return allowed()
    record = stored_record(review.object)
    # Without a valid record before and after, nothing is lost; the operator never removes one.
    due = stored_record(review.old_object) if record is None else _record_due(_with_name(kept, review), view)
    return allowed() if record == due else patched(kept)


def _record_due(application: Object, view: View) -> Record | None:
    """Return the record that the operator would write now; None if it would write none."""
    definition = application_kinds(view).get(application["kind"])
    if definition is None or is_served_elsewhere(view):
        return None
    snapshot = _snapshot(application, definition, view)
    choice = choose(snapshot)
    return None if choice.is_blocking else record_of(snapshot, choice)


def keep_record(application: Object, old: Object | None) -> Object:
    """Return the application with its old record; the same object if the record did not change."""
    before, after = ((each or {}).get("metadata") or {} for each in (old, application))
    had = (before.get("annotations") or {}).get(names.CLASS_RECORD)
    annotations = after.get("annotations") or {}
    if annotations.get(names.CLASS_RECORD) == had:
        return application
    others = {key: value for key, value in annotations.items() if key != names.CLASS_RECORD}
    kept = others if had is None else {**others, names.CLASS_RECORD: had}
    return {**application, "metadata": {**after, "annotations": kept}}


def _with_name(obj: Object, review: AdmissionRequest) -> Object:
    """Return the object with kind, namespace and name; the name is empty if the server generates it."""
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or review.name
    named = {**metadata, "name": name, "namespace": review.namespace}
    return {**obj, "kind": review.kind.kind, "metadata": named}


def _snapshot(application: Object, definition: ApplicationDefinition, view: View) -> ApplicationSnapshot:
    metadata = application["metadata"]
    return ApplicationSnapshot(
        application=application,
        definition=definition,
        policy=policy_of(view, metadata["namespace"]),
        classes={each.name: each for each in view.all(names.CLASS_KIND)},
        release=view.get(names.RELEASE_KIND, release_name(definition, metadata["name"]), metadata["namespace"]),
    )


# name and reserved keys


def _create_faults(snapshot: ApplicationSnapshot) -> AdmissionResponse | None:
    definition, ref = snapshot.definition, snapshot.ref
    if definition.is_deleting:
        return denied(Deleting(object=definition.ref).text())
    tenant = snapshot.policy.tenant
    if tenant is not None and tenant.is_deleting:
        # The namespace is deleted as soon as it is empty.
        return denied(Deleting(object=tenant.ref).text())
    if ref.name and (faults := name_faults(definition, ref.name)):
        return invalid([BadApplicationName(object=ref, errors=faults).text()])
    if reserved := reserved_keys(snapshot.application):
        return invalid([ReservedKey(object=ref, keys=reserved).text()])
    found = None if snapshot.release is None else conflict(snapshot, snapshot.release)
    return denied(found.text()) if isinstance(found, ReleaseConflict) else None


def _update_faults(snapshot: ApplicationSnapshot, old: Object) -> AdmissionResponse | None:
    """Check only new reserved keys; names are immutable."""
    added = sorted(set(reserved_keys(snapshot.application)) - set(reserved_keys(old)))
    return invalid([ReservedKey(object=snapshot.ref, keys=added).text()]) if added else None


# the class


def _review_class(snapshot: ApplicationSnapshot, old: Object | None) -> AdmissionResponse:
    choice = choose(snapshot)
    message = choice.message.text()
    if not choice.is_refused:
        # Whoever wrote the HelmRelease chose the class, if any.
        is_adopted = isinstance(choice.message, KeptFromDefault | NoClass) and choice.message.adopted
        return allowed(message) if old is None and is_adopted else allowed()
    is_fresh = old is None or wanted_class(old) != wanted_class(snapshot.application)
    return denied(message) if is_fresh and choice.is_blocking else allowed(warn_existing(message))


def _warnings(snapshot: ApplicationSnapshot, old: Object | None) -> Iterator[str]:
    earlier = [] if old is None else reserved_keys(old)
    if kept := sorted(set(earlier) & set(reserved_keys(snapshot.application))):
        yield ReservedKey(object=snapshot.ref, keys=kept).text()
    fresh = set(unusable_keys(snapshot.application["metadata"]))
    for key in sorted(fresh - set(unusable_keys((old or {}).get("metadata") or {}))):
        yield f"{key} is not copied to the HelmRelease: {names.USER_KEY_PREFIX}{key} would be too long"
