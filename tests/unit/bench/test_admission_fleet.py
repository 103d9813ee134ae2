"""The fleet of the admission benchmark, and its load generator."""

from __future__ import annotations

import json

import pytest
from bench import admission_fleet as fleet
from bench.webhook_load import LoadResult, content_length
from tests.builders.placements import PlacementView, affinity_class_body, namespace

from nodeyard.admission import review_codec
from nodeyard.capabilities.affinity.collect.owners import decoded_metadata, finder
from nodeyard.capabilities.affinity.planning.lineage import walk
from nodeyard.capabilities.affinity.reviews.pods import review_placement
from nodeyard.plan.model import ObjectRef


def stored(calls):
    """Yield the objects of the calls as the server stores them, with uids."""
    for call in calls:
        body = json.loads(call.body)
        namespace = call.path.partition("/namespaces/")[2].partition("/")[0]
        metadata = {**body["metadata"], "namespace": namespace, "uid": f"{body['kind']} {body['metadata']['name']}"}
        yield {**body, "metadata": metadata}


def uids(objects):
    return {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each["metadata"]["uid"] for each in objects}


@pytest.fixture(scope="module")
def cluster():
    deployments = list(stored(fleet.deployments()))
    sets = list(stored(fleet.replica_sets(uids(deployments))))
    classes = [affinity_class_body(zone) for zone in fleet.ZONES]
    spaces = [namespace(fleet.namespace_of(number)) for number in range(fleet.TENANTS)]
    view = PlacementView(*stored(fleet.releases()), *deployments, *sets, *classes, *spaces)
    return view, list(fleet.reviews(uids(sets), 1000))


def test_every_pod_satisfies_its_class_and_needs_no_lookup(cluster):
    view, reviews = cluster

    assert all(review_placement(review_codec.read(each), view).facts["reason"] == "InsideClass" for each in reviews)


def test_every_lineage_has_four_objects(cluster):
    view, reviews = cluster
    review = review_codec.read(reviews[7])
    ref = ObjectRef(api_version="v1", kind="Pod", name=review.name, namespace=review.namespace)

    path = walk(ref, decoded_metadata(review.object), finder(view, {})).path

    assert [step.ref.kind for step in path[1:]] == ["ReplicaSet", "Deployment", "HelmRelease", "HelmRelease"]


def test_all_reviews_differ(cluster):
    _view, reviews = cluster

    assert len(set(reviews)) == len(reviews)
    assert all(2500 < len(each) < 6000 for each in reviews)


def test_rate_and_percentiles_of_latencies():
    result = LoadResult(2.0, [each / 1000 for each in range(100, 0, -1)])

    assert (result.rate, result.percentile(0.5), result.percentile(0.99)) == (50, pytest.approx(51), pytest.approx(100))


def test_content_length_of_a_response():
    assert content_length(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n") == 12
    with pytest.raises(RuntimeError, match="response without Content-Length"):
        content_length(b"HTTP/1.1 200 OK\r\n\r\n")
