"""Deletion: at once, after a grace period, or when the last finalizer has been removed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from nodeyard.apiserver import errors
from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.options import DeleteOptions
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.resources import Resource, Strategy
from nodeyard.apiserver.responses import canonical
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import StaleError, Store, Stored
from nodeyard.apiserver.worker_thread import BATCH, LARGE, STEP, WorkerThread
from nodeyard.apiserver.writes import ATTEMPTS, Admission
from nodeyard.kube.json import Object, json_equal
from nodeyard.kube.timestamps import format_rfc3339, parse_rfc3339
from nodeyard.process.clock import Clock

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Deleted:
    """`object` as the answer shows it; `is_gone` if it is no longer stored."""

    object: Object
    is_gone: bool
    stored: Stored | None = None

    @property
    def is_large(self) -> bool:
        return self.stored is not None and len(self.stored.raw) > LARGE


class Deleter:
    def __init__(self, store: Store, clock: Clock, admission: Admission) -> None:
        self._store = store
        self._clock = clock
        self._admission = admission

    async def delete(
        self,
        context: RequestContext,
        namespace: str,
        name: str,
        options: DeleteOptions,
        *,
        is_one_of_many: bool = False,
    ) -> Deleted:
        """Delete an object. In a deletecollection admission sees no name, as on the real server."""
        resource = context.resource
        for _ in range(ATTEMPTS):
            stored = self._store.get(resource.key, namespace, name)
            if stored is None:
                raise errors.not_found(resource.group, resource.plural, name)
            is_large = len(stored.raw) > LARGE
            old = await context.work.run(is_large, partial(context.read, stored))
            _check(context, old, options)
            attributes = self._attributes(context, namespace, "" if is_one_of_many else name, old, options, is_large)
            await self._admission.mutate(attributes)
            await self._admission.validate(attributes)
            try:
                return self._carry_out(resource, stored, old, options)
            except StaleError:
                continue
        raise errors.modified(resource.group, resource.plural, name)

    async def delete_collection(
        self, context: RequestContext, chosen: Sequence[Stored], options: DeleteOptions
    ) -> AsyncIterator[Object]:
        """Delete each of these objects; one that has gone meanwhile is skipped."""
        async for stored in in_turns(chosen):
            with context.work.part() as work:
                try:
                    deleted = await self.delete(replace(context, work=work), *stored.key, options, is_one_of_many=True)
                except ApiError as error:
                    if error.code != 404:
                        raise
                else:
                    yield deleted.object

    async def discard(self, resource: Resource, worker_thread: WorkerThread) -> None:
        """Delete all objects of a kind whose CRD is deleted, without admission."""
        async for listed in in_turns(list(self._store.list(resource.key))):
            is_done = False
            while not is_done and (stored := self._store.get(resource.key, *listed.key)):
                with worker_thread.work() as work, suppress(StaleError):
                    old = await work.run(len(stored.raw) > LARGE, stored.object)
                    self._carry_out(resource, stored, old, DeleteOptions())
                    is_done = True

    def _carry_out(self, resource: Resource, stored: Stored, old: Object, options: DeleteOptions) -> Deleted:
        if self._store.get(resource.key, *stored.key) is not stored:
            raise StaleError
        new = self._marked(resource.strategy, old, options)
        is_gone = new is None
        if options.dry_run:
            ended = {**old, "metadata": self._ended(old["metadata"])} if resource.strategy.is_graceful else old
            return Deleted(new or ended, is_gone)
        if new is None:
            last = self._store.remove(resource.key, stored)
            shown = _at(old, last)
            if resource.strategy.is_graceful:
                shown = {**shown, "metadata": self._ended(shown["metadata"])}
            return Deleted(shown, is_gone=True, stored=last)
        if json_equal(new, old):
            return Deleted(old, is_gone=False, stored=stored)
        kept = canonical(new, resource.kind, resource.api_version(resource.storage_version))
        committed = self._store.commit(resource.key, kept, selectable(resource, new), expect=stored)
        return Deleted(_at({**kept, "apiVersion": old["apiVersion"]}, committed), is_gone=False, stored=committed)

    def _marked(self, strategy: Strategy, old: Object, options: DeleteOptions) -> Object | None:
        """Return the object with its deletionTimestamp, or None if it can be removed at once."""
        given = dict(old["metadata"])
        finalizers = _finalizers(given.get("finalizers") or [], options.propagation)
        if finalizers:
            given["finalizers"] = finalizers
        else:
            given.pop("finalizers", None)
        grace = strategy.grace_period(old, options.grace_period)
        special = strategy.prepare_delete({**old, "metadata": given}, self._clock.now())
        if special is not None:
            return special
        is_held = bool(finalizers) or strategy.holds(old)
        if grace == 0 and not is_held:
            return None
        if "deletionTimestamp" in given:
            return {**old, "metadata": self._shortened(given, grace)}
        now = self._clock.now()
        given["deletionTimestamp"] = format_rfc3339(now + _span(grace))
        given["deletionGracePeriodSeconds"] = grace
        if given.get("generation"):
            given["generation"] += 1
        return {**old, "metadata": given}

    def _ended(self, given: Object) -> Object:
        """The metadata in the answer to a deletion without grace period of a kind that may have one."""
        ended = {**given, "deletionTimestamp": format_rfc3339(self._clock.now()), "deletionGracePeriodSeconds": 0}
        if given.get("generation") and "deletionTimestamp" not in given:
            ended["generation"] += 1
        return ended

    def _shortened(self, given: Object, grace: int) -> Object:
        """Shorten the grace period; a second delete never extends it."""
        if grace >= given.get("deletionGracePeriodSeconds", 0):
            return given
        begun = parse_rfc3339(given["deletionTimestamp"]) - _span(given["deletionGracePeriodSeconds"])
        return {
            **given,
            "deletionTimestamp": format_rfc3339(begun + _span(grace)),
            "deletionGracePeriodSeconds": grace,
        }

    def _attributes(
        self, context: RequestContext, namespace: str, name: str, old: Object, options: DeleteOptions, is_large: bool
    ) -> Attributes:
        return Attributes(
            operation="DELETE",
            resource=context.resource,
            version=context.version,
            subresource="",
            namespace=namespace,
            name=name,
            object=None,
            old=old,
            user=context.user,
            work=context.work,
            is_large=is_large,
            dry_run=options.dry_run,
            options=options.as_object(),
            warnings=context.warnings,
            audit=context.audit,
        )


async def in_turns(chosen: Sequence[Stored]) -> AsyncIterator[Stored]:
    """Yield the objects, and yield to the event loop every few objects."""
    size = 0
    for stored in chosen:
        yield stored
        size += len(stored.raw) + STEP
        if size > BATCH:
            size = 0
            await asyncio.sleep(0)


def _at(obj: Object, stored: Stored) -> Object:
    """The object with the resourceVersion of its stored version."""
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(stored.revision)}}


def _span(seconds: int) -> timedelta:
    """A duration of 64-bit nanoseconds, as in Go: a period of over 292 years overflows."""
    nanoseconds = (seconds * 10**9 + 2**63) % 2**64 - 2**63
    return timedelta(microseconds=nanoseconds // 1000)


def _finalizers(current: list[str], propagation: str) -> list[str]:
    """Set the finalizer of the propagation policy, which the garbage collector removes when it is done."""
    if not propagation:
        return current
    kept = [finalizer for finalizer in current if finalizer not in (ORPHAN, FOREGROUND)]
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(propagation)
    return [*kept, wanted] if wanted else kept


def _check(context: RequestContext, old: Object, options: DeleteOptions) -> None:
    """Check the preconditions of the request."""
    resource, given = context.resource, old["metadata"]
    if options.uid and options.uid != given["uid"]:
        raise errors.conflict(
            resource.group,
            resource.kind,
            given["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({given['uid']}). "
            "The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != given["resourceVersion"]:
        raise errors.conflict(
            resource.group,
            resource.kind,
            given["name"],
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({given['resourceVersion']}). The object might have been modified",
        )
