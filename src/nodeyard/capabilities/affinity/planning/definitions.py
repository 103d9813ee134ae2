"""One ApplicationDefinition, planned: the CRD that serves its kind, as long as it is declared.

A CRD that somebody else made is used as it is. A definition whose schema does not read, or whose kind an older one
declares already, changes nothing. While there are applications of the kind, neither the definition nor its CRD goes:
with the CRD the server would delete them all. One that is served under a name and then called otherwise stays as it is.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning import finalizers
from nodeyard.capabilities.affinity.planning.closings import closing, settled_at
from nodeyard.capabilities.affinity.planning.declarations import declaration_faults
from nodeyard.capabilities.affinity.planning.schemas import SchemaError, structural
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.snapshot import DefinitionSnapshot
from nodeyard.capabilities.affinity.types import Application, ApplicationDefinition
from nodeyard.kube.json import Object
from nodeyard.kube.names import CAPABILITY
from nodeyard.kube.patch import is_same, merge_patch
from nodeyard.plan.diff import diff
from nodeyard.plan.draft import Draft
from nodeyard.plan.model import ObjectRef, Verb, Write
from nodeyard.plan.owned import outcome
from nodeyard.schema.crd import Column, Definition

CRD_API_VERSION: Final = "apiextensions.k8s.io/v1"
CRD_KIND: Final = "CustomResourceDefinition"
_READY: Final = '.status.conditions[?(@.type=="Ready")].status'
_COLUMNS: Final = (
    Column("Ready", _READY, description="Whether its release is ready."),
    Column("Version", ".status.version", description="The version of the chart."),
    Column("Class", ".status.affinityClass", description="The class that it is placed by."),
    Column("Age", ".metadata.creationTimestamp", "date"),
)
_OVERLAY: Final[dict[str, Object]] = {
    "status.observedGeneration": {"format": "int64"},
    "status.conditions": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
}


def plan_definition(draft: Draft, snapshot: DefinitionSnapshot) -> None:
    definition = snapshot.definition
    if definition.is_deleting:
        _withdraw(draft, snapshot)
        return
    ref, facts = definition_ref(definition), definition_facts(definition)
    if snapshot.is_served_elsewhere:
        draft.block(ref, Reason.SERVED_ELSEWHERE, facts)
        return
    if snapshot.trouble:
        draft.block(ref, Reason.UNWATCHED, {**facts, "error": snapshot.trouble})
    if faults := declaration_faults(definition):
        draft.block(ref, Reason.BAD_DEFINITION, {**facts, "errors": faults})
        return
    if snapshot.rivals:
        draft.block(ref, Reason.RIVAL, {**facts, "rivals": list(snapshot.rivals)})
        return
    if snapshot.former:
        draft.block(ref, Reason.BAD_DEFINITION, {**facts, "errors": _renamed(snapshot)})
        return
    _serve(draft, snapshot)


def definition_ref(definition: ApplicationDefinition) -> ObjectRef:
    return ObjectRef(
        api_version=names.API_VERSION,
        kind=names.DEFINITION_KIND,
        name=definition.name,
        uid=definition.metadata.uid,
    )


def definition_facts(definition: ApplicationDefinition) -> Object:
    return {
        "definition": definition.name,
        "kind": definition.kind,
        "crd": f"{definition.spec.application.plural}.{names.APPS_GROUP}",
    }


def is_ours(crd: Object, definition: ApplicationDefinition) -> bool:
    return bool((crd["metadata"].get("labels") or {}).get(names.DECLARED_BY) == definition.name)


# while it is declared


def _serve(draft: Draft, snapshot: DefinitionSnapshot) -> None:
    definition, crd = snapshot.definition, snapshot.crd
    ref, facts = definition_ref(definition), definition_facts(definition)
    try:
        schema, left_out = structural(definition.spec.application.open_api_schema)
    except SchemaError as error:
        draft.block(ref, Reason.BAD_SCHEMA, {**facts, "error": str(error)})
        return
    guarded = finalizers.add(draft, ref, definition.metadata, names.DEFINITION_FINALIZER, facts)
    if crd is not None and not is_ours(crd, definition):
        draft.block(ref, Reason.CRD_NOT_OURS, {**facts, "by": _maker(crd)})
        return
    if crd is not None and crd["metadata"].get("deletionTimestamp"):
        draft.block(ref, Reason.DELETING, {**facts, "object": f"{CRD_KIND} {facts['crd']}"})
        return
    body = crd_of(definition, schema)
    if crd is not None and (fixed := _changes_names(crd, body)):
        draft.block(ref, Reason.BAD_DEFINITION, {**facts, "errors": [fixed]})
        return
    if left_out:
        draft.block(ref, Reason.SCHEMA_SIMPLIFIED, {**facts, "left_out": list(left_out)})
    after = body if crd is None else _after(crd, body)
    if after is crd:
        return
    uid = "" if crd is None else crd["metadata"].get("uid", "")
    draft.act(
        Verb.APPLY,
        ObjectRef(api_version=CRD_API_VERSION, kind=CRD_KIND, name=facts["crd"], uid=uid),
        Reason.DEFINITION_SERVED,
        facts,
        # One that somebody else has made a moment ago, which we have not heard of, is not taken from them.
        Write(body=body, force=crd is not None),
        diff=diff(crd, after),
        after=(guarded,),
    )


def crd_of(definition: ApplicationDefinition, spec_schema: Object) -> Object:
    """The CRD, in the form the server gives back: what is the same is not written again."""
    given = definition.spec.application
    rendered = Definition(
        type=Application,
        group=names.APPS_GROUP,
        version=names.VERSION,
        kind=given.kind,
        plural=given.plural,
        description=f"An application that is released as the ApplicationDefinition {definition.name} says.",
        namespaced=True,
        short_names=(),
        columns=_COLUMNS,
        overlay={**_OVERLAY, "spec": {"additionalProperties": None, **spec_schema}, "": _whole(spec_schema)},
    ).render()
    served: Object = {each: value for each, value in rendered["spec"]["names"].items() if value}
    labels = {names.DECLARED_BY: definition.name, CAPABILITY: names.CAPABILITY}
    return {
        **rendered,
        "metadata": {**rendered["metadata"], "labels": labels},
        "spec": {**rendered["spec"], "names": {**served, "singular": given.singular}},
    }


def _whole(spec_schema: Object) -> Object:
    """A spec in which something is required cannot be left out itself."""
    return {"required": ["spec"]} if spec_schema.get("required") else {}


def _renamed(snapshot: DefinitionSnapshot) -> list[str]:
    """A definition that was served under another plural: what there is in it would be left behind."""
    plural = snapshot.definition.spec.application.plural
    return [
        f"spec.application.plural {plural!r}: it is served as {each}, whose applications would be left behind. Set "
        f"kind and plural back to what they were, and make another definition for the new ones"
        for each in snapshot.former
    ]


def _changes_names(crd: Object, body: Object) -> str:
    """What the server would not let us change."""
    before, after = crd["spec"]["names"].get("kind"), body["spec"]["names"]["kind"]
    if before == after:
        return ""
    return f"spec.application.kind {after!r}: the plural is served as {before!r}. Make another definition for it"


def _after(crd: Object, body: Object) -> Object:
    """The CRD as an apply leaves it; the very same where that changes nothing. Its versions are one value."""
    after = outcome(crd, body, names.MANAGER)
    versions = body["spec"]["versions"]
    if is_same(crd["spec"]["versions"], versions):
        return crd if after is crd else {**after, "spec": {**after["spec"], "versions": crd["spec"]["versions"]}}
    return {**after, "spec": {**after["spec"], "versions": versions}}


def _maker(crd: Object) -> str:
    """Who a CRD is of, as far as it tells."""
    declared = (crd["metadata"].get("labels") or {}).get(names.DECLARED_BY)
    return f"{names.DEFINITION_KIND} {declared}" if declared else "somebody else"


# when it is not any more


def _withdraw(draft: Draft, snapshot: DefinitionSnapshot) -> None:
    definition, crd = snapshot.definition, snapshot.crd
    ref, facts = definition_ref(definition), definition_facts(definition)
    if names.DEFINITION_FINALIZER not in definition.metadata.finalizers:
        return
    if snapshot.trouble and not snapshot.is_served_elsewhere:
        # How many applications there are is not known then, and with the CRD they would all go.
        draft.block(ref, Reason.UNWATCHED, {**facts, "error": snapshot.trouble})
    elif snapshot.applications:
        draft.block(ref, Reason.DEFINITION_IN_USE, {**facts, "applications": snapshot.applications})
    elif snapshot.former and not snapshot.is_served_elsewhere:
        draft.block(ref, Reason.BAD_DEFINITION, {**facts, "errors": _renamed(snapshot)})
    elif crd is None or not is_ours(crd, definition):
        finalizers.remove(draft, ref, definition.metadata, names.DEFINITION_FINALIZER, facts)
    elif crd["metadata"].get("deletionTimestamp"):
        draft.block(ref, Reason.DELETING, {**facts, "object": f"{CRD_KIND} {facts['crd']}"})
    else:
        _take_down(draft, crd, ref, facts)


def _take_down(draft: Draft, crd: Object, ref: ObjectRef, facts: Object) -> None:
    """Nothing is in it that we know of: first nothing more may come, then it goes."""
    metadata, settled = crd["metadata"], settled_at(crd)
    target = ObjectRef(api_version=CRD_API_VERSION, kind=CRD_KIND, name=facts["crd"], uid=metadata["uid"])
    # Bound to what was looked at: whoever has taken it over meanwhile keeps it.
    version = metadata.get("resourceVersion", "")
    if settled is None:
        patch = closing(crd, draft.now)
        changes = diff(crd, merge_patch(crd, patch))
        write = Write(body=patch, resource_version=version)
        draft.act(Verb.PATCH, target, Reason.DEFINITION_CLOSED, facts, write, diff=changes)
    elif draft.now < settled:
        draft.block(ref, Reason.DEFINITION_CLOSED, facts)
        draft.wake(settled)
    else:
        write = Write(propagation="Background", resource_version=version)
        draft.act(Verb.DELETE, target, Reason.DEFINITION_WITHDRAWN, facts, write)
