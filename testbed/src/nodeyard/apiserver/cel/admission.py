"""The declared types of admission variables: `request` and `namespaceObject`. `object` and `oldObject` are dynamic."""

from __future__ import annotations

from nodeyard.apiserver.cel.types import (
    BOOL,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_type,
)


class _Record:
    def __init__(self, fields: dict[str, Type]) -> None:
        self._fields = fields

    def find(self, name: str) -> Type | None:
        return self._fields.get(name)


def record(name: str, /, **fields: Type) -> Type:
    """Declare an object type with these fields."""
    return object_type(f"kubernetes.{name}", _Record(fields))


_STRINGS = list_of(STRING)
_KIND = record("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = record("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
_USER = record("UserInfo", username=STRING, uid=STRING, groups=_STRINGS, extra=map_of(STRING, _STRINGS))

REQUEST = record(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)

_METADATA = record(
    "NamespaceMetadata",
    name=STRING,
    generateName=STRING,
    namespace=STRING,
    labels=map_of(STRING, STRING),
    annotations=map_of(STRING, STRING),
    UID=STRING,
    creationTimestamp=TIMESTAMP,
    deletionGracePeriodSeconds=INT,
    deletionTimestamp=TIMESTAMP,
    generation=INT,
    resourceVersion=STRING,
    finalizers=_STRINGS,
)
_CONDITION = record(
    "NamespaceCondition",
    status=STRING,
    type=STRING,
    lastTransitionTime=TIMESTAMP,
    message=STRING,
    reason=STRING,
)
NAMESPACE = record(
    "Namespace",
    metadata=_METADATA,
    spec=record("NamespaceSpec", finalizers=_STRINGS),
    status=record("NamespaceStatus", conditions=list_of(_CONDITION), phase=STRING),
)
