"""Writers: one per server that a capability writes to, the host cluster and remote clusters by name.

    ClusterWriters ──find(cluster)──▶ ClusterWriter ─┬─ Sender      sends a write once, in the form that the API takes
                                                     └─ Confirmer   reads the object if a write got no answer

A precondition is part of the body: with a resourceVersion the server answers 409 if the object has changed, with a uid
if another object has the same name. After a lost answer, only a JSON patch without a precondition can stay unresolved:
it may not be idempotent (an item appended twice), and the object does not show whether it was applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Final, TypeAlias

import msgspec

from nodeyard.apply.outcome import ActionResult, Classified, Result, Retry, action_result, done
from nodeyard.apply.retry import RETRY_POLICY
from nodeyard.client.api import Client, DeleteOptions, PatchForm
from nodeyard.client.decoder import decode_as
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.client.resources import Resource
from nodeyard.client.transport import REQUEST_SECONDS, Hold, Request, Response, Transport
from nodeyard.kube.json import Json, Object
from nodeyard.kube.patch import PatchError, json_patch, merge_patch
from nodeyard.plan.apply_preview import has_fields
from nodeyard.plan.model import Action, ObjectRef, Verb, Write
from nodeyard.plan.secrets import conceal
from nodeyard.process.clock import Clock

WRITE_SECONDS: Final = 10.0
"""Timeout of a first attempt, after which the object is read instead. A hanging write blocks its key."""

_ATOMIC_LISTS: Final = (("spec", "taints"), ("metadata", "finalizers"), ("metadata", "ownerReferences"))


class Sender:
    """Sends each write exactly once, under its field manager. The transport must not retry."""

    def __init__(self, client: Client, field_manager: str) -> None:
        self._client = client.managed_by(field_manager)
        self._field_manager = field_manager

    async def send(
        self,
        resource: Resource[Any],
        action: Action,
        write: Write,
        *,
        hold: Hold | None = None,
        dry_run: bool = False,
        failures: int = 0,
    ) -> Json:
        """Send the write and return the response: the object, a Status, or None. Later attempts get longer timeouts.

        Raises Withheld if `hold` returns a reason after the request has its connection.
        """
        ref = action.object
        client = single_attempt(self._client, self.manager_of(write), answer_seconds(failures), hold)
        match action.verb:
            case Verb.CREATE if write.subresource:
                return await client.create_part(
                    resource, ref.name, write.subresource, write.body, ref.namespace, dry_run=dry_run
                )
            case Verb.CREATE:
                return await client.create(
                    resource, with_identity(resource, ref, write.body), ref.namespace, dry_run=dry_run
                )
            case Verb.APPLY:
                body = _with_preconditions(with_identity(resource, ref, write.body), ref, write)
                return await self._patch(client, resource, ref, write, body, PatchForm.APPLY, dry_run)
            case Verb.PATCH if write.json_patch:
                operations = [*_precondition_operations(ref, write), *write.body]
                return await self._patch(client, resource, ref, write, operations, PatchForm.JSON, dry_run)
            case Verb.PATCH:
                body = _with_preconditions(write.body, ref, write)
                return await self._patch(client, resource, ref, write, body, PatchForm.MERGE, dry_run)
            case Verb.DELETE:
                return await client.delete(resource, ref.name, ref.namespace, _delete_options(ref, write, dry_run))
            case Verb.EVICT:
                seconds = (write.body or {}).get("gracePeriodSeconds")
                return await client.evict(ref.name, ref.namespace, grace_seconds=seconds, uid=ref.uid, dry_run=dry_run)

    def manager_of(self, write: Write) -> str:
        return write.field_manager or self._field_manager

    async def read(self, resource: Resource[Any], ref: ObjectRef, subresource: str = "") -> Object:
        """Read the whole object."""
        client = single_attempt(self._client, self._field_manager, answer_seconds())
        return await client.get(resource.decoded_as(dict), ref.name, ref.namespace, subresource=subresource)

    async def _patch(
        self,
        client: Client,
        resource: Resource[Any],
        ref: ObjectRef,
        write: Write,
        body: Json,
        form: PatchForm,
        dry_run: bool,
    ) -> Json:
        return await client.patch(
            resource,
            ref.name,
            body,
            ref.namespace,
            form=form,
            subresource=write.subresource,
            force=write.force and form is PatchForm.APPLY,
            dry_run=dry_run,
        )


def answer_seconds(failures: int = 0) -> float:
    """Return the timeout, doubled per failure: a webhook can delay the response for as long as the first timeout."""
    return min(WRITE_SECONDS * 2.0**failures, REQUEST_SECONDS)


def single_attempt(client: Client, field_manager: str, seconds: float, hold: Hold | None = None) -> Client:
    """Return a client for one attempt on the same connections. Creating it is cheap compared to a request."""
    made = client.managed_by(field_manager, client.flow)
    made.transport = SingleAttemptTransport(client.transport, seconds, hold)
    return made


class SingleAttemptTransport:
    """A transport that never retries: the right to write may be lost between two attempts.

    The right may also be lost while a request waits for a connection, so `hold` is called after that. `seconds` caps
    every timeout.
    """

    def __init__(self, transport: Transport, seconds: float, hold: Hold | None = None) -> None:
        self._transport = transport
        self._seconds = seconds
        self._hold = hold
        self.stream = transport.stream
        self.close = transport.close

    async def send(self, request: Request) -> Response:
        seconds, hold = min(request.timeout, self._seconds), request.hold or self._hold
        return await self._transport.send(msgspec.structs.replace(request, timeout=seconds, retry=False, hold=hold))


def with_identity(resource: Resource[Any], ref: ObjectRef, body: Object) -> Object:
    """Return the body with apiVersion, kind, name and namespace of the reference."""
    metadata = {**(body.get("metadata") or {})}
    if ref.name:
        metadata["name"] = ref.name
    if ref.namespace:
        metadata["namespace"] = ref.namespace
    return {**body, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def unguarded_list(action: Action, write: Write) -> str:
    """Return the atomic list that a merge patch would replace without a resourceVersion, else an empty string. Such a
    patch would erase concurrent changes."""
    if action.verb is not Verb.PATCH or write.json_patch or write.resource_version:
        return ""
    for part, name in _ATOMIC_LISTS:
        if name in (write.body.get(part) or {}):
            return f"{part}.{name}"
    return ""


def _preconditions(ref: ObjectRef, write: Write) -> dict[str, str]:
    pairs = (("uid", ref.uid), ("resourceVersion", write.resource_version))
    return {name: value for name, value in pairs if value}


def _with_preconditions(body: Object, ref: ObjectRef, write: Write) -> Object:
    preconditions = _preconditions(ref, write)
    return {**body, "metadata": {**(body.get("metadata") or {}), **preconditions}} if preconditions else body


def _precondition_operations(ref: ObjectRef, write: Write) -> list[Object]:
    return [
        {"op": "replace", "path": f"/metadata/{name}", "value": value}
        for name, value in _preconditions(ref, write).items()
    ]


def _delete_options(ref: ObjectRef, write: Write, dry_run: bool) -> DeleteOptions:
    return DeleteOptions(
        uid=ref.uid,
        resource_version=write.resource_version,
        propagation=write.propagation,
        grace_seconds=(write.body or {}).get("gracePeriodSeconds"),
        dry_run=dry_run,
    )


_STATUS: Final = "status"


class Confirmer:
    def __init__(self, sender: Sender, clock: Clock, random: Random) -> None:
        self._sender = sender
        self._clock = clock
        self._random = random

    async def confirm(self, resource: Resource[Any], action: Action, write: Write, message: str) -> Classified:
        """Resolve a write that ended with the error `message` instead of an answer."""
        if not action.object.name:
            return action_result(
                action, Result.UNKNOWN, f"{message}; not confirmed, since the server chooses the name (generateName)"
            )
        try:
            found = await self._read(resource, action, write)
        except ClientError as error:
            return action_result(action, Result.UNKNOWN, f"{message}; reading the object failed too: {error}")
        result = _compare(resource, action, write, found, message)
        return result if isinstance(result, Retry) else _decode_answer(resource, result)

    async def confirm_existing(self, resource: Resource[Any], action: Action, write: Write, message: str) -> Classified:
        """Resolve a create that failed with AlreadyExists: the existing object may be the wanted one."""
        result = await self.confirm(resource, action, write, message)
        # The object was deleted between the two requests: the next plan creates it.
        return action_result(action, Result.CONFLICT, message) if isinstance(result, Retry) else result

    async def _read(self, resource: Resource[Any], action: Action, write: Write) -> Object | None:
        # The status is part of the object itself; reading it needs no right on the subresource.
        has_own_path = action.verb in (Verb.PATCH, Verb.APPLY) and write.subresource != _STATUS
        subresource = write.subresource if has_own_path else ""
        read = partial(self._sender.read, resource, action.object, subresource)
        try:
            return await RETRY_POLICY.run(read, self._clock, self._random)
        except NotFound:
            return None


def _compare(resource: Resource[Any], action: Action, write: Write, found: Object | None, message: str) -> Classified:
    match action.verb:
        case Verb.DELETE | Verb.EVICT:
            return _after_delete(action, found, message)
        case Verb.CREATE:
            return _after_create(resource, action, write, found, message)
        case Verb.APPLY:
            return _after_apply(resource, action, write, found, message)
        case Verb.PATCH:
            return _after_patch(action, write, found, message)


def _decode_answer(resource: Resource[Any], result: ActionResult) -> ActionResult:
    """Decode the answer into the type that the response to the write would have had."""
    if result.answer is None or result.action.verb in (Verb.DELETE, Verb.EVICT):
        return result
    try:
        answer = decode_as(resource.view, msgspec.json.encode(result.answer))
    except msgspec.ValidationError:
        answer = None
    return msgspec.structs.replace(result, answer=answer)


def _has_other_uid(action: Action, found: Object) -> bool:
    uid = action.object.uid
    return bool(uid) and found["metadata"].get("uid") != uid


def _after_delete(action: Action, found: Object | None, message: str) -> Classified:
    if found is None or _has_other_uid(action, found):
        return done(action, message="deleted; the response was lost")
    if found["metadata"].get("deletionTimestamp"):
        return done(action, found, "being deleted; the response was lost")
    return Retry(message)


def _after_create(
    resource: Resource[Any], action: Action, write: Write, found: Object | None, message: str
) -> Classified:
    if write.subresource:
        return action_result(action, Result.UNKNOWN, message)
    if found is None:
        return Retry(message)
    wanted = with_identity(resource, action.object, write.body)
    if _has(found, wanted):
        return done(action, found, "already exists as wanted")
    return action_result(action, Result.CONFLICT, message)


def _after_apply(
    resource: Resource[Any], action: Action, write: Write, found: Object | None, message: str
) -> Classified:
    """Server-side apply is idempotent: in doubt it is sent again, and the server checks the preconditions."""
    wanted = with_identity(resource, action.object, write.body)
    if found is not None and not _has_other_uid(action, found) and _has(found, wanted):
        return done(action, found, "written; the response was lost")
    return Retry(message)


def _after_patch(action: Action, write: Write, found: Object | None, message: str) -> Classified:
    if found is None or _has_other_uid(action, found):
        return action_result(action, Result.CONFLICT, f"{message}; the object no longer exists")
    if _is_patched(found, write):
        return done(action, found, "written; the response was lost")
    if write.resource_version:
        if found["metadata"].get("resourceVersion") == write.resource_version:
            return Retry(message)
        return action_result(action, Result.CONFLICT, f"{message}; the object has changed since it was planned")
    if write.json_patch:
        return action_result(action, Result.UNKNOWN, message)
    return Retry(message)


def _has(found: Object, wanted: Object) -> bool:
    # Compared concealed: the server returns `stringData` as `data`, and hashes compare as well as contents.
    return has_fields(conceal(found), conceal(wanted))


def _is_patched(found: Object, write: Write) -> bool:
    if not write.json_patch:
        return merge_patch(found, write.body) is found
    operations = [operation for operation in write.body if operation.get("op") != "test"]
    try:
        return json_patch(found, operations) is found
    except PatchError:
        return False


Lookup: TypeAlias = Callable[[str, str], Resource[Any] | None]
"""Finds the resource of an apiVersion and kind; None if it is not served."""
OnWritten: TypeAlias = Callable[[Resource[Any], Json], None]
"""Called with the object of the response, for the cache overlay."""
OnDeleted: TypeAlias = Callable[[Resource[Any], ObjectRef], None]
"""Called with the deleted object."""


@dataclass(frozen=True, eq=False)
class Target:
    """A server to write to, with callbacks for what was written."""

    client: Client
    lookup: Lookup
    on_written: OnWritten = lambda _resource, _answer: None
    on_deleted: OnDeleted = lambda _resource, _ref: None
    since: float = 0.0
    """The monotonic time since which this server has this identity. Earlier snapshots may show another cluster."""


ClusterLookup: TypeAlias = Callable[[str], Target | str]
"""Finds a remote cluster by name; a string says why nothing can be sent there now."""


def no_clusters(_cluster: str) -> Target | str:
    return "the capability does not declare this cluster"


@dataclass(frozen=True, eq=False)
class ClusterWriter:
    target: Target
    sender: Sender
    confirmer: Confirmer


@dataclass(frozen=True)
class WriterOptions:
    """Settings of one capability's writers, for every cluster."""

    field_manager: str
    clock: Clock
    random: Random

    def create(self, target: Target) -> ClusterWriter:
        sender = Sender(target.client, self.field_manager)
        confirmer = Confirmer(sender, self.clock, self.random)
        return ClusterWriter(target, sender, confirmer)


class ClusterWriters:
    def __init__(self, host: Target, clusters: ClusterLookup, options: WriterOptions) -> None:
        self._options = options
        self._host = options.create(host)
        self._clusters = clusters
        self._remote: dict[str, ClusterWriter] = {}

    def find(self, cluster: str) -> ClusterWriter | str:
        """Return the writer of a cluster, of the host cluster if no name is given, or why there is none."""
        if not cluster:
            return self._host
        target = self._clusters(cluster)
        if isinstance(target, str):
            self._remote.pop(cluster, None)
            return f"cluster {cluster} is not connected: {target}"
        writer = self._remote.get(cluster)
        if writer is None or writer.target is not target:
            writer = self._remote[cluster] = self._options.create(target)
        return writer

    def identity_change(self, cluster: str, seen_at: float) -> str:
        """Return why a plan from a snapshot of `seen_at` must not be sent to the cluster; empty if it may."""
        target = self._clusters(cluster)
        is_newer = isinstance(target, Target) and target.since > seen_at
        return f"cluster {cluster} may have been replaced since this was planned" if is_newer else ""
