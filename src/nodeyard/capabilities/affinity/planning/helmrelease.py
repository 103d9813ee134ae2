"""Build the fields of an application's HelmRelease that the operator owns; the rest belongs to the platform."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.planning.choice import Choice
from nodeyard.capabilities.affinity.planning.class_record import previous_label
from nodeyard.capabilities.affinity.snapshot import ApplicationSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass, ChartRef
from nodeyard.kube.json import Object
from nodeyard.kube.names import qualified_name_faults

INTERVAL: Final = "5m"
RETRY_INTERVAL: Final = "30s"
_NOT_PASSED_ON: Final = ("kubectl.kubernetes.io/last-applied-configuration", names.CLASS_RECORD)


def release_object(snapshot: ApplicationSnapshot, choice: Choice) -> Object:
    """Return the body of the server-side apply."""
    application, template = snapshot.application, snapshot.definition.spec.release
    metadata = application["metadata"]
    # Retry instead of rolling back: the user has to fix the application.
    strategy = {"strategy": {"name": "RetryOnFailure", "retryInterval": RETRY_INTERVAL}}
    return {
        "apiVersion": names.FLUX_API_VERSION,
        "kind": names.RELEASE_KIND,
        "metadata": {
            "name": f"{template.prefix}{metadata['name']}",
            "namespace": metadata["namespace"],
            "labels": _labels(snapshot, choice),
            "annotations": {**_prefix_keys(metadata.get("annotations") or {}), names.CLASS_SOURCE: choice.source},
            "ownerReferences": [_owner_reference(application)],
        },
        "spec": {
            "chartRef": _chart_ref(template.chart_ref or ChartRef()),
            "interval": INTERVAL,
            "install": strategy,
            "upgrade": strategy,
            "valuesFrom": [{"kind": "Secret", "name": names.VALUES_SECRET}],
            "values": release_values(application, snapshot.classes.get(choice.name)),
        },
    }


def release_values(application: Object, affinity_class: AffinityClass | None) -> Object:
    """Return the user's values without reserved keys, and `_scheduling` from the class."""
    spec = application.get("spec") or {}
    values = {key: value for key, value in spec.items() if not key.startswith(names.RESERVED_PREFIX)}
    if affinity_class is not None:
        values[names.SCHEDULING_VALUES] = scheduling(affinity_class)
    return values


def scheduling(affinity_class: AffinityClass) -> Object:
    """Return the placement of a class in the form that charts read."""
    spec = affinity_class.spec
    found: Object = {"affinityClass": affinity_class.name}
    if spec.node_selector:
        found["nodeSelector"] = dict(spec.node_selector)
    if spec.node_affinity is not None and spec.node_affinity.required:
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": spec.node_affinity.required}
    return found


def unusable_keys(metadata: Object) -> list[str]:
    """Return the label and annotation keys that are too long for the release with the prefix."""
    given = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return sorted(key for key in given if key not in _NOT_PASSED_ON and not _is_usable(key))


def _labels(snapshot: ApplicationSnapshot, choice: Choice) -> dict[str, str]:
    application = snapshot.application
    labels = {
        **snapshot.definition.spec.release.labels,
        **_prefix_keys(application["metadata"].get("labels") or {}),
        names.APPLICATION_GROUP: names.APPS_GROUP,
        names.APPLICATION_KIND: application["kind"],
        names.APPLICATION_NAME: application["metadata"]["name"],
    }
    present = ((snapshot.release or {}).get("metadata") or {}).get("labels") or {}
    if names.SHARDING_KEY in present:
        # The platform assigns an existing HelmRelease to a shard of helm-controller.
        labels[names.SHARDING_KEY] = present[names.SHARDING_KEY]
    for key in (names.AFFINITY_CLASS, names.PREVIOUS_CLASS):
        labels.pop(key, None)
    if choice.name:
        labels[names.AFFINITY_CLASS] = choice.name
    if choice.previous:
        labels[names.PREVIOUS_CLASS] = previous_label(choice.previous)
    return labels


def _prefix_keys(given: Mapping[str, str]) -> dict[str, str]:
    """Prefix the user's labels or annotations, so that they cannot set keys of the platform."""
    return {
        f"{names.USER_KEY_PREFIX}{key}": value
        for key, value in given.items()
        if key not in _NOT_PASSED_ON and _is_usable(key)
    }


def _is_usable(key: str) -> bool:
    return not qualified_name_faults(f"{names.USER_KEY_PREFIX}{key}".lower())


def _chart_ref(chart: ChartRef) -> Object:
    found = {"kind": chart.kind, "name": chart.name, "namespace": chart.namespace}
    return {name: value for name, value in found.items() if value}


def _owner_reference(application: Object) -> Object:
    return {
        "apiVersion": names.APPS_API_VERSION,
        "kind": application["kind"],
        "name": application["metadata"]["name"],
        "uid": application["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
