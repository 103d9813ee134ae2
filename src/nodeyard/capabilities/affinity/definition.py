"""The CRDs of affinity. What they check is in `validation`; those of applications are made from their definitions."""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.affinity import names, validation
from nodeyard.capabilities.affinity.types import AffinityClass, ApplicationDefinition, Tenant
from nodeyard.schema.crd import Column, Definition

_READY: Final = Column("Ready", '.status.conditions[?(@.type=="Ready")].status')
_MESSAGE: Final = Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1)
_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

AFFINITY_CLASS: Final = Definition(
    type=AffinityClass,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.CLASS_KIND,
    plural=names.CLASS_PLURAL,
    description="An AffinityClass is a place with a name: applications that choose it run on its nodes only.",
    namespaced=False,
    short_names=("afc",),
    columns=(
        Column("Enforcement", ".spec.enforcement"),
        Column("Nodes", ".status.nodes", "integer", description="Nodes that are in it."),
        Column("Users", ".status.users", "integer", description="Tenants and applications that name it."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.CLASS,
)
TENANT: Final = Definition(
    type=Tenant,
    group=names.APPS_GROUP,
    version=names.VERSION,
    kind=names.TENANT_KIND,
    plural=names.TENANT_PLURAL,
    description="A Tenant has a namespace for its applications, and says which classes they may be placed by. Tenants "
    "within it may use no others.",
    namespaced=True,
    short_names=("ten",),
    columns=(
        Column("Namespace", ".status.namespace", description="The tenant's own namespace."),
        Column("Default", ".status.defaultAffinityClass", description="The class of applications that name none."),
        Column("Allowed", ".status.allowedAffinityClasses", description="The classes that applications may name."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.TENANT,
)
APPLICATION_DEFINITION: Final = Definition(
    type=ApplicationDefinition,
    group=names.GROUP,
    version=names.VERSION,
    kind=names.DEFINITION_KIND,
    plural=names.DEFINITION_PLURAL,
    description="An ApplicationDefinition declares a kind of application: what its spec looks like, and the chart that "
    "is released for it.",
    namespaced=False,
    short_names=("appdef",),
    columns=(
        Column("Kind", ".spec.application.kind", description="The kind that is served."),
        Column("Applications", ".status.applications", "integer", description="How many of them there are."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.DEFINITION,
)
