"""Confirmation of writes that got no answer: a GET shows whether the write happened.

Only a JSON patch without a precondition can stay unresolved. It may not be idempotent (an item appended twice), and the
object does not show whether it was applied.
"""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from nodeyard.apply.outcome import ActionResult, Classified, Result, Retry, done, ended
from nodeyard.apply.retry import RETRY_POLICY
from nodeyard.apply.write_request import Sender, with_identity
from nodeyard.client.decoding import decode_as
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.kube.patch import PatchError, json_patch, merge_patch
from nodeyard.plan.apply_preview import has_fields
from nodeyard.plan.model import Action, Verb, Write
from nodeyard.plan.secrets import conceal
from nodeyard.process.clock import Clock

_STATUS: Final = "status"


class Confirmer:
    def __init__(self, sender: Sender, clock: Clock, random: Random) -> None:
        self._sender = sender
        self._clock = clock
        self._random = random

    async def confirm(self, resource: Resource[Any], action: Action, write: Write, message: str) -> Classified:
        """Resolve a write that ended with the error `message` instead of an answer."""
        if not action.object.name:
            return ended(
                action, Result.UNKNOWN, f"{message}; not confirmed, since the server chooses the name (generateName)"
            )
        try:
            found = await self._read(resource, action, write)
        except ClientError as error:
            return ended(action, Result.UNKNOWN, f"{message}; reading the object failed too: {error}")
        result = _compare(resource, action, write, found, message)
        return result if isinstance(result, Retry) else _decode_answer(resource, result)

    async def confirm_existing(self, resource: Resource[Any], action: Action, write: Write, message: str) -> Classified:
        """Resolve a create that failed with AlreadyExists: the existing object may be the wanted one."""
        result = await self.confirm(resource, action, write, message)
        # The object was deleted between the two requests: the next plan creates it.
        return ended(action, Result.CONFLICT, message) if isinstance(result, Retry) else result

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
        return ended(action, Result.UNKNOWN, message)
    if found is None:
        return Retry(message)
    wanted = with_identity(resource, action.object, write.body)
    if _has(found, wanted):
        return done(action, found, "already exists as wanted")
    return ended(action, Result.CONFLICT, message)


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
        return ended(action, Result.CONFLICT, f"{message}; the object no longer exists")
    if _is_patched(found, write):
        return done(action, found, "written; the response was lost")
    if write.resource_version:
        if found["metadata"].get("resourceVersion") == write.resource_version:
            return Retry(message)
        return ended(action, Result.CONFLICT, f"{message}; the object has changed since it was planned")
    if write.json_patch:
        return ended(action, Result.UNKNOWN, message)
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
