"""The applier executes a plan concurrently with a bound, and returns one result per action.

    plan ─▶ action graph ─▶ workers ─▶ attempt: turn in transport ─▶ hold? ─▶ send ─▶ classify ─▶ result
                                                                                 └─▶ no answer: confirm by a GET

An action starts when its dependencies are done. Right before a request is sent, after it has waited for a connection,
the applier checks again that it may write. A lost lease, a pause or a newer plan of the key holds every unsent action;
requests in flight finish. One failing object never stops the others. An action goes to the cluster that its object
names (`writers`). If several actions have the same resourceVersion of an object as precondition, each later one uses
the version that the earlier one returned.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec

from nodeyard.apply.action_graph import Execution, log
from nodeyard.apply.outcome import ActionResult, Classified, Outcome, Result, Retry, action_result, classify, done
from nodeyard.apply.retry import RETRY_POLICY, RetryAfter
from nodeyard.apply.writers import (
    ClusterLookup,
    ClusterWriter,
    ClusterWriters,
    Lookup,
    OnDeleted,
    OnWritten,
    Target,
    WriterOptions,
    no_clusters,
    unguarded_list,
)
from nodeyard.client.api import Client
from nodeyard.client.errors import AlreadyExists, ApiError, NotFound, ServerError, TransportError, Withheld
from nodeyard.client.resources import Resource
from nodeyard.client.transport import Hold
from nodeyard.kube.json import Json
from nodeyard.kube.object_key import identity_of
from nodeyard.plan.managed_fields import fields_of
from nodeyard.plan.model import Action, Planned, Verb, Write
from nodeyard.process.clock import Clock


class Applier:
    """Executes the plans of one capability. The transport bounds the requests in flight per server."""

    def __init__(
        self,
        client: Client,
        capability: str,
        lookup: Lookup,
        *,
        clock: Clock,
        random: Random | None = None,
        on_written: OnWritten = lambda _resource, _answer: None,
        on_deleted: OnDeleted = lambda _resource, _ref: None,
        clusters: ClusterLookup = no_clusters,
    ) -> None:
        """`client`, `lookup` and the callbacks belong to the host cluster; `clusters` finds remote clusters by name."""
        self._clock = clock
        self._random = random or Random()
        options = WriterOptions(f"nodeyard-{capability}", clock, self._random)
        self._writers = ClusterWriters(Target(client, lookup, on_written, on_deleted), clusters, options)
        self._executions: dict[str, Execution] = {}
        self._retry_after = RetryAfter(clock)

    async def apply(
        self, planned: Planned, *, may_write: Callable[[], bool], seen_at: float = math.inf, dry_run: bool = False
    ) -> Outcome:
        """Execute the plan. An older execution of the same key is replaced; its requests in flight are awaited first.

        `seen_at` is the monotonic time of the snapshot behind the plan. Nothing is sent to a remote cluster whose
        identity has changed since then.
        """
        execution = Execution(planned, self._execute, may_write, self._clock, seen_at=seen_at, dry_run=dry_run)
        if dry_run:
            return await execution.run()
        key = planned.plan.key
        older = self._executions.get(key)
        self._executions[key] = execution
        try:
            if older is not None:
                older.replace()
                await older.has_ended.wait()
            return await execution.run()
        finally:
            execution.has_ended.set()
            if self._executions.get(key) is execution:
                del self._executions[key]

    def cancel(self, key: str = "") -> None:
        """Send nothing more of this key's plan; of any plan if `key` is empty."""
        for each, execution in self._executions.items():
            if not key or each == key:
                execution.replace()

    async def _execute(self, execution: Execution, action: Action) -> ActionResult:
        """Send the action, and retry until there is a result or the retry policy gives up."""
        ref = action.object
        write = execution.write(action)
        if unguarded := unguarded_list(action, write):
            return action_result(action, Result.FAILED, f"not sent: a patch of {unguarded} needs a resourceVersion")
        if refused := self._retry_after.find(action):
            return refused
        hold = functools.partial(self._hold, execution, ref.cluster) if ref.cluster else execution.hold
        is_logged = execution.is_dry

        def depart() -> str:
            """Return why the request must not leave; log it if it does. The transport calls this right before."""
            nonlocal is_logged
            if (why := hold()) or is_logged:
                return why
            is_logged = True
            log.info("action sent", verb=action.verb.value, object=str(action.object), reason=action.reason,
                     diff=action.diff)  # fmt: skip
            return ""

        failures = 0
        while True:
            writer = self._writers.find(ref.cluster)
            if isinstance(writer, str):
                return action_result(action, Result.FAILED, writer)
            resource = writer.target.lookup(ref.api_version, ref.kind)
            if resource is None:
                return action_result(
                    action, Result.FAILED, f"the server does not serve {ref.kind} of {ref.api_version}"
                )
            if why := hold():
                return action_result(action, Result.HELD, why)
            result = await _attempt(writer, resource, action, write, depart, execution.is_dry, failures)
            if isinstance(result, ActionResult):
                return self._retry_after.record(result)
            failures += 1
            pause = RETRY_POLICY.pause(failures, result.retry_after, self._random)
            if pause is None:
                failed = action_result(action, Result.FAILED, result.message, result.retry_after or 0.0)
                return self._retry_after.record(failed)
            await execution.wait(pause)

    def _hold(self, execution: Execution, cluster: str) -> str:
        return execution.hold() or self._writers.identity_change(cluster, execution.seen_at)


