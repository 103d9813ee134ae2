"""The CRDs of affinity. `validation` has their rules; `planning.definitions` renders the CRDs of applications."""

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
    description="AffinityClass names a set of nodes. Pods of applications that use the class run only on these nodes.",
    namespaced=False,
    short_names=("afc",),
    columns=(
        Column("Enforcement", ".spec.enforcement"),
        Column("Nodes", ".status.nodes", "integer", description="Number of matching nodes."),
        Column(
            "Users", ".status.users", "integer", description="Number of tenants and applications that use the class."
        ),
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
    description="Tenant provides a namespace for applications and restricts which AffinityClasses they may use. Child "
    "tenants may use no others.",
    namespaced=True,
    short_names=("ten",),
    columns=(
        Column("Namespace", ".status.namespace", description="Namespace of the tenant."),
        Column("Default", ".status.defaultAffinityClass", description="Effective default class."),
        Column("Allowed", ".status.allowedAffinityClasses", description="Effective allowed classes."),
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
    description="ApplicationDefinition declares a kind of application: the schema of its spec and its chart.",
    namespaced=False,
    short_names=("appdef",),
    columns=(
        Column("Kind", ".spec.application.kind", description="Kind of the applications."),
        Column("Applications", ".status.applications", "integer", description="Number of applications."),
        _READY,
        _AGE,
        _MESSAGE,
    ),
    overlay=validation.DEFINITION,
)
