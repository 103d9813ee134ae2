"""ApplicationDefinitions: what could not be served is not stored, and one whose kind is in use is not deleted.

Those of a platform that serves its kinds itself are its own matter: it has one of the kind Tenant, for example.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.collecting import application_kinds, applications, is_served_elsewhere, rivals
from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.planning.declarations import declaration_faults
from nodeyard.capabilities.affinity.planning.definitions import definition_facts
from nodeyard.capabilities.affinity.planning.schemas import SchemaError, structural
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.types import ApplicationDefinition
from nodeyard.kube.json import Object
from nodeyard.runtime.capability import View
from nodeyard.runtime.judging import decoded, judged
from nodeyard.runtime.webhooks import Review, Verdict, allowed, denied


def review(review: Review, view: View) -> Verdict:
    new, old = (decoded(each, ApplicationDefinition) for each in (review.object, review.old_object))
    if review.operation == "DELETE":
        return allowed() if old is None else _review_removal(old, view)
    if new is None or new.is_deleting or is_served_elsewhere(view):
        return allowed()
    faults = _faults(new, view)
    before = [] if old is None else _faults(old, view)
    fresh = [each for each in faults if each not in before]
    if old is not None:
        fresh += [*_renamed(new, old), *_released_anew(new, old, view)]
    return judged(fresh, [each for each in faults if each in before], _simplified(new, old))


# what cannot be served


def _faults(definition: ApplicationDefinition, view: View) -> list[str]:
    facts = definition_facts(definition)
    faults = declaration_faults(definition)
    found = [text(Reason.BAD_DEFINITION, {**facts, "errors": [each]}) for each in faults]
    try:
        structural(definition.spec.application.open_api_schema)
    except SchemaError as error:
        found.append(text(Reason.BAD_SCHEMA, {**facts, "error": str(error)}))
    if others := [each.name for each in rivals(view, definition)]:
        found.append(text(Reason.RIVAL, {**facts, "rivals": others}))
    return found


def _renamed(new: ApplicationDefinition, old: ApplicationDefinition) -> list[str]:
    """A kind that is served cannot be called otherwise: its objects would be left behind."""
    return [
        f"spec.application.{field} of {names.DEFINITION_KIND} {new.name} cannot change from {before!r} to {after!r}: "
        "make another definition, and delete this one when it is not used any more"
        for field, before, after in (
            ("kind", old.kind, new.kind),
            ("plural", old.spec.application.plural, new.spec.application.plural),
        )
        if before != after
    ]


def _released_anew(new: ApplicationDefinition, old: ApplicationDefinition, view: View) -> list[str]:
    """With another prefix every application would be installed a second time."""
    before, after = old.spec.release.prefix, new.spec.release.prefix
    count = len(applications(view, old.kind)) if before != after else 0
    if not count:
        return []
    return [
        f"spec.release.prefix of {names.DEFINITION_KIND} {new.name} cannot change from {before!r} to {after!r} while "
        f"there are applications ({count}): each would be installed a second time under the new name"
    ]


def _simplified(new: ApplicationDefinition, old: ApplicationDefinition | None) -> Iterator[str]:
    schema = new.spec.application.open_api_schema
    if old is not None and old.spec.application.open_api_schema == schema:
        return
    try:
        _, left_out = structural(schema)
    except SchemaError:
        return
    if left_out:
        yield text(Reason.SCHEMA_SIMPLIFIED, {**definition_facts(new), "left_out": list(left_out)})


# deletion


def _review_removal(old: ApplicationDefinition, view: View) -> Verdict:
    users = [_name(each) for each in applications(view, old.kind)]
    if not users or _is_idle(old, view):
        return allowed()
    facts = {**definition_facts(old), "applications": len(users), "users": users}
    return denied(text(Reason.DEFINITION_IN_USE, facts))


def _is_idle(definition: ApplicationDefinition, view: View) -> bool:
    """Whether another one declares its kind, and this one never had a part in it: the applications are the other's."""
    counting = application_kinds(view).get(definition.kind)
    is_others = counting is not None and counting.name != definition.name
    return is_others and names.DEFINITION_FINALIZER not in definition.metadata.finalizers


def _name(application: Object) -> str:
    return f"{application['metadata'].get('namespace', '')}/{application['metadata']['name']}"