async def _attempt(
    writer: ClusterWriter,
    resource: Resource[Any],
    action: Action,
    write: Write,
    hold: Hold,
    is_dry: bool,
    failures: int,
) -> Classified:
    try:
        if write.is_first and await _is_foreign(writer, resource, action, write):
            return action_result(action, Result.FAILED, "exists and is not ours: rename or delete it")
        answer = await writer.sender.send(resource, action, write, hold=hold, dry_run=is_dry, failures=failures)
        result: Classified = done(action, answer, version=_version(answer))
    except msgspec.ValidationError as error:
        # The write succeeded, but the response does not decode; the informer lists such an object as malformed.
        return done(action, message=f"the response does not decode: {error}")
    except Withheld as error:
        return action_result(action, Result.HELD, str(error))
    except TransportError as error:
        result = Retry(str(error))
        if error.may_have_run and not is_dry:
            result = await writer.confirmer.confirm(resource, action, write, str(error))
    except AlreadyExists as error:
        result = await writer.confirmer.confirm_existing(resource, action, write, str(error))
    except ApiError as error:
        result = classify(action, error)
        if isinstance(error, ServerError) and isinstance(result, Retry) and not _is_idempotent(write):
            # The server may have carried out the write before it failed.
            result = await writer.confirmer.confirm(resource, action, write, str(error))
    if isinstance(result, ActionResult) and result.result is Result.DONE and not is_dry:
        _notify(writer.target, resource, action, result.answer)
    return result


async def _is_foreign(writer: ClusterWriter, resource: Resource[Any], action: Action, write: Write) -> bool:
    """Return True if an object of this name exists that this field manager has never applied."""
    try:
        found = await writer.sender.read(resource, action.object)
    except NotFound:
        return False
    return not fields_of(found, writer.sender.manager_of(write))


def _notify(target: Target, resource: Resource[Any], action: Action, answer: Json) -> None:
    if action.verb is Verb.DELETE and _is_gone(answer):
        target.on_deleted(resource, action.object)
    elif answer is not None and not _is_status(answer):
        target.on_written(resource, answer)


def _is_idempotent(write: Write) -> bool:
    """Return True if sending the write twice has the same effect as sending it once."""
    return not write.json_patch or bool(write.resource_version)


def _version(answer: Json) -> str:
    return "" if answer is None or _is_status(answer) else identity_of(type(answer)).version(answer)


def _is_status(answer: Json) -> bool:
    return isinstance(answer, dict) and answer.get("kind") == "Status"


def _is_gone(answer: Json) -> bool:
    """Return True if a DELETE removed the object at once: no finalizers and no grace period are left."""
    if answer is None or _is_status(answer):
        return True
    metadata = answer["metadata"]
    # A Namespace has its own finalizer in spec.finalizers and exists until it is empty.
    emptying = answer.get("kind") == "Namespace" and (answer.get("spec") or {}).get("finalizers")
    return not (metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds") or emptying)
