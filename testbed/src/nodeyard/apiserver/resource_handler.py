"""Requests for resources, dispatched by verb."""

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
from nodeyard.apiserver.scale import to_scale, with_replicas
from nodeyard.apiserver.selection import Selection, select
from nodeyard.apiserver.store import Stored
from nodeyard.apiserver.tables import include_object
from nodeyard.apiserver.transport import Chunk, Request, Response, User
from nodeyard.apiserver.unstored_kinds import pods_resource, set_namespace
from nodeyard.apiserver.watches import InStreamError, Query, Stream
from nodeyard.apiserver.worker_thread import LARGE, Work, is_large_body
from nodeyard.apiserver.writes import Written, check_name
from nodeyard.kube.json import Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server

_VIRTUAL = {(group, version, plural): (kind, namespaced) for group, version, plural, kind, namespaced in VIRTUAL}


class ResourceHandler:
    """Handles requests for resources. `is_privileged`: they have the rights of the server itself."""

    def __init__(self, server: Server, *, is_privileged: bool = False) -> None:
        self._server = server
        self._is_privileged = is_privileged

    async def answer(
        self, request: Request, info: RequestInfo, user: User, work: Work, audit: dict[str, str] | None = None
    ) -> Response:
        """Answer a request; admission adds its annotations to `audit`."""
        virtual = _VIRTUAL.get((info.group, info.version, info.resource))
        if virtual is not None:
            kind, namespaced = virtual
            routes.check_virtual(request, info, namespaced=namespaced)
            if not _is_binding(info):
                return await work.run(is_large_body(request), lambda: self._review(request, info, user, kind))
        resource = pods_resource(self._server) if _is_binding(info) else self._find(info)
        form = negotiate(request.headers.get("accept", ""))
        context = RequestContext(request, info, user, resource, info.version, form, self._server.clock, work)
        if audit is not None:
            context.audit = audit
        if context.typed.deprecation:
            context.warnings.append(context.typed.deprecation)
        try:
            return await self._route(context)
        except ApiError as error:
            error.headers.extend(context.warning_headers())
            raise

    async def _route(self, context: RequestContext) -> Response:
        info = context.info
        if _is_binding(info):
            return await self._bind(context, "")
        routes.check(context)
        if context.resource.plural == "events":
            await self._server.events.expire()
        if info.subresource:
            return await self._subresource(context)
        if info.verb in ("list", "watch"):
            return await self._list(context) if info.verb == "list" else self._watch(context)
        if info.verb == "get":
            return await self._get(context)
        return await self._write(context)

    def _find(self, info: RequestInfo) -> Resource:
        registry = self._server.registry
        resource = registry.get(info.group, info.resource)
        version = resource.versions.get(info.version) if resource else None
        if resource is None or version is None or not version.served:
            raise routes.missing(registry, info)
        if info.has_scope and not resource.namespaced:
            raise routes.missing(registry, info)
        return resource

    # reads

    async def _get(self, context: RequestContext) -> Response:
        check_revision(self._server.store, context.request.param("resourceVersion"))
        stored = self._server.store.get(context.resource.key, context.namespace, context.name)
        if stored is None:
            raise errors.not_found(context.resource.group, context.resource.plural, context.name)
        return await self._answer_stored(context, stored)

    async def _answer_stored(self, context: RequestContext, stored: Stored, status: int = 200) -> Response:
        if len(stored.raw) <= LARGE or context.is_plain:
            return context.answer_stored(stored, status)
        return await context.work.run(True, lambda: context.answer_stored(stored, status))

    async def _list(self, context: RequestContext) -> Response:
        options = list_options(context.request, is_watch=False)
        selection = select(context.resource, context.namespace, options)
        found = page(self._server.store, context.resource, selection, options)
        now, include = self._server.clock.now(), context.request.param("includeObject")

        def render() -> Response:
            chunks = list_chunks(context.resource, context.version, context.form, found, now, include)
            if context.form.is_yaml or context.request.param("pretty"):
                return context.answer_bytes(b"".join(chunks))
            return context.finish(Response(200, chunks=chunks))

        is_large = not context.is_plain and sum(len(stored.raw) for stored in found.items) > LARGE
        return await context.work.run(is_large, render)

    def _watch(self, context: RequestContext) -> Response:
        options = list_options(context.request, is_watch=True)
        selection = select(context.resource, context.namespace, options)
        if len(context.info.parts) > 1:
            selection = _only(selection, context.info.parts[1])
        include = context.request.param("includeObject")
        if context.form.shape is Shape.TABLE:
            include_object(include)  # Raise now: later the answer has begun.
        query = Query(context.resource, context.version, selection, options, context.form, include)
        try:
            stream = self._server.hub.watch(query)
        except InStreamError as error:
            stream = _single(error.line)
        return context.finish(Response(200, stream=Stream(stream), content_type="application/json"))

    # writes

    async def _write(self, context: RequestContext) -> Response:
        verb = context.info.verb
        if verb == "create":
            options = write_options(context.request, "CreateOptions")
            obj = await self._read(context, options)
            return await self._written(context, await self._server.writer.create(context, obj, options))
        if verb == "update":
            return await self._written(context, await self._update(context, ""))
        if verb == "patch":
            return await self._patch(context, "")
        if verb == "delete":
            return await self._delete(context)
        if verb == "deletecollection":
            return await self._delete_collection(context)
        raise errors.method_not_allowed()

    async def _read(self, context: RequestContext, options: WriteOptions) -> Object:
        return await context.work.run(
            context.is_large, lambda: request_body.read_object(context, options.field_validation)
        )

    async def _update(self, context: RequestContext, subresource: str) -> Written:
        options = write_options(context.request, "UpdateOptions")
        obj = await self._read(context, options)
        check_name(context, obj)
        if not subresource and context.resource.strategy.allows_create_on_update and self._is_missing(context):
            self._check_may_create(context)
            return await self._server.writer.create_by_update(context, obj, options)
        return await self._server.writer.change(context, lambda _: obj, options, subresource=subresource)

    async def _patch(self, context: RequestContext, subresource: str) -> Response:
        given = await context.work.run(context.is_large, lambda: patches.read_patch(context))
        if given.is_apply and not subresource:
            self._check_may_create(context)
        return await self._written(context, await patches.patch(self._server.writer, context, given, subresource))

    def _check_may_create(self, context: RequestContext) -> None:
        """Check the right to create, which a write of a missing object needs as well."""
        if not self._is_privileged and self._is_missing(context):
            self._server.access.authorizer.check(context.user, msgspec.structs.replace(context.info, verb="create"))

    def _is_missing(self, context: RequestContext) -> bool:
        return self._server.store.get(context.resource.key, context.namespace, context.name) is None

    async def _written(self, context: RequestContext, written: Written) -> Response:
        status = 201 if written.created else 200
        if written.stored is not None:
            return await self._answer_stored(context, written.stored, status)
        return await context.work.run(context.is_large, lambda: context.answer(written.object, status))

    async def _delete(self, context: RequestContext) -> Response:
        options = delete_options(context.request, await self._delete_body(context))
        deleted = await self._server.deleter.delete(context, context.namespace, context.name, options)
        return await context.work.run(deleted.is_large, lambda: self._deleted(context, deleted, options))

    async def _delete_body(self, context: RequestContext) -> Object | None:
        if not context.request.body:
            return None
        return await context.work.run(context.is_large, lambda: request_body.read_delete_options(context.request))

    def _deleted(self, context: RequestContext, deleted: Deleted, options: DeleteOptions) -> Response:
        if not deleted.is_gone or context.resource.strategy.returns_deleted:
            status = 202 if options.asked_to_cascade and not deleted.is_gone else 200
            return context.answer(deleted.object, status)
        metadata = deleted.object["metadata"]
        details: Object = {"name": metadata["name"]}
        if context.resource.group:
            details["group"] = context.resource.group
        details |= {"kind": context.resource.plural, "uid": metadata["uid"]}
        status_body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return context.finish(value_response(context.request, status_body))

    async def _delete_collection(self, context: RequestContext) -> Response:
        options = delete_options(context.request, await self._delete_body(context))
        listed = list_options(context.request, is_watch=False)
        found = page(self._server.store, context.resource, select(context.resource, context.namespace, listed), listed)
        omitted = () if context.resource.is_custom else ("kind", "apiVersion")
        items: list[Chunk] = []
        size = 0
        async for obj in self._server.deleter.delete_collection(context, found.items, options):
            items.append(encode({name: value for name, value in obj.items() if name not in omitted}))
            size += len(items[-1])
        chunks = joined(context.resource.list_kind, context.api_version, found.metadata(), items)
        if not context.request.param("pretty"):
            return context.finish(Response(200, chunks=chunks))
        response = await context.work.run(size > LARGE, lambda: json_response(context.request, b"".join(chunks)))
        return context.finish(response)

    # subresources

    async def _subresource(self, context: RequestContext) -> Response:
        """Handle a subresource that `routes` has found, with a verb that it takes."""
        match context.info.subresource:
            case "status":
                return await self._status(context)
            case "scale":
                return await self._scale(context)
            case "finalize":
                return await self._written(context, await self._update(context, "finalize"))
            case "eviction":
                return await self._evict(context)
            case "binding":
                return await self._bind(context, context.name)
            case _:
                return await self._token(context)

    async def _status(self, context: RequestContext) -> Response:
        verb = context.info.verb
        if verb == "get":
            return await self._get(context)
        if verb == "update":
            return await self._written(context, await self._update(context, "status"))
        return await self._patch(context, "status")

    async def _scale(self, context: RequestContext) -> Response:
        paths, verb = context.typed.scale, context.info.verb
        assert paths is not None
        body = await self._read_unstored(context, SCALE) if verb == "update" else {}
        if verb == "update":
            check_name(context, body)
        stored = self._server.store.get(context.resource.key, context.namespace, context.name)
        if stored is None:
            raise errors.not_found(context.resource.group, context.resource.plural, context.name)
        if verb == "get":
            return await context.work.run(
                context.makes_large(stored), lambda: context.answer(to_scale(context, context.read(stored), paths))
            )
        if verb == "update":
            options = write_options(context.request, "UpdateOptions")
            written = await self._server.writer.change(
                context,
                lambda old: with_replicas(context, old, set_namespace(body, context.namespace), paths),
                options,
                subresource="scale",
            )
            return await self._scaled(context, written, paths)
        given = await context.work.run(context.is_large, lambda: patches.read_patch(context))
        if given.is_apply:
            raise errors.unsupported_media_type((patches.JSON_PATCH, patches.MERGE_PATCH))

        def transform(old: Object) -> Object:
            plain = given._replace(kind=patches.MERGE_PATCH) if given.kind == patches.STRATEGIC_PATCH else given
            new = patches.patch_unstored(context, plain, to_scale(context, old, paths), SCALE)
            check_name(context, new)
            return with_replicas(context, old, set_namespace(new, context.namespace), paths)

        written = await self._server.writer.change(context, transform, given.options, subresource="scale")
        return await self._scaled(context, written, paths)

    async def _scaled(self, context: RequestContext, written: Written, paths: Scale) -> Response:
        is_large = written.stored is not None and len(written.stored.raw) > LARGE
        return await context.work.run(
            is_large, lambda: context.answer(to_scale(context, _seen(context, written), paths))
        )

    async def _read_unstored(self, context: RequestContext, wanted: GroupVersionKind, *others: str) -> Object:
        return await context.work.run(
            context.is_large, lambda: request_body.read_unstored(context.request, wanted, *others)
        )

    async def _evict(self, context: RequestContext) -> Response:
        body = await self._read_unstored(context, EVICTION, RETIRED_EVICTION)
        options = write_options(context.request, "CreateOptions")
        outcome = await evict(self._server, context, body, options.dry_run)
        return context.finish(value_response(context.request, outcome, 201))

    async def _bind(self, context: RequestContext, name: str) -> Response:
        body = await self._read_unstored(context, BINDING)
        options = write_options(context.request, "CreateOptions")
        name = name or body["metadata"].get("name", "")
        outcome = await bind(self._server, context, name, body, options.dry_run)
        return context.finish(value_response(context.request, outcome, 201))

    async def _token(self, context: RequestContext) -> Response:
        body = set_namespace(await self._read_unstored(context, TOKEN_REQUEST), context.namespace)
        outcome = self._server.access.tokens.create(context.namespace, context.name, body)
        return context.finish(value_response(context.request, outcome, 201))

    def _review(self, request: Request, info: RequestInfo, user: User, kind: str) -> Response:
        body = request_body.read_unstored(request, GroupVersionKind(info.group, info.version, kind))
        if info.namespace:
            body = set_namespace(body, info.namespace)
        return value_response(request, self._server.access.reviews.review(kind, body, user, info.namespace), 201)


def _is_binding(info: RequestInfo) -> bool:
    """True if the path is the deprecated collection of bindings."""
    return (info.group, info.version, info.resource) == ("", "v1", "bindings")


def _seen(context: RequestContext, written: Written) -> Object:
    return context.read(written.stored) if written.stored is not None else written.object


def _only(selection: Selection, name: str) -> Selection:
    """The selection of a legacy watch of one object."""
    inner = selection.matches
    return Selection(
        selection.namespace, name, lambda stored: stored.key.name == name and (inner is None or inner(stored))
    )


async def _single(line: bytes) -> AsyncIterator[bytes]:
    yield line
