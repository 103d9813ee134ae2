"""Sentences about definitions, applications and releases: they name the object, the value and what to do."""

import pytest

from nodeyard.capabilities.affinity.messages import text
from nodeyard.capabilities.affinity.reasons import Reason
from nodeyard.capabilities.affinity.sentences.applications import SENTENCES

APPLICATION = {"kind": "Postgres", "namespace": "tenant-acme", "name": "db", "release": "postgres-db", "class": "dc1"}
TENANT = {"tenant": "acme", "allowed": ["dc1", "dc2"]}
DEFINITION = {"definition": "postgres", "kind": "Postgres", "crd": "postgreses.apps.cozystack.io"}


@pytest.mark.parametrize("reason", SENTENCES, ids=lambda reason: reason.value)
@pytest.mark.parametrize(
    "facts", [{}, {**APPLICATION, **TENANT}, DEFINITION], ids=["bare", "application", "definition"]
)
def test_every_reason_has_a_sentence_whatever_facts_there_are(reason, facts):
    said = text(reason, facts)
    assert len(said.split()) > 2
    assert "None" not in said


SAID = [
    (Reason.CLASS_MISSING, APPLICATION,
     'AffinityClass "dc1" not found: Postgres tenant-acme/db names or is given it. Create the class, or set '
     "spec.affinityClass to another"),
    (Reason.CLASS_NOT_ALLOWED, {**APPLICATION, **TENANT, "class": "dc3"},
     'Postgres tenant-acme/db cannot have AffinityClass "dc3": tenant acme allows dc1, dc2. Set spec.affinityClass to '
     "one that is allowed, or have it added to allowedAffinityClasses of tenant acme"),
    (Reason.CLASS_CHANGED, {**APPLICATION, "previous": "dc2"},
     'Postgres tenant-acme/db goes from AffinityClass "dc2" to AffinityClass "dc1": pods of both are admitted until '
     "its release is ready"),
    (Reason.CLASS_CHANGED, {**APPLICATION, "class": ""},
     "Postgres tenant-acme/db has no class any more: its pods are not checked"),
    (Reason.RESERVED_KEY, {**APPLICATION, "keys": ["_cluster"]},
     "spec of Postgres tenant-acme/db has _cluster: keys that begin with '_' are the platform's. Take them out"),
    (Reason.NAME_CONFLICT, {**APPLICATION, "of": "Redis db"},
     "HelmRelease tenant-acme/postgres-db exists and is of Redis db: Postgres tenant-acme/db cannot be released under "
     "this name. Choose another name, or delete that release"),
    (Reason.DEFINITION_IN_USE, {**DEFINITION, "applications": 1, "users": ["tenant-acme/db"]},
     "ApplicationDefinition postgres is in use by 1 application of kind Postgres (tenant-acme/db): delete them first, "
     "since their kind goes with it"),
]  # fmt: skip


@pytest.mark.parametrize(("reason", "facts", "said"), SAID, ids=[each[0].value for each in SAID])
def test_a_sentence_reads_as_it_should(reason, facts, said):
    assert text(reason, facts) == said
