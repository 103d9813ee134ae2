"""The fleet that admission is measured with: what is claimed about it."""

from __future__ import annotations

import json

import pytest
from bench import admission_fleet as fleet
from bench.asking import Asked, content_length
from tests.builders.placements import PlacementView, affinity_class_body, namespace

from nodeyard.admission import review_codec
from nodeyard.capabilities.affinity.collect.owners import decoded_metadata, finder
from nodeyard.capabilities.affinity.planning.lineage import walk
from nodeyard.capabilities.affinity.reviews.pods import review_placement
from nodeyard.plan.model import ObjectRef


def stored(calls):
    """As the server would have them: with uids."""
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
    return view, list(fleet.questions(uids(sets), 1000))


def test_every_pod_keeps_to_its_class_and_needs_no_lookup(cluster):
    view, questions = cluster

    assert all(review_placement(review_codec.read(each), view).facts["reason"] == "InsideClass" for each in questions)


def test_every_path_leads_over_four_objects(cluster):
    view, questions = cluster
    review = review_codec.read(questions[7])
    ref = ObjectRef(api_version="v1", kind="Pod", name=review.name, namespace=review.namespace)

    path = walk(ref, decoded_metadata(review.object), finder(view, {})).path

    assert [step.ref.kind for step in path[1:]] == ["ReplicaSet", "Deployment", "HelmRelease", "HelmRelease"]


def test_no_two_questions_are_alike(cluster):
    _view, questions = cluster

    assert len(set(questions)) == len(questions)
    assert all(2500 < len(each) < 6000 for each in questions)


def test_the_share_of_answers_below_a_time():
    asked = Asked(2.0, [each / 1000 for each in range(100, 0, -1)])

    assert (asked.rate, asked.percentile(0.5), asked.percentile(0.99)) == (50, pytest.approx(51), pytest.approx(100))


def test_an_answer_says_its_length():
    assert content_length(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n") == 12
    with pytest.raises(RuntimeError, match="without a length"):
        content_length(b"HTTP/1.1 200 OK\r\n\r\n")
