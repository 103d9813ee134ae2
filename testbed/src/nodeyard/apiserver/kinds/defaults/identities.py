"""Defaults of role bindings."""

from __future__ import annotations

from nodeyard.apiserver.kinds.edits import fill
from nodeyard.kube.json import Object

_RBAC = "io.k8s.api.rbac.v1."
_GROUP = "rbac.authorization.k8s.io"


def role_binding(obj: Object) -> Object:
    reference = obj.get("roleRef") or {}
    return obj if reference.get("apiGroup") else {**obj, "roleRef": {**reference, "apiGroup": _GROUP}}


def subject(obj: Object) -> Object:
    return fill(obj, {"apiGroup": _GROUP}) if obj.get("kind") in ("User", "Group") else obj


DEFAULTS = {
    _RBAC + "ClusterRoleBinding": role_binding,
    _RBAC + "RoleBinding": role_binding,
    _RBAC + "Subject": subject,
}
