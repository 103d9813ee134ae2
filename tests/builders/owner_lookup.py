"""A tiny capability that follows owner references in an admission review, up to an object without owners.

A ConfigMap labelled `kinships.test/ask` is denied, and the message has the path: `Widget a (live) < Gadget b (cached)`.
Owners of kinds that were met before come from its dynamic watches, others from lookups. The steps are counted in a
metric, and reported in an Event on the first owner.
"""

from dataclasses import replace

from tests.builders import labels

from nodeyard.client.resources import of_kind
from nodeyard.plan.model import ObjectRef
from nodeyard.runtime.capability import Admission, Dynamic, Event, Watch
from nodeyard.runtime.webhooks import Found, Lookup, Missing, Webhook, WebhookRule, denied

ASK = "kinships.test/ask"
NAME = "nodeyard-kinships"
WEBHOOK = "kin.kinships.nodeyard.dev"


def declared(view):
    return [Watch(of_kind(*sighting), metadata_only=True) for sighting in view.recent_kinds]


def judge(review, view):
    owners = [_ref(owner, review.namespace) for owner in review.subject["metadata"].get("ownerReferences") or ()]
    told = []
    while owners:
        ref = owners.pop()
        found, how = _found(view, ref, review.answers)
        if how is None:
            return Lookup((ref,))
        told.append(f"{ref.kind} {ref.name} ({how})")
        if found is not None:
            owners += [_owner_ref(owner, ref.namespace) for owner in found.metadata.owner_references]
    first = _ref(review.subject["metadata"]["ownerReferences"][0], review.namespace)
    response = denied(" < ".join(told)).with_facts(steps=str(len(told)))
    return response.with_events(Event(first, "Normal", "Asked", f"for {review.name}"))


def _found(view, ref, answers):
    """Return the object, and how it was found; None and None if it has to be looked up."""
    group = ref.api_version.rpartition("/")[0]
    trouble = ""
    if any(_is_of(sighting, group, ref.kind) for sighting in view.recent_kinds):
        name = f"{ref.kind}.{group or 'core'}"
        trouble = view.watch_error(name)
        cached = view.get(name, ref.name, ref.namespace) or view.get(name, ref.name)
        if cached is not None and cached.metadata.uid == ref.uid:
            return cached, "cached"
    answer = answers.get(ref)
    if isinstance(answer, Found):
        if answer.object.metadata.uid != ref.uid:
            return None, "replaced"
        return answer.object, f"live, {trouble}" if trouble else "live"
    if answer is None:
        return None, None
    return None, "missing" if isinstance(answer, Missing) else answer.reason


def _is_of(sighting, group, kind):
    return (sighting[0].rpartition("/")[0], sighting[1]) == (group, kind)


def _ref(owner, namespace):
    return ObjectRef(
        api_version=owner["apiVersion"], kind=owner["kind"], name=owner["name"], uid=owner["uid"], namespace=namespace
    )


def _owner_ref(owner, namespace):
    return ObjectRef(
        api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid, namespace=namespace
    )


class Measured:
    def __init__(self, metrics):
        self._asked = metrics.counter(
            "nodeyard_kinships_asked_total", "Questions by how many owners there were.", ("steps",)
        )

    def record(self, _values):
        """Ignore passes."""

    def forget(self, _key):
        """Keep nothing by key."""

    def record_review(self, _review, response):
        self._asked.labels(response.facts["steps"]).inc()


KIN = Webhook(
    "kin",
    rules=(WebhookRule("", ("configmaps",), operations=("CREATE",)),),
    review=judge,
    failure_policy="Fail",
    timeout_seconds=3,
    object_selector={"matchLabels": {ASK: "yes"}},
)
KINSHIPS = replace(
    labels.LABELS,
    name="kinships",
    metrics=Measured,
    replaces=None,
    admission=Admission((KIN,)),
    dynamic=Dynamic(declared),
)


def question(name, *owners, namespace="default"):
    """Build the ConfigMap whose review follows the owners; these are as the server returned them."""
    references = [reference(owner) for owner in owners]
    metadata = {"name": name, "namespace": namespace, "labels": {ASK: "yes"}, "ownerReferences": references}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def reference(owner):
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata.get("uid", "nobody"),
    }
