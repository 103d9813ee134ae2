"""Carrying out what a stage says, through the client.

Acting on something that has gone meanwhile is no failure: the world is concurrent. What can go better later (a
conflict, an unavailable server, a budget that does not allow an eviction now) is raised as `NotYet`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from nodeyard.client.api import Client, DeleteOptions, PatchForm
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
from nodeyard.process.clock import Clock, rfc3339_micro
from nodeyard.sim.book import Action
from nodeyard.sim.chance import Chance
from nodeyard.sim.index import Entity, Index
from nodeyard.sim.kinds import Kinds
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.templates import Function, Scope

RETRY_SECONDS: Final = 1.0
_FORMS = {"merge": PatchForm.MERGE, "strategic": PatchForm.STRATEGIC, "json": PatchForm.JSON}
_MAKING = frozenset({"create", "scale", "event"})
_PASSING = (Conflict, ServerError, TooManyRequests, TransportError)


class NotYet(Exception):
    """Try again after some seconds; after more of them each time, unless what is waited for may come any moment."""

    def __init__(self, after: float = RETRY_SECONDS, reason: str = "", *, grows: bool = True) -> None:
        super().__init__(reason)
        self.after = after
        self.grows = grows


Procedure = Callable[[Entity], Awaitable[None]]
"""What `call` runs: what cannot be said in a stage file."""


@dataclass(slots=True)
class Actor:
    client: Client
    kinds: Kinds
    index: Index
    clock: Clock
    chance: Chance
    functions: Mapping[str, Function]
    procedures: Mapping[str, Procedure]
    on_mark: Callable[[Entity, str, bool], None]
    _serial: int = 0

    async def perform(self, action: Action, entity: Entity) -> None:
        delayed: NotYet | None = None
        for target in self._targets(action, entity):
            if action.where is not None and not action.where(target):
                continue
            try:
                await self._attempt(action, target, entity)
            except NotYet as error:
                delayed = error  # the other targets are not made to wait for this one
        if delayed is not None:
            raise delayed

    def _targets(self, action: Action, entity: Entity) -> list[Entity]:
        if action.spec.each:
            return self.index.pointing(action.spec.each, entity)
        if action.spec.at:
            other = entity.related(action.spec.at)
            return [other] if other is not None else []
        return [entity]

    async def _attempt(self, action: Action, target: Entity, origin: Entity) -> None:
        try:
            await _VERBS[action.verb](self, action, target, origin)
        except AlreadyExists:
            return
        except NotFound:
            if action.verb in _MAKING:
                raise
        except _PASSING as error:
            raise NotYet(getattr(error, "retry_after", None) or RETRY_SECONDS, str(error)) from error

    # verbs

    async def _patch(self, action: Action, target: Entity, origin: Entity) -> None:
        spec = action.spec.patch
        assert spec is not None
        await self.client.patch(
            await self.kinds.resource(target.key.kind),
            target.key.name,
            self._filled(action, target, origin),
            target.key.namespace,
            form=_FORMS[spec.form],
            subresource=spec.part,
        )

    async def _create(self, action: Action, target: Entity, origin: Entity) -> None:
        obj = self._filled(action, target, origin)
        await self.client.create(await self.kinds.resource(Kind(obj["apiVersion"], obj["kind"])), obj)

    async def _delete(self, action: Action, target: Entity, origin: Entity) -> None:
        spec = action.spec.delete
        assert spec is not None
        options = DeleteOptions(uid=_uid(target), grace_seconds=spec.grace, propagation=spec.propagation)
        resource = await self.kinds.resource(target.key.kind)
        await self.client.delete(resource, target.key.name, target.key.namespace, options)

    async def _evict(self, action: Action, target: Entity, origin: Entity) -> None:
        spec = action.spec.evict
        assert spec is not None
        await self.client.evict(target.key.name, target.key.namespace, grace_seconds=spec.grace)

    async def _event(self, action: Action, target: Entity, origin: Entity) -> None:
        spec = action.spec.event
        assert spec is not None
        self._serial += 1
        namespace = target.key.namespace or "default"
        suffix = self.chance.hexadecimal(16, "event", str(target.key), self._serial)
        event = {
            "metadata": {"name": f"{target.key.name}.{suffix}", "namespace": namespace},
            "eventTime": rfc3339_micro(self.clock.now()),
            "reportingController": "nodeyard.dev/sim",
            "reportingInstance": "sim",
            "action": spec.action,
            "reason": spec.reason,
            "note": self._filled(action, target, origin),
            "type": spec.type,
            "regarding": _reference(target),
        }
        await self.client.create(EVENTS, event)

    async def _scale(self, action: Action, target: Entity, origin: Entity) -> None:
        spec = action.spec.scale
        assert spec is not None
        assert action.size is not None
        wanted = int(action.size(target) or 0)
        present = [one for one in self.index.pointing(spec.relation, target) if not _is_deleting(one)]
        for number in range(wanted - len(present)):
            self._serial += 1
            await self._create_child(action, target, number)
        present.sort(key=lambda one: (one.object["metadata"].get("creationTimestamp", ""), one.key.name))
        for extra in present[wanted:]:
            resource = await self.kinds.resource(extra.key.kind)
            await self.client.delete(resource, extra.key.name, extra.key.namespace, DeleteOptions(uid=_uid(extra)))

    async def _create_child(self, action: Action, target: Entity, number: int) -> None:
        suffix = self.chance.suffix(5, "scale", str(target.key), self._serial)
        obj = self._filled(action, target, target, suffix=suffix, number=number)
        await self.client.create(await self.kinds.resource(Kind(obj["apiVersion"], obj["kind"])), obj)

    async def _call(self, action: Action, target: Entity, origin: Entity) -> None:
        name = action.spec.call
        assert name is not None
        await self.procedures[name](target)

    async def _mark(self, action: Action, target: Entity, origin: Entity) -> None:
        assert action.spec.mark is not None
        self.on_mark(target, action.spec.mark, True)

    async def _unmark(self, action: Action, target: Entity, origin: Entity) -> None:
        assert action.spec.unmark is not None
        self.on_mark(target, action.spec.unmark, False)

    def _filled(self, action: Action, target: Entity, origin: Entity, **names: Any) -> Any:
        """In a template `object` is what is acted on, `origin` the object of the stage."""
        assert action.template is not None
        names["origin"] = origin.object
        return action.template(Scope(target, self.clock.now(), self.functions, names))


_VERBS: dict[str, Callable[[Actor, Action, Entity, Entity], Awaitable[None]]] = {
    "patch": Actor._patch,
    "create": Actor._create,
    "delete": Actor._delete,
    "evict": Actor._evict,
    "event": Actor._event,
    "scale": Actor._scale,
    "call": Actor._call,
    "mark": Actor._mark,
    "unmark": Actor._unmark,
}


def _uid(entity: Entity) -> str:
    uid: str = entity.object["metadata"].get("uid", "")
    return uid


def _is_deleting(entity: Entity) -> bool:
    return "deletionTimestamp" in entity.object["metadata"]


def _reference(entity: Entity) -> Object:
    kind = entity.key.kind
    reference = {"apiVersion": kind.api_version, "kind": kind.kind, "name": entity.key.name, "uid": _uid(entity)}
    return {**reference, "namespace": entity.key.namespace} if entity.key.namespace else reference
