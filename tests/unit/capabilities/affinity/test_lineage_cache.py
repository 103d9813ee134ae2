"""Cache of the path from an owner to its application, and its invalidation."""

import json

import msgspec
import pytest
from tests.builders.affinity_env import definition_body
from tests.builders.affinity_views import AffinityView
from tests.builders.applications import NAMESPACE
from tests.builders.placements import PlacementView, body, installed, reference, release

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.reviews import pods as memory
from nodeyard.capabilities.affinity.reviews.pods import cached_lineage
from nodeyard.kube.objects import OwnerReference

DEPLOYMENT = installed("apps/v1", "Deployment", "main-db")
REPLICA_SET = body("apps/v1", "ReplicaSet", "main-db-5f", owners=[DEPLOYMENT])
ADOPTED = installed("apps/v1", "Deployment", "main-db", by="redis-cache")
OBJECTS = (REPLICA_SET, DEPLOYMENT, release())


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch):
    monkeypatch.setattr(memory, "_cache", {})


class Counting(PlacementView):
    """View that counts reads by kind."""

    gets = 0

    def get(self, kind, name, namespace=""):
        self.gets += 1
        return super().get(kind, name, namespace)


def owner(obj=REPLICA_SET, **changes):
    return msgspec.convert(reference(obj, **changes), OwnerReference)


def test_the_path_is_walked_once_and_then_only_compared():
    view = Counting(*OBJECTS)
    first = cached_lineage(owner(), NAMESPACE, view)
    view.gets = 0

    assert cached_lineage(owner(), NAMESPACE, view) is first
    # Three objects on the path, and two reads of the APIService: no Application has recorded the release.
    assert view.gets == 5
    assert first.application.name == "main-db"


@pytest.mark.parametrize(
    "changed",
    [
        (REPLICA_SET, DEPLOYMENT, release(affinity_class="dc2")),
        (REPLICA_SET, ADOPTED, release("redis-cache", of=("Redis", "cache"), affinity_class="dc2")),
    ],
    ids=["another class", "another release"],
)
def test_a_change_of_anything_on_the_path_is_seen(changed):
    before = cached_lineage(owner(), NAMESPACE, PlacementView(*OBJECTS))

    after = cached_lineage(owner(), NAMESPACE, PlacementView(*changed))

    assert before.release.metadata.labels[names.AFFINITY_CLASS] == "dc1"
    assert after.release.metadata.labels[names.AFFINITY_CLASS] == "dc2"


@pytest.mark.parametrize(
    "left", [(DEPLOYMENT, release()), (REPLICA_SET, DEPLOYMENT)], ids=["the owner is gone", "the release is gone"]
)
def test_a_path_with_a_missing_object_has_to_be_walked_again(left):
    cached_lineage(owner(), NAMESPACE, PlacementView(*OBJECTS))

    assert cached_lineage(owner(), NAMESPACE, PlacementView(*left)) is None
    assert memory._cache == {}


@pytest.mark.parametrize(
    "changes", [{"uid": "another"}, {"name": "another"}, {"kind": "Deployment"}], ids=["uid", "name", "kind"]
)
def test_a_reference_to_another_object_has_no_cached_path(changes):
    view = PlacementView(*OBJECTS)
    cached_lineage(owner(), NAMESPACE, view)

    assert cached_lineage(owner(**changes), NAMESPACE, view) is None


def test_a_path_is_cached_for_its_namespace():
    view = PlacementView(*OBJECTS)
    cached_lineage(owner(), NAMESPACE, view)

    assert cached_lineage(owner(), "tenant-other", view) is None


def recorded(affinity_class="dc2"):
    found = body(names.APPS_API_VERSION, "Postgres", "main-db")
    given = {"uid": found["metadata"]["uid"], "release": "postgres-main-db", "class": affinity_class, "source": "x"}
    found["metadata"]["annotations"] = {names.CLASS_RECORD: json.dumps(given)}
    return found


def test_added_changed_and_deleted_records_are_seen():
    view = AffinityView(definition_body("Postgres"), *OBJECTS)
    applications = view.kept("Postgres.apps.cozystack.io")

    def its_class():
        return cached_lineage(owner(), NAMESPACE, view).owning_releases[0].affinity_class

    found = [its_class()]
    for affinity_class in ("dc2", "dc3"):
        applications[NAMESPACE, "main-db"] = recorded(affinity_class)
        found.append(its_class())
    applications.clear()

    assert [*found, its_class()] == ["dc1", "dc2", "dc3", "dc1"]


def test_a_record_of_a_release_that_the_path_went_through_is_seen():
    """Without labels and record it counted as installed by another release."""
    through = release(of=None, labels={names.FLUX_NAME: "redis-cache"})
    redis = release("redis-cache", of=("Redis", "cache"))
    view = AffinityView(definition_body("Postgres"), REPLICA_SET, DEPLOYMENT, through, redis)
    before = cached_lineage(owner(), NAMESPACE, view)

    view.kept("Postgres.apps.cozystack.io")[NAMESPACE, "main-db"] = recorded()

    assert (before.application.name, cached_lineage(owner(), NAMESPACE, view).application.name) == ("cache", "main-db")


def test_a_path_is_not_cached_while_a_record_may_be_missing():
    troubles = {"Postgres.apps.cozystack.io": "may not list postgreses"}
    view = AffinityView(definition_body("Postgres"), *OBJECTS, troubles=troubles)

    assert cached_lineage(owner(), NAMESPACE, view) is None
    assert memory._cache == {}


def test_a_lineage_without_application_is_not_cached():
    assert cached_lineage(owner(), NAMESPACE, PlacementView(REPLICA_SET, DEPLOYMENT, release(of=None))) is None
    assert memory._cache == {}


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(memory, "MAX_ENTRIES", 2)
    sets = [body("apps/v1", "ReplicaSet", f"set-{number}", owners=[DEPLOYMENT]) for number in range(3)]
    view = PlacementView(*sets, DEPLOYMENT, release())

    for each in (*sets, sets[2]):
        cached_lineage(owner(each), NAMESPACE, view)

    assert [key[1] for key in memory._cache] == ["set-1", "set-2"]


def test_owners_without_a_namespace_are_found_again():
    fleet = body("example.dev/v1", "Fleet", "all", namespace="")
    held = release(owners=[fleet])
    view = PlacementView(fleet, held)

    assert cached_lineage(owner(held), NAMESPACE, view) is cached_lineage(owner(held), NAMESPACE, view)
    assert cached_lineage(owner(fleet), NAMESPACE, view) is None
