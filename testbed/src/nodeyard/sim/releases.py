"""Helm releases as Flux makes them, without Helm: what an operator sees of a release, its workload and its pods.

    HelmRelease ──values──▶ StatefulSet ──template──▶ Pods      each made through the API, so admission has its say

A release is ready when its pods are. A pod that admission refuses is tried again; the StatefulSet and the release say
so meanwhile. When the values change, pods of the old template go one after the other.
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
from nodeyard.sim.executor import NotYet, Procedure
from nodeyard.sim.index import Entity
from nodeyard.sim.machines.facts import Seen, conditions, is_deleting
from nodeyard.sim.machines.workbench import Workbench
from nodeyard.sim.stage_format import Kind

RELEASE: Final = Kind("helm.toolkit.fluxcd.io/v2", "HelmRelease")
SET: Final = Kind("apps/v1", "StatefulSet")
FORGETFUL: Final = "forgetful-"
"""How the names of charts begin that do not apply the placement they are given."""
VERSION: Final = "1.0.0"
RETRY_SECONDS: Final = 2.0
_FINALIZER: Final = "finalizers.fluxcd.io"
_NAME: Final = "helm.toolkit.fluxcd.io/name"
_NAMESPACE: Final = "helm.toolkit.fluxcd.io/namespace"
_REVISION: Final = "controller-revision-hash"
_FAILURE: Final = "ReplicaFailure"


class Releases:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._bench = Workbench(client, clock)
        self.procedures: Mapping[str, Procedure] = {"release": self.install, "release-set": self.keep}

    # helm-controller

    async def install(self, entity: Entity) -> None:
        release = entity.object
        sets = [one.object for one in entity.index.pointing("sets-of-release", entity)]
        if is_deleting(release):
            await self._uninstall(release, sets)
            return
        await self._bench.finalize(release, _FINALIZER, is_held=True)
        wanted = workload(release)
        present = next((one for one in sets if one["metadata"]["name"] == wanted["metadata"]["name"]), None)
        if present is None:
            await self._bench.create(wanted)
        else:
            await self._bench.patch(present, _upgrade(present, wanted))
        await self._tell(release, present, wanted)

    async def _uninstall(self, release: Object, sets: Sequence[Object]) -> None:
        for one in sets:
            await self._bench.delete(one)
        await self._bench.finalize(release, _FINALIZER, is_held=bool(sets))

    async def _tell(self, release: Object, present: Object | None, wanted: Object) -> None:
        name = f"{release['metadata']['namespace']}/{release['metadata']['name']}"
        # Flux's own definition begins with -1.
        verb = "upgrade" if ((release.get("status") or {}).get("observedGeneration") or 0) > 0 else "install"
        status: Object = {"lastAttemptedRevision": VERSION}
        failure = _failure(present)
        if present is not None and _is_done(present, wanted):
            status["observedGeneration"] = release["metadata"]["generation"]
            message = f"Helm {verb} succeeded for release {name} with chart {_chart(release)}@{VERSION}"
            seen = [Seen(each, True, f"{verb.title()}Succeeded", message) for each in ("Ready", "Released")]
        elif failure:
            seen = [Seen("Ready", False, f"{verb.title()}Failed", f"Helm {verb} failed for release {name}: {failure}")]
        else:
            seen = [Seen("Ready", None, "Progressing", f"Running '{verb}' action for release {name}")]
        await self._bench.report(release, status, _unless_said(release, seen))

    # the controller of StatefulSets

    async def keep(self, entity: Entity) -> None:
        obj = entity.object
        pods = {_ordinal(one.object): one.object for one in entity.index.pointing("pods-of-set", entity)}
        replicas = obj["spec"].get("replicas", 1)
        revision = _revision(obj)
        refusal = ""
        for ordinal in range(replicas):
            if ordinal not in pods:
                refusal = refusal or await self._start(obj, ordinal, revision)
        for ordinal in sorted(pods, reverse=True):
            if ordinal >= replicas:
                await self._bench.delete(pods[ordinal])
        if not refusal:
            await self._replace(pods, replicas, revision)
        await self._count(obj, pods, revision, refusal)
        if refusal:
            raise NotYet(RETRY_SECONDS, refusal, grows=False)

    async def _start(self, obj: Object, ordinal: int, revision: str) -> str:
        """Why the pod was refused; empty where it was not."""
        try:
            await self._bench.create(pod(obj, ordinal, revision))
        except AdmissionDenied as error:
            return str(error)
        return ""

    async def _replace(self, pods: Mapping[int, Object], replicas: int, revision: str) -> None:
        """One pod of an older template, the last first, when the others run."""
        if len(pods) < replicas or any(is_deleting(each) for each in pods.values()):
            return
        old = [each for _, each in sorted(pods.items(), reverse=True) if _label(each, _REVISION) != revision]
        if old and all(_is_ready(each) or each in old for each in pods.values()):
            await self._bench.delete(old[0])

    async def _count(self, obj: Object, pods: Mapping[int, Object], revision: str, refusal: str) -> None:
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
        if refusal:
            await self._bench.warn(obj, "FailedCreate", refusal)
        if refusal or _failure(obj):
            seen = Seen(_FAILURE, bool(refusal), "FailedCreate" if refusal else "Created", refusal)
            present = (obj.get("status") or {}).get("conditions") or ()
            status["conditions"] = conditions(present, [seen], self._bench.now())
        await self._bench.report(obj, status)


# what a chart renders


def workload(release: Object) -> Object:
    """The StatefulSet of a release."""
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
    """What a merge patch has to say; what the template has no longer is taken out."""
    before, after = present["spec"]["template"]["spec"], wanted["spec"]["template"]["spec"]
    spec: Object = {**_replaced(before, after, "nodeSelector"), "affinity": after.get("affinity")}
    return {"spec": {"replicas": wanted["spec"]["replicas"], "template": {"spec": spec}}}


def _replaced(before: Object, after: Object, field: str) -> Object:
    gone = {key: None for key in before.get(field) or {} if key not in (after.get(field) or {})}
    return {field: {**gone, **(after.get(field) or {})}}


def pod(obj: Object, ordinal: int, revision: str) -> Object:
    """A pod of a StatefulSet."""
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


# what is seen of it


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


def _is_done(present: Object, wanted: Object) -> bool:
    """Whether what is wanted is there, and all of its pods are of it and ready."""
    status, replicas = present.get("status") or {}, wanted["spec"]["replicas"]
    template, asked = present["spec"]["template"]["spec"], wanted["spec"]["template"]["spec"]
    is_same = all((template.get(field) or {}) == (asked.get(field) or {}) for field in ("nodeSelector", "affinity"))
    return (
        is_same
        and present["spec"].get("replicas", 1) == replicas
        and status.get("observedGeneration") == present["metadata"]["generation"]
        and status.get("readyReplicas", 0) == status.get("updatedReplicas", 0) == status.get("replicas", 0) == replicas
    )


def _failure(obj: Object | None) -> str:
    present = ((obj or {}).get("status") or {}).get("conditions") or ()
    return next((one["message"] for one in present if one["type"] == _FAILURE and one["status"] == "True"), "")


def _unless_said(release: Object, seen: Sequence[Seen]) -> Sequence[Seen]:
    """Nothing, where a release that is ready has been told so."""
    present = {one["type"]: one for one in (release.get("status") or {}).get("conditions") or ()}
    generation = release["metadata"]["generation"]
    is_settled = seen[0].holds is True and present.get("Ready", {}).get("status") == "True"
    is_current = present.get("Ready", {}).get("observedGeneration") == generation
    return () if is_settled and is_current else seen
