"""Defaults of what runs pods: apps and batch."""

from __future__ import annotations

from nodeyard.apiserver.kinds.edits import fill, filler, replace
from nodeyard.kube.json import Object

_APPS = "io.k8s.api.apps.v1."
_BATCH = "io.k8s.api.batch.v1."
_MAX_INT32 = 2**31 - 1


def deployment_spec(obj: Object) -> Object:
    strategy = fill(obj.get("strategy") or {}, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = fill(strategy.get("rollingUpdate") or {}, {"maxUnavailable": "25%", "maxSurge": "25%"})
        strategy = replace(strategy, rollingUpdate=rolling)
    filled = fill(obj, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    return replace(filled, strategy=strategy)


def daemon_set_spec(obj: Object) -> Object:
    strategy = fill(obj.get("updateStrategy") or {}, {"type": "RollingUpdate"})
    if strategy["type"] == "RollingUpdate":
        rolling = fill(strategy.get("rollingUpdate") or {}, {"maxUnavailable": 1, "maxSurge": 0})
        strategy = replace(strategy, rollingUpdate=rolling)
    return replace(fill(obj, {"revisionHistoryLimit": 10}), updateStrategy=strategy)


def stateful_set_spec(obj: Object) -> Object:
    strategy = obj.get("updateStrategy") or {}
    if not strategy.get("type"):
        strategy = {**strategy, "type": "RollingUpdate", "rollingUpdate": strategy.get("rollingUpdate") or {}}
    if strategy["type"] == "RollingUpdate" and strategy.get("rollingUpdate") is not None:
        strategy = replace(strategy, rollingUpdate=fill(strategy["rollingUpdate"], {"partition": 0}))
    retention = fill(
        obj.get("persistentVolumeClaimRetentionPolicy") or {}, {"whenDeleted": "Retain", "whenScaled": "Retain"}
    )
    filled = fill(obj, {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10})
    return replace(filled, updateStrategy=strategy, persistentVolumeClaimRetentionPolicy=retention)


def job(obj: Object) -> Object:
    """A Job's own defaults; a CronJob's template has none until it is a Job."""
    given = obj["spec"]
    spec = given
    if "completions" not in spec and "parallelism" not in spec:
        spec = {**spec, "completions": 1}
    per_index = spec.get("backoffLimitPerIndex") is not None
    spec = fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": _MAX_INT32 if per_index else 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "podReplacementPolicy": "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed",
            "manualSelector": False,
        },
    )
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    metadata = obj.get("metadata") or {}
    if labels and not metadata.get("labels"):
        return {**obj, "metadata": {**metadata, "labels": labels}, "spec": spec}
    return replace(obj, spec=spec)


def cron_job_spec(obj: Object) -> Object:
    return fill(
        obj,
        {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
    )


DEFAULTS = {
    _APPS + "DaemonSetSpec": daemon_set_spec,
    _APPS + "DeploymentSpec": deployment_spec,
    _APPS + "ReplicaSetSpec": filler({"replicas": 1}),
    _APPS + "StatefulSetSpec": stateful_set_spec,
    _BATCH + "CronJobSpec": cron_job_spec,
    _BATCH + "Job": job,
    _BATCH + "PodFailurePolicyOnPodConditionsPattern": filler({"status": "True"}),
}
