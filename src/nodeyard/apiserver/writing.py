"""Creates and changes: the one path that every write takes, whatever verb it came by.

    create:  place ─▶ own ─▶ mutate ─▶ name, uid, prepare ─▶ validate ─▶ admit ─▶ commit
    change:  read ─▶ transform ─▶ own ─▶ mutate ─▶ prepare ─▶ validate ─▶ admit ─▶ commit, or start again if it moved

Nothing awaits between the last look at the store and the commit; webhooks may take their time before.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from nodeyard.apiserver import errors, metadata, ownership, typing
from nodeyard.apiserver.admission.attributes import Attributes, Operation
from nodeyard.apiserver.calls import Call
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.options import WriteOptions, manager_name
from nodeyard.apiserver.rendering import canonical
from nodeyard.apiserver.resources import Strategy
from nodeyard.apiserver.selection import selectable
from nodeyard.apiserver.store import StaleError, Store, Stored
from nodeyard.kube import fields
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock, rfc3339

ATTEMPTS = 5
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_NAME_ATTEMPTS = 8
_GENERATED_PREFIX_MAX = 58

Transform = Callable[[Object], Object]


class Admission(Protocol):
    async def mutate(self, attributes: Attributes) -> None: ...

    async def validate(self, attributes: Attributes) -> None: ...


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome: what is stored now, or, after a dry run, what would have been."""

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

    async def create(self, call: Call, obj: Object, options: WriteOptions, *, is_owned: bool = False) -> Written:
        """Store a new object. `is_owned`: server-side apply has recorded its ownership already."""
        resource, strategy = call.resource, call.resource.strategy
        if resource.terminating:
            raise errors.method_not_allowed()
        obj = self._place(call, obj)
        if _names_revision(obj) and not options.dry_run:
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        obj = _with_distinct_owners(call, obj)
        if not is_owned:
            obj = self._own(call, None, obj, options)
        obj = self._begin_life(call, obj)
        attributes = self._attributes(call, "CREATE", obj, None, options)
        obj = self._name(call, await self._mutate(call, attributes))
        obj = strategy.prepare_create(obj, self._clock.now())
        faults = metadata.create_faults(resource, obj)
        faults += typing.validate(resource, call.version, obj, None, call.warnings) + strategy.validate_create(obj)
        if faults:
            raise errors.invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), faults)
        call.warnings.extend(strategy.warnings(obj, None))
        attributes.object = obj
        attributes.name = obj["metadata"]["name"]
        await self._admission.validate(attributes)
        if self._store.get(resource.key, call.namespace, obj["metadata"]["name"]) is not None:
            raise errors.already_exists(resource.group, resource.plural, obj["metadata"]["name"])
        if options.dry_run:
            return Written(obj, None, created=True)
        return self._commit(call, obj, None, created=True)

    async def create_by_update(self, call: Call, obj: Object, options: WriteOptions) -> Written:
        """Store what an update found missing, of a kind that allows it: a revision means nothing, a uid a mistake."""
        given = obj["metadata"]
        if uid := given.get("uid"):
            raise _other_uid(call, uid, "")
        _check_number(given.get("resourceVersion") or "0")
        metadata = {name: value for name, value in given.items() if name != "resourceVersion"}
        return await self.create(call, {**obj, "metadata": metadata}, replace(options, kind="CreateOptions"))

    def _place(self, call: Call, obj: Object) -> Object:
        """In the namespace of the URL; 400 where the object says otherwise."""
        given = obj.get("metadata") or {}
        namespace = given.get("namespace", "")
        if call.resource.namespaced:
            if namespace and namespace != call.namespace:
                raise errors.bad_request(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            given = {**given, "namespace": call.namespace}
        elif namespace:
            given = {name: value for name, value in given.items() if name != "namespace"}
        return {**obj, "metadata": given}

    def _begin_life(self, call: Call, obj: Object) -> Object:
        """The metadata that only the server sets."""
        given = {
            name: value
            for name, value in obj["metadata"].items()
            if name not in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")
        }
        given["uid"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        given["creationTimestamp"] = rfc3339(self._clock.now())
        if call.resource.strategy.uses_generation:
            given["generation"] = 1
        return {**obj, "metadata": given}

    def _name(self, call: Call, obj: Object) -> Object:
        """With the name that only a prefix was given for."""
        given = obj["metadata"]
        if given.get("name") or not given.get("generateName"):
            return obj
        return {**obj, "metadata": {**given, "name": self._generate_name(call, given["generateName"])}}

    def _generate_name(self, call: Call, base: str) -> str:
        for _ in range(_NAME_ATTEMPTS):
            suffix = "".join(self._random.choices(_NAME_LETTERS, k=5))
            name = base[:_GENERATED_PREFIX_MAX] + suffix
            if self._store.get(call.resource.key, call.namespace, name) is None:
                return name
        return name

    # change

    async def change(
        self,
        call: Call,
        transform: Transform,
        options: WriteOptions,
        *,
        subresource: str = "",
        is_owned: bool = False,
    ) -> Written:
        """Read, transform, store; again when someone else was faster and the caller named no revision."""
        for _ in range(ATTEMPTS):
            stored = self._store.get(call.resource.key, call.namespace, call.name)
            if stored is None:
                raise errors.not_found(call.resource.group, call.resource.plural, call.name)
            old = call.read(stored)
            new = transform(old)
            names_revision = self._check_identity(call, new, old)
            if call.request.method == "PUT":
                new = _with_distinct_owners(call, new)
            if not is_owned:
                new = self._own(call, old, new, options, subresource)
            try:
                return await self._replace(call, stored, old, new, options, subresource)
            except StaleError:
                if names_revision:
                    break
        raise errors.modified(call.resource.group, call.resource.plural, call.name)

    async def _replace(
        self, call: Call, stored: Stored, old: Object, new: Object, options: WriteOptions, subresource: str
    ) -> Written:
        resource, strategy = call.resource, call.resource.strategy
        attributes = self._attributes(call, "UPDATE", new, old, options, subresource)
        new = self._keep_identity(await self._mutate(call, attributes), old)
        is_status = subresource == "status"
        new = _prepared(strategy, new, old, subresource)
        new = self._generation(call, new, old, is_status=is_status)
        faults = metadata.update_faults(resource, new, old)
        faults += typing.validate(resource, call.version, new, old, call.warnings, is_status=is_status)
        faults += strategy.validate_status(new, old) if is_status else strategy.validate_update(new, old)
        if faults:
            raise errors.invalid(resource.group, resource.kind, call.name, faults)
        call.warnings.extend(strategy.warnings(new, old))
        attributes.object = new
        await self._admission.validate(attributes)
        if self._store.get(resource.key, call.namespace, call.name) is not stored:
            raise StaleError
        new = ownership.keep_times(old, new)
        if new == old:
            return Written(old, stored)
        if options.dry_run:
            return Written(new, None)
        if is_over(strategy.holds(new), new):
            self._store.remove(resource.key, stored)  # watchers see what was stored, only the writer what it wrote
            return Written(new, None)
        return self._commit(call, new, stored)

    def _check_identity(self, call: Call, new: Object, old: Object) -> bool:
        """Name, uid and revision against what is stored; whether the writer named a revision of its own."""
        resource = call.resource
        given, current = new.get("metadata") or {}, old["metadata"]
        check_name(call, new)
        if given.get("namespace", call.namespace) not in ("", call.namespace):
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        uid, revision = given.get("uid"), given.get("resourceVersion")
        if revision == "0":
            revision = None  # the same as none at all
        if uid and uid != current["uid"] and call.request.method == "PUT":
            raise _other_uid(call, uid, current["uid"])
        if not revision and not resource.strategy.allows_unconditional_update:
            fault = fields.invalid("metadata.resourceVersion", 0, "must be specified for an update")
            raise errors.invalid(resource.group, resource.plural, call.name, [fault])
        if revision and revision != current["resourceVersion"]:
            _check_number(revision)
            raise errors.modified(resource.group, resource.plural, call.name)
        return call.request.method == "PUT" and bool(revision)

    def _keep_identity(self, new: Object, old: Object) -> Object:
        """The metadata that no update changes, where the writer left it out."""
        given, current = dict(new.get("metadata") or {}), old["metadata"]
        given["resourceVersion"] = current["resourceVersion"]
        for name in ("namespace", "uid", "deletionGracePeriodSeconds"):
            if name in current:
                given.setdefault(name, current[name])
        given |= {name: current[name] for name in ("creationTimestamp", "deletionTimestamp") if name in current}
        given.pop("selfLink", None)
        return new if given == new.get("metadata") else {**new, "metadata": given}

    def _generation(self, call: Call, new: Object, old: Object, *, is_status: bool) -> Object:
        strategy = call.resource.strategy
        current = old["metadata"].get("generation")
        if not is_status and strategy.uses_generation and strategy.changes_generation(new, old):
            current = (current or 0) + 1
        given = new["metadata"]
        if given.get("generation") == current:
            return new
        rest = {name: value for name, value in given.items() if name != "generation"}
        return {**new, "metadata": rest if current is None else {**rest, "generation": current}}

    # both

    def _own(self, call: Call, old: Object | None, new: Object, options: WriteOptions, subresource: str = "") -> Object:
        return ownership.update(
            call.typed.schema,
            old,
            new,
            manager=manager_name(options, call.request),
            api_version=call.api_version,
            subresource=subresource,
            now=self._clock.now(),
            reset=call.resource.strategy.reset_fields(subresource),
        )

    async def _mutate(self, call: Call, attributes: Attributes) -> Object:
        before = attributes.object
        await self._admission.mutate(attributes)
        after = attributes.object
        if after is None:
            raise errors.internal("admission removed the object")
        if after is not before:
            after = typing.read(call.resource, call.version, after)[0]
        return _with_distinct_owners(call, after, " after mutating admission happens")

    def _attributes(
        self,
        call: Call,
        operation: Operation,
        obj: Object,
        old: Object | None,
        options: WriteOptions,
        subresource: str = "",
    ) -> Attributes:
        return Attributes(
            operation=operation,
            resource=call.resource,
            version=call.version,
            subresource=subresource,
            namespace=call.namespace,
            name=obj["metadata"].get("name", ""),
            object=obj,
            old=old,
            user=call.user,
            dry_run=options.dry_run,
            options=options.as_object(),
            warnings=call.warnings,
            audit=call.audit,
        )

    def _commit(self, call: Call, obj: Object, expect: Stored | None, *, created: bool = False) -> Written:
        kept = self._canonical(call, obj)
        stored = self._store.commit(call.resource.key, kept, selectable(call.resource, obj), expect=expect)
        return Written(obj, stored, created)

    def _canonical(self, call: Call, obj: Object) -> Object:
        resource = call.resource
        return canonical(obj, resource.kind, resource.api_version(resource.storage_version))


def _with_distinct_owners(call: Call, obj: Object, when: str = "") -> Object:
    obj, repeated = metadata.distinct_owners(obj)
    if repeated:
        call.warnings.append(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
            "and may reject such requests as early as 1.24; please fix your requests; "
            f"duplicate UID(s) observed: {', '.join(repeated)}"
        )
    return obj


def check_name(call: Call, obj: Object) -> None:
    """400 where the object does not have the name in the URL."""
    name = (obj.get("metadata") or {}).get("name", "")
    if not name:
        raise errors.bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.name:
        raise errors.bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.name})")


