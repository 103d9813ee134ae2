"""Users of a test control plane and their RBAC rules."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nodeyard.testing.rest import Rest
from nodeyard.testing.wait import until

RBAC = "rbac.authorization.k8s.io"


def grant(rest: Rest, user: str, rules: Sequence[dict[str, Any]], namespace: str | None) -> None:
    """Replace the RBAC rules of a user, in one namespace or cluster-wide, and wait until they are in force."""
    scope = "Role" if namespace else "ClusterRole"
    metadata = {"name": f"nodeyard-testing:{user}", **({"namespace": namespace} if namespace else {})}
    api = {"apiVersion": f"{RBAC}/v1"}
    rest.replace_or_create({**api, "kind": scope, "metadata": metadata, "rules": list(rules)})
    binding = {
        **api,
        "kind": f"{scope}Binding",
        "metadata": metadata,
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        "roleRef": {"apiGroup": RBAC, "kind": scope, "name": metadata["name"]},
    }
    rest.replace_or_create(binding)
    # kube-apiserver learns of new roles by a watch, a moment later.
    until(lambda: all(_is_allowed(rest, user, rule, namespace or "") for rule in rules), f"{user} has its rights")


def _is_allowed(rest: Rest, user: str, rule: Mapping[str, Any], namespace: str) -> bool:
    """Check the first request that a rule allows."""
    spec: dict[str, Any] = {"user": user, "groups": ["system:authenticated"]}
    if rule.get("resources"):
        resource, _, subresource = rule["resources"][0].partition("/")
        spec["resourceAttributes"] = {
            "group": rule["apiGroups"][0],
            "resource": resource,
            "subresource": subresource,
            "verb": rule["verbs"][0],
            "namespace": namespace,
            "name": rule.get("resourceNames", [""])[0],
        }
    else:
        spec["nonResourceAttributes"] = {"path": rule["nonResourceURLs"][0], "verb": rule["verbs"][0]}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    return bool(rest.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])


def token_table(tokens: Mapping[str, tuple[str, Iterable[str]]]) -> str:
    """Return kube-apiserver's static token file: token, user, uid, groups."""
    table = io.StringIO()
    writer = csv.writer(table)
    for token, (user, groups) in tokens.items():
        writer.writerow([token, user, user, ",".join(groups)])
    return table.getvalue()


def file_name(user: str) -> str:
    """Return a unique file name for a user such as `system:node:n1`."""
    readable = re.sub(r"[^A-Za-z0-9.@-]", "_", user)
    return readable if readable == user else f"{readable}-{hashlib.sha256(user.encode()).hexdigest()[:8]}"
