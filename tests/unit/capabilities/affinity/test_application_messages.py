"""Texts about definitions, applications and releases name the object, the value and the remedy."""

import pytest

from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.messages.applications import MESSAGES
from nodeyard.capabilities.affinity.reasons import Reason

APPLICATION = {"kind": "Postgres", "namespace": "tenant-acme", "name": "db", "release": "postgres-db", "class": "dc1"}
TENANT = {"tenant": "acme", "allowed": ["dc1", "dc2"]}
DEFINITION = {"definition": "postgres", "kind": "Postgres", "crd": "postgreses.apps.cozystack.io"}


@pytest.mark.parametrize("reason", MESSAGES, ids=lambda reason: reason.value)
@pytest.mark.parametrize(
    "facts", [{}, {**APPLICATION, **TENANT}, DEFINITION], ids=["bare", "application", "definition"]
)
def test_every_reason_renders_whatever_the_facts(reason, facts):
    said = text(reason, facts)
    assert len(said.split()) > 2
    assert "None" not in said


SAID = [
    (Reason.CLASS_MISSING, APPLICATION,
     'AffinityClass "dc1" not found: Postgres tenant-acme/db needs it. Create the class, or set '
     "spec.affinityClass to another"),
    (Reason.CLASS_NOT_ALLOWED, {**APPLICATION, **TENANT, "class": "dc3"},
     'Postgres tenant-acme/db may not use AffinityClass "dc3": tenant acme allows dc1, dc2. Set spec.affinityClass to '
     "an allowed class, or add it to spec.allowedAffinityClasses of tenant acme"),
    (Reason.CLASS_CHANGED, {**APPLICATION, "previous": "dc2"},
     'Changed Postgres tenant-acme/db from AffinityClass "dc2" to AffinityClass "dc1": pods of both are admitted until '
     "its release is ready"),
    (Reason.CLASS_CHANGED, {**APPLICATION, "class": ""},
     "Removed the class of Postgres tenant-acme/db: its pods now follow spec.unownedPods of its tenants"),
    (Reason.RESERVED_KEY, {**APPLICATION, "keys": ["_cluster"]},
     "spec of Postgres tenant-acme/db has _cluster: keys that begin with '_' are reserved for the platform. Remove "
     "them"),
    (Reason.NAME_CONFLICT, {**APPLICATION, "of": "Redis db"},
     "HelmRelease tenant-acme/postgres-db already exists and belongs to Redis db: Postgres tenant-acme/db cannot be "
     "released. Choose another name, or delete that HelmRelease"),
    (Reason.DEFINITION_IN_USE, {**DEFINITION, "applications": 1, "users": ["tenant-acme/db"]},
     "ApplicationDefinition postgres is in use by 1 application of kind Postgres (tenant-acme/db): delete them first, "
     "deleting the CRD would delete them all"),
]  # fmt: skip


@pytest.mark.parametrize(
    "facts",
    [
        {"class": ""},
        {"class": "", "default": "dc1"},
        {"class": "dc1"},
        {"class": "dc1", "error": "no class is allowed"},
    ],
)
@pytest.mark.parametrize(
    "reason", [Reason.CLASS_NOT_ALLOWED, Reason.CLASS_WITHDRAWN, Reason.DEFAULT_NOT_ALLOWED, Reason.CHOOSE_ALLOWED]
)
def test_where_no_class_is_allowed_nobody_is_told_to_choose_one(reason, facts):
    said = text(reason, {**APPLICATION, **TENANT, "allowed": [], **facts})

    assert "an allowed class" not in said
    assert "one of " not in said
    assert "tenant acme" in said


@pytest.mark.parametrize(("reason", "facts", "said"), SAID, ids=[each[0].value for each in SAID])
def test_a_text_reads_as_it_should(reason, facts, said):
    assert text(reason, facts) == said
