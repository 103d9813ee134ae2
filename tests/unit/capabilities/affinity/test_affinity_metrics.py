"""Metrics of decisions about pods by class, and of classes; a deleted class loses its series."""

from __future__ import annotations

import msgspec
from tests.builders.affinity_env import class_body

from nodeyard.capabilities.affinity.report.metrics import AffinityMetrics, measure
from nodeyard.capabilities.affinity.snapshot import ClassSnapshot
from nodeyard.capabilities.affinity.types import AffinityClass
from nodeyard.plan.model import Plan
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.webhooks import AdmissionRequest, allowed, denied

REVIEW = AdmissionRequest(uid="1", operation="CREATE")
PLAN = Plan(capability="affinity", key="class/dc1")


def measured():
    metrics = Metrics()
    return AffinityMetrics(metrics), lambda name, **labels: metrics.registry.get_sample_value(name, labels)


def test_reviews_are_counted_by_class_decision_and_reason():
    recorder, sample = measured()

    recorder.record_review(
        REVIEW, denied("no").with_facts(**{"class": "dc1", "decision": "denied", "reason": "OutsideClass"})
    )
    recorder.record_review(REVIEW, allowed())

    labels = {"affinity_class": "dc1", "decision": "denied", "reason": "OutsideClass"}
    assert sample("nodeyard_affinity_reviews_total", **labels) == 1


def test_metric_series_of_a_deleted_class_are_removed():
    recorder, sample = measured()
    dc1 = msgspec.convert(class_body("dc1", nodeSelector={"a": "b"}), AffinityClass)
    recorder.record(measure(ClassSnapshot(dc1, zones={"a": 2, "b": 1}, violators=["x/y"])))
    recorder.record_review(
        REVIEW, allowed().with_facts(**{"class": "dc1", "decision": "allowed", "reason": "InsideClass"})
    )
    assert sample("nodeyard_affinity_class_nodes", affinity_class="dc1") == 3
    assert sample("nodeyard_affinity_class_violators", affinity_class="dc1") == 1

    recorder.forget("class/dc1")
    recorder.forget("application/Postgres/a/b")

    assert sample("nodeyard_affinity_class_nodes", affinity_class="dc1") is None
    labels = {"affinity_class": "dc1", "decision": "allowed", "reason": "InsideClass"}
    assert sample("nodeyard_affinity_reviews_total", **labels) is None
