"""While no webhook is asked: what it would have refused is said in conditions, and no application is lost by it."""

from datetime import timedelta

import pytest
from tests.builders.estates import ROOT, an_estate, unique

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.planning import crd_teardown

CRD = "CustomResourceDefinition"


@pytest.fixture(scope="module")
def estate(api, affinity_kinds):
    with an_estate(api) as estate:
        estate.operator = estate.operators(AFFINITY)
        yield estate


def change(estate, kind, **spec):
    """What a definition declares."""
    answer = estate.patch(names.DEFINITION_KIND, kind.lower(), {"spec": spec})
    assert answer.status == 200, answer.content


def test_an_application_says_that_nobody_checks_its_pods(estate):
    estate.definition("Ledger")
    name = estate.affinity_class(unique("class"), nodeSelector={"a": "b"})
    home = estate.tenant(unique("home"), defaultAffinityClass=name)
    estate.released("Ledger", home, "books")

    condition = estate.told("Ledger", "books", "PlacementEnforced", "WebhooksNotRegistered", home)

    assert condition["status"] == "False"


def test_a_definition_that_is_called_otherwise_stays_what_it_is_until_it_is_set_back(estate):
    kind = estate.definition(unique("Diary").title())
    estate.released(kind, ROOT, "mine")
    served = f"{estate.plurals[kind][1]}.{names.APPS_GROUP}"

    change(estate, kind, application={"plural": "journals"})

    condition = estate.told(names.DEFINITION_KIND, kind.lower(), "Ready", "InvalidDefinition")
    assert f"it is already served as {served}" in condition["message"]
    assert estate.see(CRD, f"journals.{names.APPS_GROUP}") is None
    assert estate.see(kind, "mine", ROOT) is not None
    change(estate, kind, application={"plural": estate.plurals[kind][1]})
    estate.told(names.DEFINITION_KIND, kind.lower(), "Ready", "Served")


def test_an_application_is_not_installed_a_second_time_under_another_prefix(estate):
    kind = estate.definition(unique("Album").title())
    prefix = f"{kind.lower()}-"
    estate.released(kind, ROOT, "mine")

    change(estate, kind, release={"prefix": "new-"})

    condition = estate.told(kind, "mine", "Ready", "ReleasedUnderAnotherName", ROOT)
    assert f"HelmRelease {ROOT}/{prefix}mine" in condition["message"]
    assert estate.see(names.RELEASE_KIND, "new-mine", ROOT) is None
    change(estate, kind, release={"prefix": prefix})
    estate.told(kind, "mine", "Ready", "ReleasePending", ROOT)


def test_a_kind_goes_only_when_nothing_is_left_of_it_and_nothing_more_can_come(estate, monkeypatch):
    monkeypatch.setattr(crd_teardown, "SETTLE", timedelta(seconds=20))
    kind = estate.definition(unique("Atlas").title())
    estate.released(kind, ROOT, "mine")
    crd = f"{estate.plurals[kind][1]}.{names.APPS_GROUP}"

    assert estate.delete(names.DEFINITION_KIND, kind.lower()).status == 200
    estate.told(names.DEFINITION_KIND, kind.lower(), "Ready", "DefinitionInUse")
    assert estate.application(kind, ROOT, "still").status == 201
    for name in ("mine", "still"):
        assert estate.delete(kind, name, ROOT).status == 200

    def is_closed():
        return names.CLOSED_AT in (estate.see(CRD, crd)["metadata"].get("annotations") or {})

    def refusal():
        answer = estate.application(kind, ROOT, unique("late"))
        return answer.message if answer.status == 422 else ""

    estate.until(is_closed, "the kind is closed")
    late = estate.until(refusal, "nothing more can be made")
    assert "its ApplicationDefinition is being deleted" in late
    for each in estate.listed(kind, ROOT):
        # Made before the rule was in force: it is kept, can be changed, and keeps its kind.
        name = each["metadata"]["name"]
        assert estate.patch(kind, name, {"spec": {"replicas": 2}}, ROOT).status == 200
        assert estate.delete(kind, name, ROOT).status == 200
    estate.until(lambda: estate.see(CRD, crd) is None, "the kind is gone")
    estate.until(lambda: estate.see(names.DEFINITION_KIND, kind.lower()) is None, "and its definition")
