"""A write without an answer: did it happen? A GET of the object and what we wanted of it tell.

Only a JSON patch without a precondition can remain open: its operations may not be repeatable (an item appended twice),
and the object does not show whether they were carried out.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

import msgspec

from nodeyard.apply.outcome import ActionResult, Result
from nodeyard.apply.patience import Patience, asked_pause, is_trouble
from nodeyard.apply.sending import Sender, whole
from nodeyard.apply.verdicts import Again, Verdict, done, ended
from nodeyard.client.decoding import decode_as
from nodeyard.client.errors import ClientError, NotFound
from nodeyard.client.resources import Resource
from nodeyard.kube.json import Object
from nodeyard.kube.patch import PatchError, json_patch, merge_patch
from nodeyard.plan.applied import has_fields
from nodeyard.plan.model import Action, Verb, Write
from nodeyard.plan.secrets import conceal
from nodeyard.process.clock import Clock

_STATUS: Final = "status"


class Settler:
    def __init__(self, sender: Sender, clock: Clock, patience: Patience, random: Random) -> None:
        self._sender = sender
        self._clock = clock
        self._patience = patience
        self._random = random

    async def settle(self, resource: Resource[Any], action: Action, write: Write, message: str) -> Verdict:
        """What became of a write that ended with `message` instead of an answer."""
        if not action.object.name:
            return ended(action, Result.UNKNOWN, f"{message}; the server was to choose the name")
        try:
            found = await self._read(resource, action, write)
        except ClientError as error:
            return ended(action, Result.UNKNOWN, f"{message}; reading it failed too: {error}")
        verdict = _judged(resource, action, write, found, message)
        return verdict if isinstance(verdict, Again) else _typed(resource, verdict)

    async def exists(self, resource: Resource[Any], action: Action, write: Write, message: str) -> Verdict:
        """What a refused create means: what exists may be just what was wanted."""
        verdict = await self.settle(resource, action, write, message)
        # Gone again between the two: the next plan makes it.
        return ended(action, Result.CONFLICT, message) if isinstance(verdict, Again) else verdict

    async def _read(self, resource: Resource[Any], action: Action, write: Write) -> Object | None:
        # The status stands in the object itself, which needs no further right to be read.
        is_apart = action.verb in (Verb.PATCH, Verb.APPLY) and write.subresource != _STATUS
        subresource = write.subresource if is_apart else ""
        failures = 0
        while True:
            try:
                return await self._sender.read(resource, action.object, subresource)
            except NotFound:
                return None
            except ClientError as error:
                failures += 1
                pause = self._patience.pause(failures, asked_pause(error), self._random)
                if pause is None or not is_trouble(error):
                    raise
            await self._clock.sleep(pause)


def _judged(resource: Resource[Any], action: Action, write: Write, found: Object | None, message: str) -> Verdict:
    match action.verb:
        case Verb.DELETE | Verb.EVICT:
            return _after_delete(action, found, message)
        case Verb.CREATE:
            return _after_create(resource, action, write, found, message)
        case Verb.APPLY:
            return _after_apply(resource, action, write, found, message)
        case Verb.PATCH:
            return _after_patch(action, write, found, message)


def _typed(resource: Resource[Any], result: ActionResult) -> ActionResult:
    """The answer in the type that the answer to the write would have had."""
    if result.answer is None or result.action.verb in (Verb.DELETE, Verb.EVICT):
        return result
    try:
        answer = decode_as(resource.view, msgspec.json.encode(result.answer))
    except msgspec.ValidationError:
        answer = None
    return msgspec.structs.replace(result, answer=answer)


def _is_another(action: Action, found: Object) -> bool:
    uid = action.object.uid
    return bool(uid) and found["metadata"].get("uid") != uid


def _after_delete(action: Action, found: Object | None, message: str) -> Verdict:
    if found is None or _is_another(action, found):
        return done(action, message="gone, though no answer came")
    if found["metadata"].get("deletionTimestamp"):
        return done(action, found, "going, though no answer came")
    return Again(message)


def _after_create(resource: Resource[Any], action: Action, write: Write, found: Object | None, message: str) -> Verdict:
    if write.subresource:
        return ended(action, Result.UNKNOWN, message)
    if found is None:
        return Again(message)
    wanted = whole(resource, action.object, write.body)
    if _has(found, wanted):
        return done(action, found, "exists as wanted")
    return ended(action, Result.CONFLICT, message)


def _after_apply(resource: Resource[Any], action: Action, write: Write, found: Object | None, message: str) -> Verdict:
    """Applying twice is applying once, so in doubt it is sent again and the server checks the preconditions."""
    wanted = whole(resource, action.object, write.body)
    if found is not None and not _is_another(action, found) and _has(found, wanted):
        return done(action, found, "as wanted, though no answer came")
    return Again(message)


def _after_patch(action: Action, write: Write, found: Object | None, message: str) -> Verdict:
    if found is None or _is_another(action, found):
        return ended(action, Result.CONFLICT, f"{message}; the object is gone")
    if _is_patched(found, write):
        return done(action, found, "as wanted, though no answer came")
    if write.resource_version:
        if found["metadata"].get("resourceVersion") == write.resource_version:
            return Again(message)
        return ended(action, Result.CONFLICT, f"{message}; the object has moved on")
    if write.json_patch:
        return ended(action, Result.UNKNOWN, message)
    return Again(message)


def _has(found: Object, wanted: Object) -> bool:
    # Concealed, since the server answers `stringData` as `data`; hashes compare as well as contents.
    return has_fields(conceal(found), conceal(wanted))


def _is_patched(found: Object, write: Write) -> bool:
    if not write.json_patch:
        return merge_patch(found, write.body) is found
    operations = [operation for operation in write.body if operation.get("op") != "test"]
    try:
        return json_patch(found, operations) is found
    except PatchError:
        return False
