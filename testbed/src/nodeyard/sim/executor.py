"""Executor of a stage's actions.

An action on an object that has gone meanwhile succeeds. Errors that may pass (a conflict, an unavailable server, an
eviction that a budget does not allow now) are raised as `Requeue`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from nodeyard.client.api import Client, DeleteOptions
from nodeyard.client.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    ServerError,
    TooManyRequests,
    TransportError,
)
from nodeyard.client.resources import EVENTS
from nodeyard.kube.json import Object
from nodeyard.kube.timestamps import format_rfc3339_micro
from nodeyard.process.clock import Clock
from nodeyard.sim.action_types import Action, Create, Delete, Evict, Mark, Patch, Reconcile, Record, Scale, Verb
from nodeyard.sim.index import Entity, Index, Key, key_of
from nodeyard.sim.rest_mapper import LazyRESTMapper
from nodeyard.sim.seeded_random import SeededRandom
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.templates import Function, Scope, Template

RETRY_SECONDS: Final = 1.0
_CREATING = (Create, Scale, Record)
_TRANSIENT = (Conflict, ServerError, TooManyRequests, TransportError)


class Requeue(Exception):
    """Act again after some seconds; with exponential backoff unless `has_backoff` is False."""

    def __init__(self, after: float = RETRY_SECONDS, reason: str = "", *, has_backoff: bool = True) -> None:
        super().__init__(reason)
        self.after = after
        self.has_backoff = has_backoff


@dataclass(slots=True)
class Executor:
    client: Client
    mapper: LazyRESTMapper
    index: Index
    clock: Clock
    random: SeededRandom
    functions: Mapping[str, Function]
    on_mark: Callable[[Key, str, bool], None]
    _expected: dict[Key, Key] = field(default_factory=dict)
    """Children that `scale` has created and the informer has not delivered yet, with their parents."""
    _expecting: Counter[Key] = field(default_factory=Counter)
    _serial: int = 0

    def seen(self, key: Key) -> None:
        """Record that the informer has delivered an object: it is indexed, and expected no longer."""
        parent = self._expected.pop(key, None)
        if parent is not None:
            self._expecting[parent] -= 1

    async def execute(self, action: Action, entity: Entity) -> None:
        delayed: Requeue | None = None
        for target in self._targets(action, entity):
            if action.where is not None and not action.where(target):
                continue
            try:
                await self._attempt(action.verb, target, entity)
            except Requeue as error:
                delayed = error  # this target does not delay the others
        if delayed is not None:
            raise delayed

    def _targets(self, action: Action, entity: Entity) -> list[Entity]:
        if action.each:
            return self.index.referrers(action.each, entity)
        if action.at:
            other = entity.related(action.at)
            return [other] if other is not None else []
        return [entity]

    async def _attempt(self, verb: Verb, target: Entity, origin: Entity) -> None:
        try:
            await self._do(verb, target, origin)
        except AlreadyExists:
            return
        except NotFound:
            if isinstance(verb, _CREATING):
                raise
        except _TRANSIENT as error:
            raise Requeue(getattr(error, "retry_after", None) or RETRY_SECONDS, str(error)) from error

    async def _do(self, verb: Verb, target: Entity, origin: Entity) -> None:
        key = target.key
        match verb:
            case Patch():
                body = self._render(verb.body, target, origin)
                resource = await self.mapper.find(key.kind)
                await self.client.patch(resource, key.name, body, key.namespace, form=verb.form, subresource=verb.part)
            case Create():
                await self._create(self._render(verb.object, target, origin))
            case Delete():
                await self._delete(target, verb.options)
            case Evict():
                await self.client.evict(key.name, key.namespace, grace_seconds=verb.grace)
            case Record():
                await self._record(verb, target, origin)
            case Scale():
                await self._scale(verb, target)
            case Mark():
                self.on_mark(key, verb.name, verb.is_on)
            case Reconcile():
                await verb.reconcile(target)

    async def _create(self, obj: Object) -> None:
        await self.client.create(await self.mapper.find(Kind(obj["apiVersion"], obj["kind"])), obj)

    async def _delete(self, target: Entity, options: DeleteOptions) -> None:
        resource = await self.mapper.find(target.key.kind)
        exactly = msgspec.structs.replace(options, uid=_uid(target))
        await self.client.delete(resource, target.key.name, target.key.namespace, exactly)

    async def _record(self, verb: Record, target: Entity, origin: Entity) -> None:
        self._serial += 1
        suffix = self.random.hexadecimal(16, "event", str(target.key), self._serial)
        event = {
            "metadata": {"name": f"{target.key.name}.{suffix}", "namespace": target.key.namespace or "default"},
            "eventTime": format_rfc3339_micro(self.clock.now()),
            "reportingController": "nodeyard.dev/sim",
            "reportingInstance": "sim",
            "action": verb.action,
            "reason": verb.reason,
            "note": self._render(verb.note, target, origin),
            "type": verb.type,
            "regarding": _reference(target),
        }
        await self.client.create(EVENTS, event)

    async def _scale(self, verb: Scale, target: Entity) -> None:
        wanted = int(verb.to(target) or 0)
        referrers = self.index.referrers(verb.relation, target)
        present = [one for one in referrers if verb.leaving or not _is_deleting(one)]
        for number in range(len(present) + self._expecting[target.key], wanted):
            self._serial += 1
            suffix = self.random.suffix(5, "scale", str(target.key), self._serial)
            child = self._render(verb.object, target, target, suffix=suffix, number=number)
            key = key_of(Kind(child["apiVersion"], child["kind"]), child)
            self._expected[key] = target.key
            self._expecting[target.key] += 1
            try:
                await self._create(child)
            except BaseException:
                self.seen(key)
                raise
        present.sort(key=lambda one: _deletion_order(one, verb))
        for extra in present[wanted:]:
            if not _is_deleting(extra):
                await self._delete(extra, DeleteOptions())

    def _render(self, template: Template, target: Entity, origin: Entity, **names: Any) -> Any:
        """Render a template: `object` is the target of the action, `origin` the object of the stage."""
        names["origin"] = origin.object
        return template(Scope(target, self.clock.now(), self.functions, names))


def _uid(entity: Entity) -> str:
    uid: str = entity.object["metadata"].get("uid", "")
    return uid


def _deletion_order(entity: Entity, verb: Scale) -> tuple[bool, bool, str, str]:
    """Sort objects so that those to delete first come last."""
    is_first = verb.first is not None and verb.first(entity)
    return _is_deleting(entity), is_first, entity.object["metadata"].get("creationTimestamp", ""), entity.key.name


def _is_deleting(entity: Entity) -> bool:
    return "deletionTimestamp" in entity.object["metadata"]


def _reference(entity: Entity) -> Object:
    kind = entity.key.kind
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": entity.key.name, "uid": _uid(entity)}
    return {**reference, "namespace": entity.key.namespace} if entity.key.namespace else reference
