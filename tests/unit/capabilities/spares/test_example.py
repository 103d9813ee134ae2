"""The shipped example gives the result in its README."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import yaml

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.types import NodeTemplate
from nodeyard.capabilities.spares.validation import faults
from nodeyard.kube.names import ZONE
from nodeyard.kube.objects import Node

from ....builders.spares import converge, owner_of, snapshot, taint

FOLDER = Path(__file__).parents[4] / "examples" / "01-spares"


def test_ten_of_the_twelve_nodes_become_compute_nodes_over_three_zones() -> None:
    wire = list(yaml.safe_load_all((FOLDER / "nodes.yaml").read_text()))
    nodes = [msgspec.convert({**each, "metadata": {**each["metadata"], "resourceVersion": "1"}}, Node) for each in wire]
    manifest = yaml.safe_load((FOLDER / "nodetemplate.yaml").read_text())
    manifest["metadata"]["resourceVersion"] = "1"
    compute = msgspec.convert(manifest, NodeTemplate)
    assert not faults(compute)
    assert not compute.is_dry_run

    after, _ = converge(snapshot(nodes, [compute]))
    taken = [each for each in after.nodes if owner_of(each) == "compute"]
    assert sorted(Counter(each.metadata.labels[ZONE] for each in taken).values()) == [3, 3, 4]
    for each in taken:
        assert each.metadata.labels["baz"] == "qux"
        assert each.metadata.annotations["for"] == "bar"
        assert each.spec.taints == (taint("foo=bar:NoSchedule"),)
    left = [each for each in after.nodes if owner_of(each) is None]
    assert [each.metadata.name for each in left] == ["example-11", "example-12"]
    assert all(each.metadata.labels[names.SPARE_LABEL] == "true" for each in left)
