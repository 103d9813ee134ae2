"""Review ApplicationDefinitions: deny those that cannot be served, and the deletion of one in use.

Definitions of a platform that serves its kinds itself are not reviewed: CozyStack has one of the kind Tenant.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collect.applications import application_kinds, applications, rivals
from nodeyard.capabilities.affinity.collect.owners import is_served_elsewhere
from nodeyard.capabilities.affinity.messages.definitions import (
    DefinitionInUse,
    DuplicateDefinition,
    InvalidDefinition,
    InvalidSchema,
    SchemaSimplified,
)
from nodeyard.capabilities.affinity.planning.structural_schema import SchemaError, structural
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.capabilities.affinity.validation import declaration_faults
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.webhooks import AdmissionRequest, AdmissionResponse, allowed, decode, denied, ratchet


def review(review: AdmissionRequest, view: View) -> AdmissionResponse:
    new, old = (decode(each, ApplicationDefinition) for each in (review.object, review.old_object))
    if review.operation == "DELETE":
        return allowed() if old is None else _review_removal(old, view)
    if new is None or new.is_deleting or is_served_elsewhere(view):
        return allowed()
    faults = _faults(new, view)
    before = [] if old is None else _faults(old, view)
    fresh = [each for each in faults if each not in before]
    if old is not None:
        fresh += [*_rename_faults(new, old), *_prefix_faults(new, old, view)]
    return ratchet(fresh, [each for each in faults if each in before], _schema_warnings(new, old))


# validation


def _faults(definition: ApplicationDefinition, view: View) -> list[str]:
    ref = definition.ref
    found = [InvalidDefinition(object=ref, errors=[each]).text() for each in declaration_faults(definition)]
    try:
        structural(definition.spec.application.open_api_schema)
    except SchemaError as error:
        found.append(InvalidSchema(object=ref, error=str(error)).text())
    if others := [each.name for each in rivals(view, definition)]:
        found.append(DuplicateDefinition(object=ref, kind=definition.kind, rivals=others).text())
    return found


def _rename_faults(new: ApplicationDefinition, old: ApplicationDefinition) -> list[str]:
    """Return the faults of a changed kind or plural: the existing objects would be orphaned."""
    return [
        f"spec.application.{field} of {names.DEFINITION_KIND} {new.name} cannot change from {before!r} to {after!r}: "
        "create another definition, and delete this one once it is no longer used"
        for field, before, after in (
            ("kind", old.kind, new.kind),
            ("plural", old.spec.application.plural, new.spec.application.plural),
        )
        if before != after
    ]


def _prefix_faults(new: ApplicationDefinition, old: ApplicationDefinition, view: View) -> list[str]:
    """Return the fault of a changed prefix: every application would be installed a second time."""
    before, after = old.spec.release.prefix, new.spec.release.prefix
    count = len(applications(view, old.kind)) if before != after else 0
    if not count:
        return []
    return [
        f"spec.release.prefix of {names.DEFINITION_KIND} {new.name} cannot change from {before!r} to {after!r} while "
        f"there are applications ({count}): each would be installed a second time under the new name"
    ]


def _schema_warnings(new: ApplicationDefinition, old: ApplicationDefinition | None) -> Iterator[str]:
    schema = new.spec.application.open_api_schema
    if old is not None and old.spec.application.open_api_schema == schema:
        return
    try:
        _, left_out = structural(schema)
    except SchemaError:
        return
    if left_out:
        yield SchemaSimplified(kind=new.kind, left_out=left_out).text()


# deletion


def _review_removal(old: ApplicationDefinition, view: View) -> AdmissionResponse:
    users = [_name(each) for each in applications(view, old.kind)]
    if not users or _is_idle(old, view):
        return allowed()
    return denied(DefinitionInUse(object=old.ref, kind=old.kind, applications=len(users), users=users).text())


def _is_idle(definition: ApplicationDefinition, view: View) -> bool:
    """Return whether another definition serves the kind and this one never did: the applications are the other's."""
    counting = application_kinds(view).get(definition.kind)
    is_others = counting is not None and counting.name != definition.name
    return is_others and names.DEFINITION_FINALIZER not in definition.metadata.finalizers


def _name(application: Object) -> str:
    return f"{application['metadata'].get('namespace', '')}/{application['metadata']['name']}"
