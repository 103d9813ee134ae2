"""Requests for objects: from verb and path to the part of the server that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from nodeyard.apiserver import errors, patches, request_body, routes
from nodeyard.apiserver.binding import bind
from nodeyard.apiserver.deletion import Deleted
from nodeyard.apiserver.discovery import VIRTUAL
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.eviction import RETIRED_EVICTION, evict
from nodeyard.apiserver.kinds.pod.strategy import BINDING, EVICTION
from nodeyard.apiserver.kinds.service_account import TOKEN_REQUEST
from nodeyard.apiserver.lists import check_revision, joined, list_chunks, page
from nodeyard.apiserver.negotiation import Shape, negotiate
from nodeyard.apiserver.options import DeleteOptions, WriteOptions, delete_options, list_options, write_options
from nodeyard.apiserver.request_context import RequestContext, json_response, value_response
from nodeyard.apiserver.request_info import RequestInfo
from nodeyard.apiserver.resources import SCALE, GroupVersionKind, Resource, Scale
from nodeyard.apiserver.responses import encode
from nodeyard.apiserver.scale import scale_of, scaled
from nodeyard.apiserver.selection import Selection, select
from nodeyard.apiserver.store import Stored
from nodeyard.apiserver.streams import Stream
from nodeyard.apiserver.tables import include_object
from nodeyard.apiserver.transport import Chunk, Request, Response, User
from nodeyard.apiserver.unstored_kinds import placed, pods_resource
from nodeyard.apiserver.watches import InStreamError, Query
from nodeyard.apiserver.worker_thread import LARGE, Work
from nodeyard.apiserver.writes import Written, check_name
from nodeyard.kube.json import Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server

_VIRTUAL = {(group, version, plural): (kind, namespaced) for group, version, plural, kind, namespaced in VIRTUAL}


class ResourceHandler:
    """`is_privileged`: whoever asks acts with the rights of the server itself."""

    def __init__(self, server: Server, *, is_privileged: bool = False) -> None:
        self._server = server
        self._is_privileged = is_privileged

    async def answer(
        self, asked: Request, info: RequestInfo, user: User, work: Work, audit: dict[str, str] | None = None
    ) -> Response:
        """`audit` takes what admission has to say for the audit log."""
        virtual = _VIRTUAL.get((info.group, info.version, info.resource))
        if virtual is not None:
            kind, namespaced = virtual
            routes.check_virtual(asked, info, namespaced=namespaced)
            if not _is_binding(info):
                return await work.run(len(asked.body) > LARGE, lambda: self._review(asked, info, user, kind))
        resource = pods_resource(self._server) if _is_binding(info) else self._find(info)
        form = negotiate(asked.headers.get("accept", ""))
        call = RequestContext(asked, info, user, resource, info.version, form, self._server.clock, work)
        if audit is not None:
            call.audit = audit
        if call.typed.deprecation:
            call.warnings.append(call.typed.deprecation)
        try:
            return await self._route(call)
        except ApiError as error:
            error.headers.extend(call.warning_headers())
            raise

    async def _route(self, call: RequestContext) -> Response:
        info = call.info
        if _is_binding(info):
            return await self._bind(call, "")
        routes.check(call)
        if call.resource.plural == "events":
            self._server.events.expire()
        if info.subresource:
            return await self._subresource(call)
        if info.verb in ("list", "watch"):
            return await self._list(call) if info.verb == "list" else self._watch(call)
        if info.verb == "get":
            return await self._get(call)
        return await self._write(call)

    def _find(self, info: RequestInfo) -> Resource:
        registry = self._server.registry
        resource = registry.get(info.group, info.resource)
        version = resource.versions.get(info.version) if resource else None
        if resource is None or version is None or not version.served:
            raise routes.missing(registry, info)
        if info.has_scope and not resource.namespaced:
            raise routes.missing(registry, info)
        return resource

    # reading

    async def _get(self, call: RequestContext) -> Response:
        check_revision(self._server.store, call.request.param("resourceVersion"))
        stored = self._server.store.get(call.resource.key, call.namespace, call.name)
        if stored is None:
            raise errors.not_found(call.resource.group, call.resource.plural, call.name)
        return await self._answer_stored(call, stored)

    async def _answer_stored(self, call: RequestContext, stored: Stored, status: int = 200) -> Response:
        if len(stored.raw) <= LARGE or call.is_plain:
            return call.answer_stored(stored, status)
        return await call.work.run(True, lambda: call.answer_stored(stored, status))

    async def _list(self, call: RequestContext) -> Response:
        options = list_options(call.request, is_watch=False)
        selection = select(call.resource, call.namespace, options)
        found = page(self._server.store, call.resource, selection, options)
        now, include = self._server.clock.now(), call.request.param("includeObject")

        def render() -> Response:
            chunks = list_chunks(call.resource, call.version, call.form, found, now, include)
            if call.form.is_yaml or call.request.param("pretty"):
                return call.answer_bytes(b"".join(chunks))
            return call.finish(Response(200, chunks=chunks))

        is_large = not call.is_plain and sum(len(stored.raw) for stored in found.items) > LARGE
        return await call.work.run(is_large, render)

    def _watch(self, call: RequestContext) -> Response:
        options = list_options(call.request, is_watch=True)
        selection = select(call.resource, call.namespace, options)
        if len(call.info.parts) > 1:
            selection = _only(selection, call.info.parts[1])
        include = call.request.param("includeObject")
        if call.form.shape is Shape.TABLE:
            include_object(include)  # Else it would be refused when the answer has begun.
        query = Query(call.resource, call.version, selection, options, call.form, include)
        try:
            stream = self._server.hub.watch(query)
        except InStreamError as error:
            stream = _single(error.line)
        return call.finish(Response(200, stream=Stream(stream), content_type="application/json"))

    # writing

    async def _write(self, call: RequestContext) -> Response:
        verb = call.info.verb
        if verb == "create":
            options = write_options(call.request, "CreateOptions")
            obj = await self._read(call, options)
            return await self._written(call, await self._server.writer.create(call, obj, options))
        if verb == "update":
            return await self._written(call, await self._update(call, ""))
        if verb == "patch":
            return await self._patch(call, "")
        if verb == "delete":
            return await self._delete(call)
        if verb == "deletecollection":
            return await self._delete_collection(call)
        raise errors.method_not_allowed()

    async def _read(self, call: RequestContext, options: WriteOptions) -> Object:
        return await call.work.run(call.is_large, lambda: request_body.read_object(call, options.field_validation))

    async def _update(self, call: RequestContext, subresource: str) -> Written:
        options = write_options(call.request, "UpdateOptions")
        obj = await self._read(call, options)
        check_name(call, obj)
        if not subresource and call.resource.strategy.allows_create_on_update and self._is_missing(call):
            self._check_may_create(call)
            return await self._server.writer.create_by_update(call, obj, options)
        return await self._server.writer.change(call, lambda _: obj, options, subresource=subresource)

    async def _patch(self, call: RequestContext, subresource: str) -> Response:
        given = await call.work.run(call.is_large, lambda: patches.read_patch(call))
        if given.is_apply and not subresource:
            self._check_may_create(call)
        return await self._written(call, await patches.patch(self._server.writer, call, given, subresource))

    def _check_may_create(self, call: RequestContext) -> None:
        """A write that makes the object needs the right to create it as well."""
        if not self._is_privileged and self._is_missing(call):
            self._server.access.authorizer.check(call.user, msgspec.structs.replace(call.info, verb="create"))

    def _is_missing(self, call: RequestContext) -> bool:
        return self._server.store.get(call.resource.key, call.namespace, call.name) is None

    async def _written(self, call: RequestContext, written: Written) -> Response:
        status = 201 if written.created else 200
        if written.stored is not None:
            return await self._answer_stored(call, written.stored, status)
        return await call.work.run(call.is_large, lambda: call.answer(written.object, status))

    async def _delete(self, call: RequestContext) -> Response:
        options = delete_options(call.request, await self._delete_body(call))
        deleted = await self._server.deleter.delete(call, call.namespace, call.name, options)
        return await call.work.run(deleted.is_large, lambda: self._deleted(call, deleted, options))

    async def _delete_body(self, call: RequestContext) -> Object | None:
        if not call.request.body:
            return None
        return await call.work.run(call.is_large, lambda: request_body.read_delete_options(call.request))

    def _deleted(self, call: RequestContext, deleted: Deleted, options: DeleteOptions) -> Response:
        if not deleted.is_gone or call.resource.strategy.returns_deleted:
            status = 202 if options.asked_to_cascade and not deleted.is_gone else 200
            return call.answer(deleted.object, status)
        metadata = deleted.object["metadata"]
        details: Object = {"name": metadata["name"]}
        if call.resource.group:
            details["group"] = call.resource.group
        details |= {"kind": call.resource.plural, "uid": metadata["uid"]}
        status_body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return call.finish(value_response(call.request, status_body))

    async def _delete_collection(self, call: RequestContext) -> Response:
        options = delete_options(call.request, await self._delete_body(call))
        listed = list_options(call.request, is_watch=False)
        found = page(self._server.store, call.resource, select(call.resource, call.namespace, listed), listed)
        omitted = () if call.resource.is_custom else ("kind", "apiVersion")
        items: list[Chunk] = []
        size = 0
        async for obj in self._server.deleter.delete_collection(call, found.items, options):
            items.append(encode({name: value for name, value in obj.items() if name not in omitted}))
            size += len(items[-1])
        chunks = joined(call.resource.list_kind, call.api_version, found.metadata(), items)
        if not call.request.param("pretty"):
            return call.finish(Response(200, chunks=chunks))
        response = await call.work.run(size > LARGE, lambda: json_response(call.request, b"".join(chunks)))
        return call.finish(response)

    # subresources

    async def _subresource(self, call: RequestContext) -> Response:
        """Which there are, and with which verbs, `endpoints` has checked."""
        name = call.info.subresource
        if name == "status":
            return await self._status(call)
        if name == "scale":
            return await self._scale(call)
        if name == "finalize":
            return await self._written(call, await self._update(call, "finalize"))
        if name == "eviction":
            return await self._evict(call)
        if name == "binding":
            return await self._bind(call, call.name)
        return await self._token(call)

    async def _status(self, call: RequestContext) -> Response:
        verb = call.info.verb
        if verb == "get":
            return await self._get(call)
        if verb == "update":
            return await self._written(call, await self._update(call, "status"))
        return await self._patch(call, "status")

    async def _scale(self, call: RequestContext) -> Response:
        paths, verb = call.typed.scale, call.info.verb
        assert paths is not None
        body = await self._read_posted(call, SCALE) if verb == "update" else {}
        if verb == "update":
            check_name(call, body)
        stored = self._server.store.get(call.resource.key, call.namespace, call.name)
        if stored is None:
            raise errors.not_found(call.resource.group, call.resource.plural, call.name)
        if verb == "get":
            return await call.work.run(
                call.makes_large(stored), lambda: call.answer(scale_of(call, call.read(stored), paths))
            )
        if verb == "update":
            options = write_options(call.request, "UpdateOptions")
            written = await self._server.writer.change(
                call, lambda old: scaled(call, old, placed(body, call.namespace), paths), options, subresource="scale"
            )
            return await self._scaled(call, written, paths)
        given = await call.work.run(call.is_large, lambda: patches.read_patch(call))
        if given.is_apply:
            raise errors.unsupported_media_type((patches.JSON_PATCH, patches.MERGE_PATCH))

        def transform(old: Object) -> Object:
            plain = given._replace(kind=patches.MERGE_PATCH) if given.kind == patches.STRATEGIC_PATCH else given
            new = patches.patched_posted(call, plain, scale_of(call, old, paths), SCALE)
            check_name(call, new)
            return scaled(call, old, placed(new, call.namespace), paths)

        written = await self._server.writer.change(call, transform, given.options, subresource="scale")
        return await self._scaled(call, written, paths)

    async def _scaled(self, call: RequestContext, written: Written, paths: Scale) -> Response:
        is_large = written.stored is not None and len(written.stored.raw) > LARGE
        return await call.work.run(is_large, lambda: call.answer(scale_of(call, _seen(call, written), paths)))

    async def _read_posted(self, call: RequestContext, wanted: GroupVersionKind, *others: str) -> Object:
        return await call.work.run(call.is_large, lambda: request_body.read_posted(call.request, wanted, *others))

    async def _evict(self, call: RequestContext) -> Response:
        body = await self._read_posted(call, EVICTION, RETIRED_EVICTION)
        options = write_options(call.request, "CreateOptions")
        outcome = await evict(self._server, call, body, options.dry_run)
        return call.finish(value_response(call.request, outcome, 201))

    async def _bind(self, call: RequestContext, name: str) -> Response:
        body = await self._read_posted(call, BINDING)
        options = write_options(call.request, "CreateOptions")
        name = name or body["metadata"].get("name", "")
        outcome = await bind(self._server, call, name, body, options.dry_run)
        return call.finish(value_response(call.request, outcome, 201))

    async def _token(self, call: RequestContext) -> Response:
        body = placed(await self._read_posted(call, TOKEN_REQUEST), call.namespace)
        outcome = self._server.access.tokens.create(call.namespace, call.name, body)
        return call.finish(value_response(call.request, outcome, 201))

    def _review(self, asked: Request, info: RequestInfo, user: User, kind: str) -> Response:
        body = request_body.read_posted(asked, GroupVersionKind(info.group, info.version, kind))
        if info.namespace:
            body = placed(body, info.namespace)
        return value_response(asked, self._server.access.reviews.review(kind, body, user, info.namespace), 201)


def _is_binding(info: RequestInfo) -> bool:
    """The old collection that bindings were posted to before pods had a subresource for them."""
    return (info.group, info.version, info.resource) == ("", "v1", "bindings")


def _seen(call: RequestContext, written: Written) -> Object:
    return call.read(written.stored) if written.stored is not None else written.object


def _only(selection: Selection, name: str) -> Selection:
    """The legacy watch of one object."""
    inner = selection.matches
    return Selection(
        selection.namespace, name, lambda stored: stored.key.name == name and (inner is None or inner(stored))
    )


async def _single(line: bytes) -> AsyncIterator[bytes]:
    yield line
