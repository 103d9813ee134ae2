"""The request of one action: its verb and preconditions in the form that the API takes.

A precondition is part of the body: with a resourceVersion the server answers 409 if the object has changed, with a uid
if another object has the same name.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nodeyard.client.api import Client, DeleteOptions, PatchForm
from nodeyard.client.resources import Resource
from nodeyard.client.transport import REQUEST_SECONDS, Hold, Request, Response, Transport
from nodeyard.kube.json import Json, Object
from nodeyard.plan.model import Action, ObjectRef, Verb, Write

WRITE_SECONDS: Final = 10.0
"""Timeout of a first attempt, after which the object is read instead. A hanging write blocks its key."""

_ATOMIC_LISTS: Final = (("spec", "taints"), ("metadata", "finalizers"), ("metadata", "ownerReferences"))


class Sender:
    """Sends each write exactly once, under its field manager. The transport must not retry."""

    def __init__(self, client: Client, field_manager: str) -> None:
        self._client = client
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
    made = client.managed_by(field_manager)
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
