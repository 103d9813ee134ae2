"""The recorder: the same word is kept or hashed alike in all objects, whichever of them was read first."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodeyard.bundle.model import ServedResource
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


SERVED = ServedResource("x.io", "v1", "widgets", "Widget", namespaced=False)
WHOLE = {"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
METADATA = {"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "w"}}


@pytest.mark.parametrize("answers", [(WHOLE, METADATA), (METADATA, WHOLE)])
def test_metadata_never_replaces_the_object(answers: tuple[dict[str, Any], ...]) -> None:
    cluster = RecordedCluster("", Redactor())
    cluster.resources = (SERVED,)
    for answer in answers:
        record(cluster, "/apis/x.io/v1/widgets/w", answer)

    assert list(cluster.state().objects[SERVED.gvr]) == [WHOLE]


def test_an_object_of_which_only_metadata_was_read_has_its_kind() -> None:
    cluster = RecordedCluster("", Redactor())
    cluster.resources = (SERVED,)
    record(cluster, "/apis/x.io/v1/widgets", {**METADATA, "kind": "PartialObjectMetadataList", "items": [METADATA]})

    (found,) = cluster.state().objects[SERVED.gvr]
    assert (found["apiVersion"], found["kind"]) == ("x.io/v1", "Widget")
