"""Answers to "why": finds the object, and joins the decisions about it with its conditions, held plans and operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nodeyard.app.operators import Operators
from nodeyard.client.api import Client
from nodeyard.client.errors import NotFound
from nodeyard.dashboard.answers import CANDIDATES, to_wire
from nodeyard.dashboard.wire import Why
from nodeyard.kube.json import Object
from nodeyard.kube.objects import Condition
from nodeyard.plan.explain import Answer, compose
from nodeyard.plan.model import Decision, ObjectRef
from nodeyard.runtime.annotations import ref_of
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.dry_plan import DryPlan
from nodeyard.watch.view import CacheView


class BadName(ValueError):
    """The name after an alias does not have its form; the text shows the form."""


def compose_answers(
    explained: Iterable[tuple[DryPlan, Decision]], operators: Operators, ref: ObjectRef, obj: Object
) -> list[Answer]:
    """Join each decision about an object with its conditions, held plans and the operator of the capability."""
    conditions = conditions_of(obj)
    generation = int((obj.get("metadata") or {}).get("generation") or 0)
    is_known = not operators.error
    return [
        compose(
            dry_plan.capability.name,
            decision,
            fine=dry_plan.capability.explain.healthy,
            conditions=conditions if _is_same(decision.object, ref) else (),
            generation=generation,
            held=dry_plan.held_for(decision.object),
            pause=dry_plan.pause,
            is_served=not is_known or dry_plan.capability.name in operators.running,
        )
        for dry_plan, decision in explained
    ]


def why_to_wire(
    answers: Iterable[Answer],
    explained: Iterable[tuple[DryPlan, Decision]],
    views: Mapping[str, CacheView],
    ref: ObjectRef,
    obj: Object,
    most: int | None = CANDIDATES,
) -> Why:
    """Return the composed answers in wire form, each with at most `most` candidates. `views` are by capability."""
    conditions = conditions_of(obj)
    found = (
        to_wire(
            answer,
            dry_plan.capability,
            views[dry_plan.capability.name],
            conditions if _is_same(decision.object, ref) else (),
            most,
        )
        for answer, (dry_plan, decision) in zip(answers, explained, strict=True)
    )
    return Why(object=ref, answers=tuple(found))


def conditions_of(obj: Object) -> Sequence[Condition]:
    """Return status.conditions of an object; entries that do not decode are skipped."""
    found = (obj.get("status") or {}).get("conditions")
    conditions = []
    for each in found if isinstance(found, list) else ():
        try:
            conditions.append(msgspec.convert(each, Condition))
        except msgspec.ValidationError:
            continue
    return conditions


def _is_same(one: ObjectRef, other: ObjectRef) -> bool:
    return (one.kind, one.namespace, one.name, one.cluster) == (other.kind, other.namespace, other.name, other.cluster)


async def find_subject(
    client: Client, capabilities: Iterable[Capability], kind: str, name: str, namespace: str
) -> tuple[ObjectRef, Object]:
    """Get the object that a user names: by a kind as in kubectl, or by an alias such as pool/CLUSTER/NAME.

    Raises UnknownResource if the kind is unknown or ambiguous, BadName if a name does not fit its alias, and NotFound
    if the object is missing.
    """
    found = await _find_alias(client, capabilities, kind, name)
    if found is not None:
        return found
    resource = (await client.catalog()).find(kind).resource
    obj = await client.get(resource, name, namespace if resource.namespaced else "")
    return ref_of(obj, resource.api_version, resource.kind), obj


async def _find_alias(
    client: Client, capabilities: Iterable[Capability], word: str, name: str
) -> tuple[ObjectRef, Object] | None:
    """Resolve an alias of a capability; None if the word is no alias. The object is empty if it does not exist yet."""
    aliases = (each.explain.aliases for each in capabilities)
    alias = next((found[word] for found in aliases if word in found), None)
    if alias is None:
        return None
    refs = alias.parse(name)
    if not refs:
        raise BadName(f'"{name}" names no {word}; write it as {word}/{alias.syntax}')
    for ref in refs:
        resource = (await client.catalog()).by_kind(ref.api_version, ref.kind)
        try:
            if resource is not None:
                found = await client.get(resource.resource, ref.name, ref.namespace)
                return ref_of(found, ref.api_version, ref.kind), found
        except NotFound:
            continue
    return refs[0], {}
