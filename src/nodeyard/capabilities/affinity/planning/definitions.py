"""Plan one ApplicationDefinition: the CRD that serves its kind.

A CRD that somebody else created is used as it is. A definition with an invalid schema, or whose kind an older one
declares, changes nothing. While there are applications of the kind, neither the definition nor its CRD is deleted: the
API server would delete the applications with the CRD. A CRD whose definition was renamed stays as it is.

A CRD is closed for new objects before it is deleted: an object created after the last check would be deleted with it.

    closed    a rule in its schema rejects new objects, and allows updates of existing ones
    settled   a few seconds later every API server enforces the rule, and the watch has delivered what came before

Only then is it certain that the CRD is empty, and stays empty. The webhook rejects new objects sooner, if it is called.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.definitions import (
    ApplicationsUnwatched,
    CRDNotManaged,
    DefinitionClosed,
    DefinitionClosing,
    DefinitionInUse,
    DefinitionServed,
    DefinitionWithdrawn,
    DuplicateDefinition,
    InvalidDefinition,
    InvalidSchema,
    SchemaSimplified,
)
from nodeyard.capabilities.affinity.messages.objects import Deleting, FinalizerAdded, FinalizerRemoved, ServedElsewhere
from nodeyard.capabilities.affinity.planning.structural_schema import SchemaError, structural
from nodeyard.capabilities.affinity.snapshot import DefinitionSnapshot
from nodeyard.capabilities.affinity.types import Application, ApplicationDefinition
from nodeyard.capabilities.affinity.validation import declaration_faults
from nodeyard.kube import timestamps
from nodeyard.kube.json import Object, json_equal
from nodeyard.kube.names import CAPABILITY
from nodeyard.kube.patch import merge_patch
from nodeyard.plan import finalizers
from nodeyard.plan.builder import PlanBuilder
from nodeyard.plan.diff import diff
from nodeyard.plan.managed_fields import preview_apply
from nodeyard.plan.model import ObjectRef, Verb, Write
from nodeyard.schema.crd import Column, Definition

CRD_API_VERSION: Final = "apiextensions.k8s.io/v1"
CRD_KIND: Final = "CustomResourceDefinition"
_READY: Final = '.status.conditions[?(@.type=="Ready")].status'
_COLUMNS: Final = (
    Column("Ready", _READY, description="Readiness of the HelmRelease."),
    Column("Version", ".status.version", description="Version of the chart."),
    Column("Class", ".status.affinityClass", description="Effective AffinityClass."),
    Column("Age", ".metadata.creationTimestamp", "date"),
)
_OVERLAY: Final[dict[str, Object]] = {
    "status.observedGeneration": {"format": "int64"},
    "status.conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
}


def plan_definition(builder: PlanBuilder, snapshot: DefinitionSnapshot) -> None:
    definition = snapshot.definition
    if definition.is_deleting:
        _plan_deletion(builder, snapshot)
        return
    ref = definition.ref
    if snapshot.is_served_elsewhere:
        builder.block(ref, ServedElsewhere(kind=definition.kind))
        return
    if snapshot.watch_error:
        builder.block(ref, ApplicationsUnwatched(kind=definition.kind, error=snapshot.watch_error))
    if faults := declaration_faults(definition):
        builder.block(ref, InvalidDefinition(object=ref, errors=faults))
        return
    if snapshot.rivals:
        builder.block(ref, DuplicateDefinition(object=ref, kind=definition.kind, rivals=snapshot.rivals))
        return
    if snapshot.former:
        builder.block(ref, InvalidDefinition(object=ref, errors=_rename_faults(snapshot)))
        return
    _plan_crd(builder, snapshot)


def crd_name(definition: ApplicationDefinition) -> str:
    return f"{definition.spec.application.plural}.{names.APPS_GROUP}"


def _crd_ref(definition: ApplicationDefinition, crd: Object | None) -> ObjectRef:
    uid = "" if crd is None else crd["metadata"].get("uid", "")
    return ObjectRef(api_version=CRD_API_VERSION, kind=CRD_KIND, name=crd_name(definition), uid=uid)


def is_ours(crd: Object, definition: ApplicationDefinition) -> bool:
    return bool((crd["metadata"].get("labels") or {}).get(names.DECLARED_BY) == definition.name)


# the CRD


def _plan_crd(builder: PlanBuilder, snapshot: DefinitionSnapshot) -> None:
    definition, crd = snapshot.definition, snapshot.crd
    ref, target = definition.ref, _crd_ref(definition, crd)
    try:
        schema, left_out = structural(definition.spec.application.open_api_schema)
    except SchemaError as error:
        builder.block(ref, InvalidSchema(object=ref, error=str(error)))
        return
    message = FinalizerAdded(object=ref, finalizer=names.DEFINITION_FINALIZER)
    finalizer_added = finalizers.add(builder, ref, definition.metadata, names.DEFINITION_FINALIZER, message)
    if crd is not None and not is_ours(crd, definition):
        builder.block(ref, CRDNotManaged(object=ref, crd=target.name, by=_creator(crd)))
        return
    if crd is not None and crd["metadata"].get("deletionTimestamp"):
        builder.block(ref, Deleting(object=target))
        return
    body = crd_of(definition, schema)
    if crd is not None and (fixed := _kind_fault(crd, body)):
        builder.block(ref, InvalidDefinition(object=ref, errors=[fixed]))
        return
    if left_out:
        builder.block(ref, SchemaSimplified(kind=definition.kind, left_out=left_out))
    after = body if crd is None else _preview(crd, body)
    if after is crd:
        return
    builder.act(
        Verb.APPLY,
        target,
        DefinitionServed(object=ref, crd=target.name, kind=definition.kind),
        # The cache may be stale: do not take over a CRD that somebody else has just created.
        Write(body=body, force=crd is not None),
        diff=diff(crd, after),
        after=(finalizer_added,),
    )


def crd_of(definition: ApplicationDefinition, spec_schema: Object) -> Object:
    """Return the CRD in the form that the API server returns, so that an unchanged CRD is not written again."""
    given = definition.spec.application
    required_spec = {"required": ["spec"]} if spec_schema.get("required") else {}
    rendered = Definition(
        type=Application,
        group=names.APPS_GROUP,
        version=names.VERSION,
        kind=given.kind,
        plural=given.plural,
        description=f"{given.kind} is an application declared by ApplicationDefinition {definition.name}.",
        namespaced=True,
        short_names=(),
        columns=_COLUMNS,
        overlay={**_OVERLAY, "spec": {"additionalProperties": None, **spec_schema}, "": required_spec},
    ).render()
    served: Object = {each: value for each, value in rendered["spec"]["names"].items() if value}
    labels = {names.DECLARED_BY: definition.name, CAPABILITY: names.CAPABILITY}
    return {
        **rendered,
        "metadata": {**rendered["metadata"], "labels": labels},
        "spec": {**rendered["spec"], "names": {**served, "singular": given.singular}},
    }


def _rename_faults(snapshot: DefinitionSnapshot) -> list[str]:
    """Return the faults of a definition that is served under another plural."""
    plural = snapshot.definition.spec.application.plural
    return [
        f"spec.application.plural {plural!r}: it is already served as {each}, whose applications would be orphaned. "
        f"Restore kind and plural, and create another definition for the new ones"
        for each in snapshot.former
    ]


def _kind_fault(crd: Object, body: Object) -> str:
    """Return the fault of a changed kind, which the API server does not allow."""
    before, after = crd["spec"]["names"].get("kind"), body["spec"]["names"]["kind"]
    if before == after:
        return ""
    return f"spec.application.kind {after!r}: the plural is served as {before!r}. Create another definition for it"


def _preview(crd: Object, body: Object) -> Object:
    """Return the CRD as an apply leaves it, its versions as one value; the same object if nothing changes."""
    after = preview_apply(crd, body, names.MANAGER)
    versions = body["spec"]["versions"]
    if json_equal(crd["spec"]["versions"], versions):
        return crd if after is crd else {**after, "spec": {**after["spec"], "versions": crd["spec"]["versions"]}}
    return {**after, "spec": {**after["spec"], "versions": versions}}


def _creator(crd: Object) -> str:
    """Return the creator of a CRD, as far as its labels tell."""
    declared = (crd["metadata"].get("labels") or {}).get(names.DECLARED_BY)
    return f"{names.DEFINITION_KIND} {declared}" if declared else "somebody else"


# deletion


def _plan_deletion(builder: PlanBuilder, snapshot: DefinitionSnapshot) -> None:
    definition, crd = snapshot.definition, snapshot.crd
    ref, kind = definition.ref, definition.kind
    if names.DEFINITION_FINALIZER not in definition.metadata.finalizers:
        return
    if snapshot.watch_error and not snapshot.is_served_elsewhere:
        # The number of applications is unknown, and deleting the CRD would delete them all.
        builder.block(ref, ApplicationsUnwatched(kind=kind, error=snapshot.watch_error))
    elif snapshot.applications:
        builder.block(ref, DefinitionInUse(object=ref, kind=kind, applications=snapshot.applications))
    elif snapshot.former and not snapshot.is_served_elsewhere:
        builder.block(ref, InvalidDefinition(object=ref, errors=_rename_faults(snapshot)))
    elif crd is None or not is_ours(crd, definition):
        message = FinalizerRemoved(object=ref, finalizer=names.DEFINITION_FINALIZER)
        finalizers.remove(builder, ref, definition.metadata, names.DEFINITION_FINALIZER, message)
    elif crd["metadata"].get("deletionTimestamp"):
        builder.block(ref, Deleting(object=_crd_ref(definition, crd)))
    else:
        _delete_crd(builder, crd, definition)


def _delete_crd(builder: PlanBuilder, crd: Object, definition: ApplicationDefinition) -> None:
    """Close the CRD for new objects first, then delete it."""
    ref, target, settled = definition.ref, _crd_ref(definition, crd), settled_at(crd)
    # Optimistic locking: a CRD that somebody took over meanwhile is not deleted.
    version = crd["metadata"].get("resourceVersion", "")
    if settled is None:
        patch = closing_patch(crd, builder.now)
        changes = diff(crd, merge_patch(crd, patch))
        write = Write(body=patch, resource_version=version)
        builder.act(Verb.PATCH, target, DefinitionClosing(object=ref, crd=target.name), write, diff=changes)
    elif builder.now < settled:
        builder.block(ref, DefinitionClosed(object=ref, crd=target.name, kind=definition.kind))
        builder.wake(settled)
    else:
        write = Write(propagation="Background", resource_version=version)
        message = DefinitionWithdrawn(object=ref, crd=target.name, kind=definition.kind)
        builder.act(Verb.DELETE, target, message, write)


# closing a CRD


# Not much less: API servers recreate the storage of a changed CRD. A CRD deleted within that second may stay for
# minutes: the first attempt to empty it comes too early, and the next one only with the next resync.
SETTLE: timedelta = timedelta(seconds=5)
_RULES: Final = "x-kubernetes-validations"
_RULE: Final[Object] = {
    "rule": "oldSelf.hasValue()",
    "optionalOldSelf": True,
    "message": f"new objects of this kind are rejected: its {names.DEFINITION_KIND} is being deleted",
}


def closing_patch(crd: Object, now: datetime) -> Object:
    """Return a patch after which the CRD rejects new objects."""
    return {
        "metadata": {"annotations": {names.CLOSED_AT: timestamps.format_rfc3339_millis(now)}},
        "spec": {"versions": [_with_closing_rule(each) for each in crd["spec"]["versions"]]},
    }


def _with_closing_rule(version: Object) -> Object:
    schema = version["schema"]["openAPIV3Schema"]
    rules = [*(each for each in schema.get(_RULES) or () if not _is_closing(each)), _RULE]
    return {**version, "schema": {**version["schema"], "openAPIV3Schema": {**schema, _RULES: rules}}}


def settled_at(crd: Object) -> datetime | None:
    """Return when no new object can appear any more; None if the CRD is not closed, or was reopened."""
    schemas = (each["schema"]["openAPIV3Schema"] for each in crd["spec"]["versions"])
    if not all(any(map(_is_closing, each.get(_RULES) or ())) for each in schemas):
        return None
    closed = timestamps.parse_rfc3339_or_none((crd["metadata"].get("annotations") or {}).get(names.CLOSED_AT))
    return None if closed is None else closed + SETTLE


def _is_closing(rule: Object) -> bool:
    return bool(rule.get("rule") == _RULE["rule"])
