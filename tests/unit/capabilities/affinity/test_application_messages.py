"""Texts about definitions, applications and releases name the object, the value and the remedy."""

import pytest

from nodeyard.capabilities.affinity import names
from nodeyard.capabilities.affinity.messages.applications import (
    ChooseAllowedClass,
    ClassChanged,
    ClassMissing,
    ClassNotAllowed,
    ClassRemoved,
    ClassRequired,
    ClassWithdrawn,
    DefaultUnusable,
    ReleaseConflict,
    ReservedKey,
)
from nodeyard.capabilities.affinity.messages.definitions import DefinitionInUse
from nodeyard.plan.model import ObjectRef

DB = ObjectRef(api_version=names.APPS_API_VERSION, kind="Postgres", namespace="tenant-acme", name="db")
DEFINITION = ObjectRef(api_version=names.API_VERSION, kind=names.DEFINITION_KIND, name="postgres")
TENANT = {"tenant": "acme", "allowed": ("dc1", "dc2")}
NOTHING = {"tenant": "acme", "allowed": ()}

SAID = [
    (ClassMissing(object=DB, affinity_class="dc1"),
     'AffinityClass "dc1" not found: Postgres tenant-acme/db needs it. Create the class, or set '
     "spec.affinityClass to another"),
    (ClassNotAllowed(object=DB, affinity_class="dc3", **TENANT),
     'Postgres tenant-acme/db may not use AffinityClass "dc3": tenant acme allows dc1, dc2. Set spec.affinityClass to '
     "an allowed class, or add it to spec.allowedAffinityClasses of tenant acme"),
    (ClassNotAllowed(object=DB, affinity_class="dc3", allow_in=("acme", "web"), tenant="web", allowed=("dc1",)),
     'Postgres tenant-acme/db may not use AffinityClass "dc3": tenant web allows dc1. Set spec.affinityClass to an '
     "allowed class, or add it to spec.allowedAffinityClasses of tenants acme, then web"),
    (ClassMissing(object=DB, affinity_class="dc1", is_only=True),
     'AffinityClass "dc1" not found: Postgres tenant-acme/db needs it. Create the class'),
    (ClassMissing(object=DB, affinity_class="dc1", is_only=True, is_deleting=True),
     'AffinityClass "dc1" is being deleted: Postgres tenant-acme/db needs it. Create it again once it is gone'),
    (ClassChanged(object=DB, affinity_class="dc1", previous="dc2"),
     'Changes Postgres tenant-acme/db from AffinityClass "dc2" to AffinityClass "dc1": pods of both are admitted until '
     "its release is ready"),
    (ClassRemoved(object=DB),
     "Removes the class of Postgres tenant-acme/db: its pods now follow spec.unownedPods of its tenants"),
    (ReservedKey(object=DB, keys=["_cluster"]),
     "spec of Postgres tenant-acme/db has _cluster: keys that begin with '_' are reserved for the platform. Remove "
     "them"),
    (ReleaseConflict(object=DB, release="postgres-db", of="Redis db"),
     "HelmRelease tenant-acme/postgres-db already exists and belongs to Redis db: Postgres tenant-acme/db cannot be "
     "released. Choose another name, or delete that HelmRelease"),
    (DefinitionInUse(object=DEFINITION, kind="Postgres", applications=1, users=["tenant-acme/db"]),
     "ApplicationDefinition postgres is in use by 1 application of kind Postgres (tenant-acme/db): delete them first, "
     "deleting the CRD would delete them all"),
]  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [
        ClassRequired(object=DB, **NOTHING),
        ClassRequired(object=DB, default="dc1", **NOTHING),
        ClassNotAllowed(object=DB, affinity_class="dc1", **NOTHING),
        ClassWithdrawn(object=DB, **NOTHING),
        ClassWithdrawn(object=DB, affinity_class="dc1", **NOTHING),
        DefaultUnusable(object=DB, affinity_class="dc1", error="no class is allowed", **NOTHING),
        ChooseAllowedClass(**NOTHING),
    ],
)
def test_no_text_suggests_a_class_where_none_is_allowed(message):
    said = message.text()

    assert "an allowed class" not in said
    assert "one of " not in said
    assert "tenant acme" in said


@pytest.mark.parametrize(("message", "said"), SAID, ids=[each[0].reason for each in SAID])
def test_a_text_reads_as_it_should(message, said):
    assert message.text() == said
