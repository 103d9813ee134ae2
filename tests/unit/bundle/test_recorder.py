"""The recorder: the same word is kept or hashed alike in all objects, whichever of them was read first."""

from __future__ import annotations

from typing import Any

import msgspec

from nodeyard.bundle.paths import parse_path
from nodeyard.bundle.recorder import RecordedCluster
from nodeyard.bundle.redaction import HASHED, Redactor


def record(cluster: RecordedCluster, url: str, obj: dict[str, Any]) -> None:
    path = parse_path(url)
    assert path is not None
    cluster.record(path, 200, msgspec.json.encode(obj))


def test_a_name_that_is_met_late_is_kept_in_objects_that_were_read_early() -> None:
    cluster = RecordedCluster("", Redactor())
    annotations = {"for": "zebra", "by": "hunter2"}
    early = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "annotations": annotations}}
    taints = [{"key": "foo", "value": "zebra", "effect": "NoSchedule"}]
    late = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}, "spec": {"taints": taints}}
    record(cluster, "/api/v1/namespaces/a", early)
    record(cluster, "/api/v1/nodes/b", late)

    cluster.learn_names()
    found = {gvr.resource: objects[0] for gvr, objects in cluster.state().objects.items()}

    assert found["namespaces"]["metadata"]["annotations"]["for"] == "zebra"
    assert found["namespaces"]["metadata"]["annotations"]["by"].startswith(HASHED)
    assert found["nodes"]["spec"]["taints"] == taints
