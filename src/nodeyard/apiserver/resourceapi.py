"""Requests for objects: from verb and path to the part of the server that answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from nodeyard.apiserver import bodies, endpoints, errors, patching
from nodeyard.apiserver.binding import BINDING, bind
from nodeyard.apiserver.calls import Call, value_response
from nodeyard.apiserver.deleting import Deleted
from nodeyard.apiserver.discovery import VIRTUAL
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.eviction import EVICTION, RETIRED_EVICTION, evict
from nodeyard.apiserver.http import Request, Response, User
from nodeyard.apiserver.listing import check_revision, list_chunks, page
from nodeyard.apiserver.negotiation import Shape, negotiate
from nodeyard.apiserver.options import DeleteOptions, delete_options, list_options, write_options
from nodeyard.apiserver.posted import placed, pods_resource
from nodeyard.apiserver.requests import RequestInfo
from nodeyard.apiserver.resources import GroupVersionKind, Resource
from nodeyard.apiserver.scaling import SCALE, scale_of, scaled
from nodeyard.apiserver.selection import Selection, select
from nodeyard.apiserver.serviceaccounts import TOKEN_REQUEST
from nodeyard.apiserver.streams import Stream
from nodeyard.apiserver.tables import include_object
from nodeyard.apiserver.watching import InStreamError, Query
from nodeyard.apiserver.writing import Written, check_name
from nodeyard.kube.json import Object

if TYPE_CHECKING:
    from nodeyard.apiserver.server import Server

_VIRTUAL = {(group, version, plural): (kind, namespaced) for group, version, plural, kind, namespaced in VIRTUAL}


class ResourceApi:
    """`is_privileged`: whoever asks acts with the rights of the server itself."""

    def __init__(self, server: Server, *, is_privileged: bool = False) -> None:
        self._server = server
        self._is_privileged = is_privileged

    async def answer(
        self, asked: Request, info: RequestInfo, user: User, audit: dict[str, str] | None = None
    ) -> Response:
        """`audit` takes what admission has to say for the audit log."""
        virtual = _VIRTUAL.get((info.group, info.version, info.resource))
        if virtual is not None:
            kind, namespaced = virtual
            endpoints.check_virtual(asked, info, namespaced=namespaced)
            if not _is_binding(info):
                return self._review(asked, info, user, kind)
        resource = pods_resource(self._server) if _is_binding(info) else self._find(info)
        form = negotiate(asked.headers.get("accept", ""))
        call = Call(asked, info, user, resource, info.version, form, self._server.clock)
        if audit is not None:
            call.audit = audit
        if call.typed.deprecation:
            call.warnings.append(call.typed.deprecation)
        try:
            return await self._route(call)
        except ApiError as error:
            error.headers.extend(call.warning_headers())
            raise

    async def _route(self, call: Call) -> Response:
        info = call.info
        if _is_binding(info):
            return await self._bind(call, "")
        endpoints.check(call)
        if info.subresource:
            return await self._subresource(call)
        if info.verb in ("list", "watch"):
            return self._list(call) if info.verb == "list" else self._watch(call)
        if info.verb == "get":
            return self._get(call)
        return await self._write(call)

    def _find(self, info: RequestInfo) -> Resource:
        registry = self._server.registry
        resource = registry.get(info.group, info.resource)
        version = resource.versions.get(info.version) if resource else None
        if resource is None or version is None or not version.served:
            raise endpoints.missing(registry, info)
        if info.has_scope and not resource.namespaced:
            raise endpoints.missing(registry, info)
        return resource

    # reading

    def _get(self, call: Call) -> Response:
        check_revision(self._server.store, call.request.param("resourceVersion"))
        stored = self._server.store.get(call.resource.key, call.namespace, call.name)
        if stored is None:
            raise errors.not_found(call.resource.group, call.resource.plural, call.name)
        return call.answer_stored(stored)

    def _list(self, call: Call) -> Response:
        options = list_options(call.request, is_watch=False)
        selection = select(call.resource, call.namespace, options)
        found = page(self._server.store, call.resource, selection, options)
        chunks = list_chunks(
            call.resource,
            call.version,
            call.form,
            found,
            self._server.clock.now(),
            call.request.param("includeObject"),
        )
        if call.form.is_yaml or call.request.param("pretty"):
            return call.answer_bytes(b"".join(chunks))
        return call.finish(Response(200, chunks=chunks))

    def _watch(self, call: Call) -> Response:
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

    async def _write(self, call: Call) -> Response:
        verb = call.info.verb
        if verb == "create":
            options = write_options(call.request, "CreateOptions")
            obj = bodies.read_object(call, options.field_validation)
            return self._written(call, await self._server.writer.create(call, obj, options))
        if verb == "update":
            return self._written(call, await self._update(call, ""))
        if verb == "patch":
            return await self._patch(call, "")
        if verb == "delete":
            return await self._delete(call)
        if verb == "deletecollection":
            return await self._delete_collection(call)
        raise errors.method_not_allowed()

    async def _update(self, call: Call, subresource: str) -> Written:
        options = write_options(call.request, "UpdateOptions")
        obj = bodies.read_object(call, options.field_validation)
        check_name(call, obj)
        if not subresource and call.resource.strategy.allows_create_on_update and self._is_missing(call):
            self._check_may_create(call)
            return await self._server.writer.create_by_update(call, obj, options)
        return await self._server.writer.change(call, lambda _: obj, options, subresource=subresource)

    async def _patch(self, call: Call, subresource: str) -> Response:
        given = patching.read_patch(call)
        if given.is_apply and not subresource:
            self._check_may_create(call)
        return self._written(call, await patching.patch(self._server.writer, call, given, subresource))

    def _check_may_create(self, call: Call) -> None:
        """A write that makes the object needs the right to create it as well."""
        if not self._is_privileged and self._is_missing(call):
            self._server.access.authorizer.check(call.user, msgspec.structs.replace(call.info, verb="create"))

    def _is_missing(self, call: Call) -> bool:
        return self._server.store.get(call.resource.key, call.namespace, call.name) is None

    def _written(self, call: Call, written: Written) -> Response:
        status = 201 if written.created else 200
        if written.stored is not None:
            return call.answer_stored(written.stored, status)
        return call.answer(written.object, status)

    async def _delete(self, call: Call) -> Response:
        options = delete_options(call.request, self._delete_body(call))
        deleted = await self._server.deleter.delete(call, call.namespace, call.name, options)
        return self._deleted(call, deleted, options)

    def _delete_body(self, call: Call) -> Object | None:
        if not call.request.body:
            return None
        return bodies.read_delete_options(call.request)

    def _deleted(self, call: Call, deleted: Deleted, options: DeleteOptions) -> Response:
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

    async def _delete_collection(self, call: Call) -> Response:
        options = delete_options(call.request, self._delete_body(call))
        listed = list_options(call.request, is_watch=False)
        found = page(self._server.store, call.resource, select(call.resource, call.namespace, listed), listed)
        gone = await self._server.deleter.delete_collection(call, found.items, options)
        items = gone
        if not call.resource.is_custom:
            items = [{name: value for name, value in obj.items() if name not in ("kind", "apiVersion")} for obj in gone]
        body = {
            "kind": call.resource.list_kind,
            "apiVersion": call.api_version,
            "metadata": found.metadata(),
            "items": items,
        }
        return call.finish(value_response(call.request, body))

    # subresources

    async def _subresource(self, call: Call) -> Response:
        """Which there are, and with which verbs, `endpoints` has checked."""
        name = call.info.subresource
        if name == "status":
            return await self._status(call)
        if name == "scale":
            return await self._scale(call)
        if name == "finalize":
            return self._written(call, await self._update(call, "finalize"))
        if name == "eviction":
            return await self._evict(call)
        if name == "binding":
            return await self._bind(call, call.name)
        return self._token(call)

    async def _status(self, call: Call) -> Response:
        verb = call.info.verb
        if verb == "get":
            return self._get(call)
        if verb == "update":
            return self._written(call, await self._update(call, "status"))
        return await self._patch(call, "status")

    async def _scale(self, call: Call) -> Response:
        paths, verb = call.typed.scale, call.info.verb
        assert paths is not None
        body = bodies.read_posted(call.request, SCALE) if verb == "update" else {}
        if verb == "update":
            check_name(call, body)
        stored = self._server.store.get(call.resource.key, call.namespace, call.name)
        if stored is None:
            raise errors.not_found(call.resource.group, call.resource.plural, call.name)
        if verb == "get":
            return call.answer(scale_of(call, call.read(stored), paths))
        if verb == "update":
            options = write_options(call.request, "UpdateOptions")
            written = await self._server.writer.change(
                call, lambda old: scaled(call, old, placed(body, call.namespace), paths), options, subresource="scale"
            )
            return call.answer(scale_of(call, _seen(call, written), paths))
        given = patching.read_patch(call)
        if given.is_apply:
            raise errors.unsupported_media_type((patching.JSON_PATCH, patching.MERGE_PATCH))

        def transform(old: Object) -> Object:
            plain = given._replace(kind=patching.MERGE_PATCH) if given.kind == patching.STRATEGIC_PATCH else given
            new = patching.patched_posted(call, plain, scale_of(call, old, paths), SCALE)
            check_name(call, new)
            return scaled(call, old, placed(new, call.namespace), paths)

        written = await self._server.writer.change(call, transform, given.options, subresource="scale")
        return call.answer(scale_of(call, _seen(call, written), paths))

    async def _evict(self, call: Call) -> Response:
        body = bodies.read_posted(call.request, EVICTION, RETIRED_EVICTION)
        options = write_options(call.request, "CreateOptions")
        outcome = await evict(self._server, call, body, options.dry_run)
        return call.finish(value_response(call.request, outcome, 201))

    async def _bind(self, call: Call, name: str) -> Response:
        body = bodies.read_posted(call.request, BINDING)
        options = write_options(call.request, "CreateOptions")
        name = name or body["metadata"].get("name", "")
        outcome = await bind(self._server, call, name, body, options.dry_run)
        return call.finish(value_response(call.request, outcome, 201))

    def _token(self, call: Call) -> Response:
        body = placed(bodies.read_posted(call.request, TOKEN_REQUEST), call.namespace)
        outcome = self._server.access.tokens.create(call.namespace, call.name, body)
        return call.finish(value_response(call.request, outcome, 201))

    def _review(self, asked: Request, info: RequestInfo, user: User, kind: str) -> Response:
        body = bodies.read_posted(asked, GroupVersionKind(info.group, info.version, kind))
        if info.namespace:
            body = placed(body, info.namespace)
        return value_response(asked, self._server.access.reviews.review(kind, body, user, info.namespace), 201)


def _is_binding(info: RequestInfo) -> bool:
    """The old collection that bindings were posted to before pods had a subresource for them."""
    return (info.group, info.version, info.resource) == ("", "v1", "bindings")


def _seen(call: Call, written: Written) -> Object:
    return call.read(written.stored) if written.stored is not None else written.object


def _only(selection: Selection, name: str) -> Selection:
    """The legacy watch of one object."""
    inner = selection.matches
    return Selection(
        selection.namespace, name, lambda stored: stored.key.name == name and (inner is None or inner(stored))
    )


async def _single(line: bytes) -> AsyncIterator[bytes]:
    yield line
