"""Paths lead to values, or to nothing."""

import pytest

from nodeyard.sim.paths import parse_path

POD = {
    "metadata": {"name": "p", "labels": {"topology.kubernetes.io/zone": "a"}},
    "spec": {"containers": [{"name": "one"}, {"name": "two"}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "phase": None},
}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ('metadata.labels["topology.kubernetes.io/zone"]', "a"),
        ("spec.containers[1].name", "two"),
        ("status.conditions[type=Ready].status", "True"),
        ("status.conditions[type=Gone].status", None),
        ("spec.containers[7].name", None),
        ("spec.nothing.below", None),
        ("status.phase", None),
        ("metadata.name.deeper", None),
        ("metadata[0]", None),
    ],
)
def test_a_path_finds_what_is_there(path, value):
    assert parse_path(path).get(POD) == value


@pytest.mark.parametrize("text", ["", ".spec", "spec..x", "spec.", "a b", "a[", "a[b]", "spec]x"])
def test_invalid_paths_are_refused(text):
    with pytest.raises(ValueError, match="path"):
        parse_path(text)


def test_a_path_is_split_at_its_first_element():
    path = parse_path("related.node-of-pod.spec.podCIDR")
    assert path.head == "related"
    assert path.tail.tail.get({"spec": {"podCIDR": "10.0.0.0/24"}}) == "10.0.0.0/24"
