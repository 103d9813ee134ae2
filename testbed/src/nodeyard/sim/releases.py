"""Simulated Flux helm-controller, without Helm, and StatefulSet controller: each release becomes one StatefulSet.

    HelmRelease ──values──▶ StatefulSet ──template──▶ Pods      all created through the API, so admission applies

A release is ready when its pods are. Creating a pod that admission denies is retried; StatefulSet and release report it
meanwhile. When the values change, pods of the old template are replaced one at a time.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Final

from nodeyard.client.api import Client
from nodeyard.client.errors import AdmissionDenied
from nodeyard.kube.json import Object
from nodeyard.process.clock import Clock
from nodeyard.sim.executor import Requeue
from nodeyard.sim.index import Entity
from nodeyard.sim.machines.object_client import ObjectClient
from nodeyard.sim.machines.objects import NewCondition, conditions, is_deleting
from nodeyard.sim.stage_format import Kind
from nodeyard.sim.stage_set import Reconciler

RELEASE: Final = Kind("helm.toolkit.fluxcd.io/v2", "HelmRelease")
SET: Final = Kind("apps/v1", "StatefulSet")
FORGETFUL: Final = "forgetful-"
"""Prefix of the names of charts that ignore the placement in their values."""
VERSION: Final = "1.0.0"
RETRY_SECONDS: Final = 2.0
_FINALIZER: Final = "finalizers.fluxcd.io"
_NAME: Final = "helm.toolkit.fluxcd.io/name"
_NAMESPACE: Final = "helm.toolkit.fluxcd.io/namespace"
_REVISION: Final = "controller-revision-hash"
_FAILURE: Final = "ReplicaFailure"


class Releases:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._objects = ObjectClient(client, clock)
        self.reconcilers: Sequence[Reconciler] = (
            Reconciler(
                "release",
                RELEASE,
                self.reconcile_release,
                lambda release: release.object["spec"].get("suspend") is not True,
                follows=("sets-of-release",),
                delay=(0.02, 0.1),
            ),
            Reconciler(
                "release-set",
                SET,
                self.reconcile_set,
                lambda subject: bool(_label(subject.object, _NAME)) and not is_deleting(subject.object),
                follows=("pods-of-set",),
            ),
        )

    # helm-controller

    async def reconcile_release(self, entity: Entity) -> None:
        release = entity.object
        sets = [one.object for one in entity.index.referrers("sets-of-release", entity)]
        if is_deleting(release):
            await self._uninstall(release, sets)
            return
        await self._objects.set_finalizer(release, _FINALIZER, is_present=True)
        wanted = workload(release)
        present = next((one for one in sets if one["metadata"]["name"] == wanted["metadata"]["name"]), None)
        if present is None:
            await self._objects.create(wanted)
        else:
            await self._objects.patch(present, _upgrade(present, wanted))
        await self._update_release_status(release, present, wanted)

    async def _uninstall(self, release: Object, sets: Sequence[Object]) -> None:
        for one in sets:
            await self._objects.delete(one)
        await self._objects.set_finalizer(release, _FINALIZER, is_present=bool(sets))

    async def _update_release_status(self, release: Object, present: Object | None, wanted: Object) -> None:
        name = f"{release['metadata']['namespace']}/{release['metadata']['name']}"
        # Flux's CRD defaults it to -1.
        verb = "upgrade" if ((release.get("status") or {}).get("observedGeneration") or 0) > 0 else "install"
        status: Object = {"lastAttemptedRevision": VERSION}
        failure = _failure(present)
        if present is not None and _is_rolled_out(present, wanted):
            status["observedGeneration"] = release["metadata"]["generation"]
            message = f"Helm {verb} succeeded for release {name} with chart {_chart(release)}@{VERSION}"
            updates = [NewCondition(each, True, f"{verb.title()}Succeeded", message) for each in ("Ready", "Released")]
        elif failure:
            updates = [
                NewCondition(
                    "Ready", False, f"{verb.title()}Failed", f"Helm {verb} failed for release {name}: {failure}"
                )
            ]
        else:
            updates = [NewCondition("Ready", None, "Progressing", f"Running '{verb}' action for release {name}")]
        await self._objects.update_status(release, status, _without_repetition(release, updates))

    # StatefulSet controller

    async def reconcile_set(self, entity: Entity) -> None:
        obj = entity.object
        pods = {_ordinal(one.object): one.object for one in entity.index.referrers("pods-of-set", entity)}
        replicas = obj["spec"].get("replicas", 1)
        revision = _revision(obj)
        denial = ""
        for ordinal in range(replicas):
            if ordinal not in pods:
                denial = denial or await self._create_pod(obj, ordinal, revision)
        for ordinal in sorted(pods, reverse=True):
            if ordinal >= replicas:
                await self._objects.delete(pods[ordinal])
        if not denial:
            await self._roll(pods, replicas, revision)
        await self._update_set_status(obj, pods, revision, denial)
        if denial:
            raise Requeue(RETRY_SECONDS, denial, has_backoff=False)

    async def _create_pod(self, obj: Object, ordinal: int, revision: str) -> str:
        """Create a pod; return the message of the denial, empty if it was admitted."""
        try:
            await self._objects.create(pod(obj, ordinal, revision))
        except AdmissionDenied as error:
            return str(error)
        return ""

    async def _roll(self, pods: Mapping[int, Object], replicas: int, revision: str) -> None:
        """Delete one pod of an older template, the highest ordinal first, when the others are ready."""
        if len(pods) < replicas or any(is_deleting(each) for each in pods.values()):
            return
        old = [each for _, each in sorted(pods.items(), reverse=True) if _label(each, _REVISION) != revision]
        if old and all(_is_ready(each) or each in old for each in pods.values()):
            await self._objects.delete(old[0])

    async def _update_set_status(self, obj: Object, pods: Mapping[int, Object], revision: str, denial: str) -> None:
        current = [each for each in pods.values() if _label(each, _REVISION) == revision]
        status: Object = {
            "observedGeneration": obj["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": sum(_is_ready(each) for each in pods.values()),
            "availableReplicas": sum(_is_ready(each) for each in pods.values()),
            "updatedReplicas": len(current),
            "currentReplicas": len(current),
            "updateRevision": revision,
            "currentRevision": revision,
        }
        if denial:
            await self._objects.record_warning(obj, "FailedCreate", denial)
        if denial or _failure(obj):
            updates = NewCondition(_FAILURE, bool(denial), "FailedCreate" if denial else "Created", denial)
            present = (obj.get("status") or {}).get("conditions") or ()
            status["conditions"] = conditions(present, [updates], self._objects.now())
        await self._objects.update_status(obj, status)


# chart


def workload(release: Object) -> Object:
    """Return the StatefulSet of a release."""
    metadata, values = release["metadata"], release["spec"].get("values") or {}
    name, namespace = metadata["name"], metadata["namespace"]
    labels = {"app.kubernetes.io/instance": name}
    return {
        "apiVersion": SET.api_version,
        "kind": SET.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {_NAME: name, _NAMESPACE: namespace, **labels}},
        "spec": {
            "serviceName": name,
            "replicas": values.get("replicas", 1),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    **_placement(release),
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": f"{_chart(release)}:{VERSION}"}],
                },
            },
        },
    }


def _placement(release: Object) -> Object:
    scheduling = (release["spec"].get("values") or {}).get("_scheduling") or {}
    if _chart(release).startswith(FORGETFUL):
        return {}
    found: Object = {}
    if scheduling.get("nodeSelector"):
        found["nodeSelector"] = scheduling["nodeSelector"]
    if scheduling.get("nodeAffinity"):
        found["affinity"] = {"nodeAffinity": scheduling["nodeAffinity"]}
    return found


def _chart(release: Object) -> str:
    return str((release["spec"].get("chartRef") or {}).get("name") or "chart")


def _upgrade(present: Object, wanted: Object) -> Object:
    """Return the merge patch from the present to the wanted StatefulSet."""
    before, after = present["spec"]["template"]["spec"], wanted["spec"]["template"]["spec"]
    spec: Object = {**_replaced(before, after, "nodeSelector"), "affinity": after.get("affinity")}
    return {"spec": {"replicas": wanted["spec"]["replicas"], "template": {"spec": spec}}}


def _replaced(before: Object, after: Object, field: str) -> Object:
    gone = {key: None for key in before.get(field) or {} if key not in (after.get(field) or {})}
    return {field: {**gone, **(after.get(field) or {})}}


def pod(obj: Object, ordinal: int, revision: str) -> Object:
    """Return a pod of a StatefulSet."""
    metadata, template = obj["metadata"], obj["spec"]["template"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), _REVISION: revision}
    owner = {"apiVersion": SET.api_version, "kind": SET.kind, "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{metadata['name']}-{ordinal}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": template["spec"],
    }


# what is updates of it


def _revision(obj: Object) -> str:
    text = json.dumps(obj["spec"]["template"], sort_keys=True)
    return f"{obj['metadata']['name']}-{zlib.crc32(text.encode()):08x}"[-63:]


def _ordinal(obj: Object) -> int:
    return int(obj["metadata"]["name"].rpartition("-")[2])


def _label(obj: Object, key: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(key, ""))


def _is_ready(obj: Object) -> bool:
    present = (obj.get("status") or {}).get("conditions") or ()
    return not is_deleting(obj) and any(one["type"] == "Ready" and one["status"] == "True" for one in present)


def _is_rolled_out(present: Object, wanted: Object) -> bool:
    """Return whether the StatefulSet is as wanted and all its pods are up to date and ready."""
    status, replicas = present.get("status") or {}, wanted["spec"]["replicas"]
    template, wanted_template = present["spec"]["template"]["spec"], wanted["spec"]["template"]["spec"]
    is_same = all(
        (template.get(field) or {}) == (wanted_template.get(field) or {}) for field in ("nodeSelector", "affinity")
    )
    return (
        is_same
        and present["spec"].get("replicas", 1) == replicas
        and status.get("observedGeneration") == present["metadata"]["generation"]
        and status.get("readyReplicas", 0) == status.get("updatedReplicas", 0) == status.get("replicas", 0) == replicas
    )


def _failure(obj: Object | None) -> str:
    present = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((one["message"] for one in present if one["type"] == _FAILURE and one["status"] == "True"), "")


def _without_repetition(release: Object, updates: Sequence[NewCondition]) -> Sequence[NewCondition]:
    """Return no updates if the release is Ready at this generation already."""
    present = {one["type"]: one for one in (release.get("status") or {}).get("conditions") or ()}
    generation = release["metadata"]["generation"]
    is_settled = updates[0].holds is True and present.get("Ready", {}).get("status") == "True"
    is_current = present.get("Ready", {}).get("observedGeneration") == generation
    return () if is_settled and is_current else updates