def _other_uid(call: Call, uid: str, current: str) -> ApiError:
    where = "/".join(part for part in (call.resource.plural, call.namespace, call.name) if part)
    return errors.conflict(
        call.resource.group,
        call.resource.plural,
        call.name,
        f"StorageError: invalid object, Code: 4, Key: /registry/{where}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {current}",
    )


def _check_number(revision: str) -> None:
    if not revision.isdigit():
        raise ApiError(500, "", f'strconv.ParseUint: parsing "{revision}": invalid syntax')


def _names_revision(obj: Object) -> bool:
    """Whether a new object claims to have been stored before; what is no number counts as nothing."""
    return str(obj["metadata"].get("resourceVersion") or "0").lstrip("0").isdigit()


def _prepared(strategy: Strategy, new: Object, old: Object, subresource: str) -> Object:
    """What this endpoint may change, on the object as it was."""
    if subresource == "status":
        return strategy.prepare_status(new, old)
    if subresource == "finalize":
        return strategy.prepare_finalize(new, old)
    return strategy.prepare_update(new, old)


def is_over(is_held: bool, obj: Object) -> bool:
    """Whether a deleted object has nothing left that keeps it."""
    given = obj["metadata"]
    if not given.get("deletionTimestamp") or given.get("finalizers") or is_held:
        return False
    return not given.get("deletionGracePeriodSeconds")
