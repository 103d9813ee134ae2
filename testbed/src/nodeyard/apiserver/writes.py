"""Creates and updates: the one path of every write, whatever its verb.

    create:  place ─▶ own ─▶ mutate ─▶ name, uid, prepare ─▶ validate ─▶ admit ─▶ commit
    change:  read ─▶ transform ─▶ own ─▶ mutate ─▶ prepare ─▶ validate ─▶ admit ─▶ commit, or retry after a conflict

Nothing awaits between the last read of the store and the commit. Webhooks, and the steps of a large request in the
worker thread, await before it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from random import Random
from typing import Protocol

from nodeyard.apiserver import codec, errors, managed_fields, metadata
from nodeyard.apiserver.admission.attributes import Attributes, Operation
from nodeyard.apiserver.cel.cost import Budget
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.options import WriteOptions, manager_name
from nodeyard.apiserver.request_context import RequestContext
from nodeyard.apiserver.resources import Strategy
from nodeyard.apiserver.responses import canonical
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import Encoded, StaleError, Store, Stored
from nodeyard.kube import fields
from nodeyard.kube.json import Json, Object, json_equal, with_whole_numbers
from nodeyard.kube.timestamps import format_rfc3339
from nodeyard.process.clock import Clock

ATTEMPTS = 5
MAX_OBJECT_BYTES = 1536 * 1024
"""The limit of etcd for one request."""
MAX_LEVELS = 250
TOO_DEEP = f"the object is nested too deeply: this server takes {MAX_LEVELS} levels"
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NAME_ATTEMPTS = 8
_GENERATED_PREFIX_MAX = 58

Transform = Callable[[Object], Object]


class Admission(Protocol):
    async def mutate(self, attributes: Attributes) -> None: ...

    async def validate(self, attributes: Attributes) -> None: ...


@dataclass(frozen=True, slots=True)
class Written:
    """The result: the stored object, or the object of a dry run."""

    object: Object
    stored: Stored | None
    created: bool = False


class Writer:
    def __init__(self, store: Store, clock: Clock, admission: Admission, random: Random) -> None:
        self._store = store
        self._clock = clock
        self._admission = admission
        self._random = random

    # create

    async def create(
        self, context: RequestContext, obj: Object, options: WriteOptions, *, is_owned: bool = False
    ) -> Written:
        """Store a new object. `is_owned`: server-side apply has recorded its ownership already."""
        resource, strategy = context.resource, context.resource.strategy
        if resource.terminating:
            raise errors.method_not_allowed()
        obj = self._place(context, obj)
        if _names_revision(obj) and not options.dry_run:
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        placed = obj

        def own() -> Object:
            new = _with_distinct_owners(context, placed)
            return new if is_owned else self._own(context, None, new, options)

        obj = self._begin_life(context, await context.work.run(context.is_large, own))
        attributes = self._attributes(context, "CREATE", obj, None, options, is_large=context.is_large)
        named = self._name(context, await self._mutate(context, attributes))

        def judge(budget: Budget | None) -> Object:
            prepared = strategy.prepare_create(named, self._clock.now())
            if faults := _create_faults(context, prepared, budget):
                raise errors.invalid(resource.group, resource.kind, prepared["metadata"].get("name", ""), faults)
            context.warnings.extend(strategy.warnings(prepared, None))
            return _with_whole_numbers(context, prepared)

        obj = await context.work.evaluate(attributes.is_large, judge)
        attributes.object = obj
        attributes.name = obj["metadata"]["name"]
        await self._admission.validate(attributes)
        if self._store.get(resource.key, context.namespace, obj["metadata"]["name"]) is not None:
            raise errors.already_exists(resource.group, resource.plural, obj["metadata"]["name"])
        if options.dry_run:
            return Written(obj, None, created=True)
        try:
            return await self._commit(context, obj, None, attributes.is_large)
        except StaleError:
            raise errors.already_exists(resource.group, resource.plural, obj["metadata"]["name"]) from None

    async def create_by_update(self, context: RequestContext, obj: Object, options: WriteOptions) -> Written:
        """Create an object by an update, ignoring its resourceVersion; a uid is a conflict."""
        given = obj["metadata"]
        if uid := given.get("uid"):
            raise _other_uid(context, uid, "")
        _check_number(given.get("resourceVersion") or "0")
        metadata = {name: value for name, value in given.items() if name != "resourceVersion"}
        return await self.create(context, {**obj, "metadata": metadata}, replace(options, kind="CreateOptions"))

    def _place(self, context: RequestContext, obj: Object) -> Object:
        """Set the namespace of the URL; raise a 400 if the object has another one."""
        given = obj.get("metadata") or {}
        namespace = given.get("namespace", "")
        if context.resource.namespaced:
            if namespace and namespace != context.namespace:
                raise errors.bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            given = {**given, "namespace": context.namespace}
        elif namespace:
            given = {name: value for name, value in given.items() if name != "namespace"}
        return {**obj, "metadata": given}

    def _begin_life(self, context: RequestContext, obj: Object) -> Object:
        """Set the metadata that only the server sets."""
        given = {
            name: value
            for name, value in obj["metadata"].items()
            if name not in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
        }
        given["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        given["creationTimestamp"] = format_rfc3339(self._clock.now())
        if context.resource.strategy.uses_generation:
            given["generation"] = 1
        return {**obj, "metadata": given}

    def _name(self, context: RequestContext, obj: Object) -> Object:
        """Generate the name if only generateName is given."""
        given = obj["metadata"]
        if given.get("name") or not given.get("generateName"):
            return obj
        return {**obj, "metadata": {**given, "name": self._generate_name(context, given["generateName"])}}

    def _generate_name(self, context: RequestContext, base: str) -> str:
        for _ in range(_NAME_ATTEMPTS):
            suffix = "".join(self._random.choices(_NAME_LETTERS, k=5))
            name = base[:_GENERATED_PREFIX_MAX] + suffix
            if self._store.get(context.resource.key, context.namespace, name) is None:
                return name
        return name

    # change

    async def change(
        self,
        context: RequestContext,
        transform: Transform,
        options: WriteOptions,
        *,
        subresource: str = "",
        is_owned: bool = False,
    ) -> Written:
        """Read, transform and store; retry after a conflict if the request names no resourceVersion."""
        for _ in range(ATTEMPTS):
            stored = self._store.get(context.resource.key, context.namespace, context.name)
            if stored is None:
                raise errors.not_found(context.resource.group, context.resource.plural, context.name)

            def prepare(stored: Stored = stored) -> tuple[Object, Object, bool]:
                old = context.read(stored)
                new = transform(old)
                names_revision = self._check_identity(context, new, old)
                if context.request.method == "PUT":
                    new = _with_distinct_owners(context, new)
                return old, new if is_owned else self._own(context, old, new, options, subresource), names_revision

            old, new, names_revision = await context.work.run(context.makes_large(stored), prepare)
            try:
                return await self._replace(context, stored, old, new, options, subresource)
            except StaleError:
                if names_revision:
                    break
        raise errors.modified(context.resource.group, context.resource.plural, context.name)

    async def _replace(
        self, context: RequestContext, stored: Stored, old: Object, new: Object, options: WriteOptions, subresource: str
    ) -> Written:
        resource, strategy = context.resource, context.resource.strategy
        is_large = context.makes_large(stored)
        attributes = self._attributes(context, "UPDATE", new, old, options, subresource, is_large=is_large)
        mutated = self._keep_identity(await self._mutate(context, attributes), old)

        def judge(budget: Budget | None) -> Object:
            prepared = _prepare(strategy, mutated, old, subresource)
            prepared = self._generation(context, prepared, old, is_status=subresource == "status")
            if faults := _update_faults(context, prepared, old, subresource, budget):
                raise errors.invalid(resource.group, resource.kind, context.name, faults)
            context.warnings.extend(strategy.warnings(prepared, old))
            return _with_whole_numbers(context, prepared)

        judged = await context.work.evaluate(attributes.is_large, judge)
        attributes.object = judged
        await self._admission.validate(attributes)

        def conclude() -> tuple[Object, bool]:
            timed = managed_fields.keep_times(old, judged)
            return timed, json_equal(timed, old)

        new, is_same = await context.work.run(attributes.is_large, conclude)
        if self._store.get(resource.key, context.namespace, context.name) is not stored:
            raise StaleError
        if is_same:
            return Written(old, stored)
        if options.dry_run:
            return Written(new, None)
        if is_over(strategy.holds(new), new):
            self._store.remove(resource.key, stored)  # watchers see the stored version, only the writer the written one
            return Written(new, None)
        return await self._commit(context, new, stored, attributes.is_large)

    def _check_identity(self, context: RequestContext, new: Object, old: Object) -> bool:
        """Check name, uid and resourceVersion; return whether the writer named a resourceVersion."""
        resource = context.resource
        given, current = new.get("metadata") or {}, old["metadata"]
        check_name(context, new)
        if given.get("namespace", context.namespace) not in ("", context.namespace):
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        uid, revision = given.get("uid"), given.get("resourceVersion")
        if revision == "0":
            revision = None  # the same as none
        if uid and uid != current["uid"] and context.request.method == "PUT":
            raise _other_uid(context, uid, current["uid"])
        if not revision and not resource.strategy.allows_unconditional_update:
            fault = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(resource.group, resource.plural, context.name, [fault])
        if revision and revision != current["resourceVersion"]:
            _check_number(revision)
            raise errors.modified(resource.group, resource.plural, context.name)
        return context.request.method == "PUT" and bool(revision)

    def _keep_identity(self, new: Object, old: Object) -> Object:
        """Keep the metadata that no update changes, if the writer left it out."""
        given, current = dict(new.get("metadata") or {}), old["metadata"]
        given["resourceVersion"] = current["resourceVersion"]
        for name in ("namespace", "uid", "deletionGracePeriodSeconds"):
            if name in current:
                given.setdefault(name, current[name])
        given |= {name: current[name] for name in ("creationTimestamp", "deletionTimestamp") if name in current}
        given.pop("selfLink", None)
        return new if given == new.get("metadata") else {**new, "metadata": given}

    def _generation(self, context: RequestContext, new: Object, old: Object, *, is_status: bool) -> Object:
        strategy = context.resource.strategy
        current = old["metadata"].get("generation")
        if not is_status and strategy.uses_generation and strategy.changes_generation(new, old):
            current = (current or 0) + 1
        given = new["metadata"]
        if given.get("generation") == current:
            return new
        rest = {name: value for name, value in given.items() if name != "generation"}
        return {**new, "metadata": rest if current is None else {**rest, "generation": current}}

    # both

    def _own(
        self, context: RequestContext, old: Object | None, new: Object, options: WriteOptions, subresource: str = ""
    ) -> Object:
        return managed_fields.update(
            context.typed.schema,
            old,
            new,
            manager=manager_name(options, context.request),
            api_version=context.api_version,
            subresource=subresource,
            now=self._clock.now(),
            reset=context.resource.strategy.reset_fields(subresource),
        )

    async def _mutate(self, context: RequestContext, attributes: Attributes) -> Object:
        before = attributes.object
        await self._admission.mutate(attributes)
        after = attributes.object
        if after is None:
            raise errors.internal("admission removed the object")
        mutated, is_changed = after, after is not before
        context.has_floats |= is_changed

        def read() -> Object:
            obj = codec.read(context.resource, context.version, mutated)[0] if is_changed else mutated
            return _with_distinct_owners(context, obj, " after mutating admission happens")

        return await context.work.run(attributes.is_large, read)

    def _attributes(
        self,
        context: RequestContext,
        operation: Operation,
        obj: Object,
        old: Object | None,
        options: WriteOptions,
        subresource: str = "",
        *,
        is_large: bool,
    ) -> Attributes:
        return Attributes(
            operation=operation,
            resource=context.resource,
            version=context.version,
            subresource=subresource,
            namespace=context.namespace,
            name=obj["metadata"].get("name", ""),
            object=obj,
            old=old,
            user=context.user,
            work=context.work,
            is_large=is_large,
            dry_run=options.dry_run,
            options=options.as_object(),
            warnings=context.warnings,
            audit=context.audit,
        )

    async def _commit(self, context: RequestContext, obj: Object, expect: Stored | None, is_large: bool) -> Written:
        kept, key = self._canonical(context, obj), context.resource.key
        found = selectable(context.resource, obj)
        if is_large:
            encoded = await context.work.run(True, lambda: _encoded(kept))
            stored = self._store.commit(key, kept, found, expect=expect, encoded=encoded)
        else:
            stored = self._store.commit(key, kept, found, expect=expect, check=_check_limits)
        return Written(obj, stored, created=expect is None)

    def _canonical(self, context: RequestContext, obj: Object) -> Object:
        resource = context.resource
        return canonical(obj, resource.kind, resource.api_version(resource.storage_version))


def _with_whole_numbers(context: RequestContext, obj: Object) -> Object:
    """Turn 3.0 of a custom resource into 3, after validation as the float that was sent."""
    if not (context.resource.is_custom and context.has_floats):
        return obj
    found: Object = with_whole_numbers(obj)
    return found


def _create_faults(context: RequestContext, obj: Object, budget: Budget | None) -> list[fields.FieldError]:
    resource = context.resource
    faults = metadata.create_faults(resource, obj)
    faults += codec.validate(resource, context.version, obj, None, context.warnings, budget=budget)
    if budget is not None:
        budget.spend_on_trial(resource.strategy.validation_cost(obj))
    return faults + resource.strategy.validate_create(obj)


def _update_faults(
    context: RequestContext, new: Object, old: Object, subresource: str, budget: Budget | None
) -> list[fields.FieldError]:
    resource, strategy, is_status = context.resource, context.resource.strategy, subresource == "status"
    faults = metadata.update_faults(resource, new, old)
    faults += codec.validate(resource, context.version, new, old, context.warnings, is_status=is_status, budget=budget)
    if is_status:
        return faults + strategy.validate_status(new, old)
    if budget is not None:
        budget.spend_on_trial(strategy.validation_cost(new))
    return faults + strategy.validate_update(new, old)


def _encoded(obj: Object) -> Encoded:
    encoded = Encoded.of(obj)
    _check_limits(obj, encoded.at(0))
    return encoded


def _check_limits(obj: Object, raw: bytes) -> None:
    """Refuse an object that is too large for etcd or too deep for recursion."""
    if len(raw) > MAX_OBJECT_BYTES:
        raise ApiError(500, "", "etcdserver: request is too large")
    if raw.count(b"{") + raw.count(b"[") <= MAX_LEVELS:
        return
    level: list[Json] = [obj]
    for _ in range(MAX_LEVELS):
        values = chain.from_iterable(each.values() if isinstance(each, dict) else each for each in level)
        level = [value for value in values if isinstance(value, (dict, list))]
        if not level:
            return
    raise errors.bad_request(TOO_DEEP)


def _with_distinct_owners(context: RequestContext, obj: Object, when: str = "") -> Object:
    obj, repeated = metadata.distinct_owners(obj)
    if repeated:
        context.warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; "
            f"duplicate UID(s) observed: {', '.join(repeated)}"
        )
    return obj


def check_name(context: RequestContext, obj: Object) -> None:
    """Raise a 400 if the object does not have the name in the URL."""
    name = (obj.get("metadata") or {}).get("name", "")
    if not name:
        raise errors.bad_request(
            f"the name of the object ({context.name} based on URL) was undeterminable: name must be provided"
        )
    if name != context.name:
        raise errors.bad_request(f"the name of the object ({name}) does not match the name on the URL ({context.name})")


def _other_uid(context: RequestContext, uid: str, current: str) -> ApiError:
    where = "/".join(part for part in (context.resource.plural, context.namespace, context.name) if part)
    return errors.conflict(
        context.resource.group,
        context.resource.plural,
        context.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{where}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {current}",
    )


def _check_number(revision: str) -> None:
    if not revision.isdigit():
        raise ApiError(500, "", f'strconv.ParseUint: parsing "{revision}": invalid syntax')


def _names_revision(obj: Object) -> bool:
    """True if a new object has a resourceVersion; one that is no number counts as none."""
    return str(obj["metadata"].get("resourceVersion") or "0").lstrip("0").isdigit()


def _prepare(strategy: Strategy, new: Object, old: Object, subresource: str) -> Object:
    """Apply the changes that this endpoint may make."""
    if subresource == "status":
        return strategy.prepare_status(new, old)
    if subresource == "finalize":
        return strategy.prepare_finalize(new, old)
    return strategy.prepare_update(new, old)


def is_over(is_held: bool, obj: Object) -> bool:
    """True if a deleted object can be removed: no finalizers, no grace period."""
    given = obj["metadata"]
    if not given.get("deletionTimestamp") or given.get("finalizers") or is_held:
        return False
    return not given.get("deletionGracePeriodSeconds")
