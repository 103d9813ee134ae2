"""Without webhooks: conditions report what a webhook would deny, and no application is lost."""

from datetime import timedelta

import pytest
from tests.builders.affinity_env import ROOT, run_affinity_env, unique

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.controller import AFFINITY
from nodeyard.capabilities.affinity.planning import definitions

CRD = "CustomResourceDefinition"


@pytest.fixture(scope="module")
def affinity(api, affinity_crds):
    with run_affinity_env(api) as affinity:
        affinity.operator = affinity.operators(AFFINITY)
        yield affinity


def change(affinity, kind, **spec):
    """Change the spec of an object of a kind that a definition declares."""
    answer = affinity.patch(names.DEFINITION_KIND, kind.lower(), {"spec": spec})
    assert answer.status == 200, answer.content


def test_an_application_reports_that_its_pods_are_not_checked(affinity):
    affinity.definition("Ledger")
    name = affinity.affinity_class(unique("class"), nodeSelector={"a": "b"})
    home = affinity.tenant(unique("home"), defaultAffinityClass=name)
    affinity.application_release("Ledger", home, "books")

    condition = affinity.wait_for_condition("Ledger", "books", "PlacementEnforced", "WebhooksNotRegistered", home)

    assert condition["status"] == "False"


def test_a_renamed_definition_keeps_its_kind_until_the_name_is_restored(affinity):
    kind = affinity.definition(unique("Diary").title())
    affinity.application_release(kind, ROOT, "mine")
    served = f"{affinity.plurals[kind][1]}.{names.APPS_GROUP}"

    change(affinity, kind, application={"plural": "journals"})

    condition = affinity.wait_for_condition(names.DEFINITION_KIND, kind.lower(), "Ready", "InvalidDefinition")
    assert f"it is already served as {served}" in condition["message"]
    assert affinity.get(CRD, f"journals.{names.APPS_GROUP}") is None
    assert affinity.get(kind, "mine", ROOT) is not None
    change(affinity, kind, application={"plural": affinity.plurals[kind][1]})
    affinity.wait_for_condition(names.DEFINITION_KIND, kind.lower(), "Ready", "Served")


def test_an_application_is_not_installed_a_second_time_under_another_prefix(affinity):
    kind = affinity.definition(unique("Album").title())
    prefix = f"{kind.lower()}-"
    affinity.application_release(kind, ROOT, "mine")

    change(affinity, kind, release={"prefix": "new-"})

    condition = affinity.wait_for_condition(kind, "mine", "Ready", "ReleasedUnderAnotherName", ROOT)
    assert f"HelmRelease {ROOT}/{prefix}mine" in condition["message"]
    assert affinity.get(names.RELEASE_KIND, "new-mine", ROOT) is None
    change(affinity, kind, release={"prefix": prefix})
    affinity.wait_for_condition(kind, "mine", "Ready", "ReleasePending", ROOT)


def test_a_kind_is_deleted_only_when_no_object_remains_and_none_can_be_created(affinity, monkeypatch):
    monkeypatch.setattr(definitions, "SETTLE", timedelta(seconds=20))
    kind = affinity.definition(unique("Atlas").title())
    affinity.application_release(kind, ROOT, "mine")
    crd = f"{affinity.plurals[kind][1]}.{names.APPS_GROUP}"

    assert affinity.delete(names.DEFINITION_KIND, kind.lower()).status == 200
    affinity.wait_for_condition(names.DEFINITION_KIND, kind.lower(), "Ready", "DefinitionInUse")
    assert affinity.application(kind, ROOT, "still").status == 201
    for name in ("mine", "still"):
        assert affinity.delete(kind, name, ROOT).status == 200

    def is_closed():
        return names.CLOSED_AT in (affinity.get(CRD, crd)["metadata"].get("annotations") or {})

    def refusal():
        answer = affinity.application(kind, ROOT, unique("late"))
        return answer.message if answer.status == 422 else ""

    affinity.wait_until(is_closed, "the kind is closed")
    late = affinity.wait_until(refusal, "nothing more can be made")
    assert "its ApplicationDefinition is being deleted" in late
    for each in affinity.list(kind, ROOT):
        # Created before the rule was in force: it can be changed, and its kind is kept.
        name = each["metadata"]["name"]
        assert affinity.patch(kind, name, {"spec": {"replicas": 2}}, ROOT).status == 200
        assert affinity.delete(kind, name, ROOT).status == 200
    affinity.wait_until(lambda: affinity.get(CRD, crd) is None, "the kind is gone")
    affinity.wait_until(lambda: affinity.get(names.DEFINITION_KIND, kind.lower()) is None, "and its definition")
