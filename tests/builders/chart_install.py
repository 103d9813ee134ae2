"""The operator's two charts as helm would install them.

objects = installed(capabilities=["spares"])     the objects that the operator's chart renders
one(objects, "Deployment")                       the only object of this kind or name
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders import charts

from nodeyard.app.manifests import ACCOUNT, CHARTS
from nodeyard.kube.json import Object
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime import rbac

OPERATOR = charts.ROOT / CHARTS / "nodeyard"
DEFINITIONS = charts.ROOT / CHARTS / "nodeyard-crds"
USER = rbac.username(ACCOUNT)

CNPG = {"apiGroup": "postgresql.cnpg.io", "resources": ["clusters"]}
STORAGE = {"apiGroup": "storage.example.com", "profiles": ["storageprofiles"], "objects": ["storageagents"]}
EVERYTHING: dict[str, Any] = {
    "image": {"repository": "registry.example.com/nodeyard", "tag": "1.2.3", "digest": f"sha256:{'a1' * 32}"},
    "imagePullSecrets": [{"name": "registry"}],
    "observe": True,
    "takeOver": True,
    "extraArgs": ["--install-crds"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"}],
    "labels": {"department": "fleet"},
    "affinity": {"ownerKinds": [CNPG]},
    "profiles": {"serviceKinds": [STORAGE]},
    "namespaceGrants": {"profiles": {"configuration": ["default"], "secrets": ["default"]}},
    "policies": ["spares", "affinity"],
    "webhooks": {
        "certificateSecret": "own-certificates",
        "clientCASecret": "api-servers",
        "clientNames": ["kube-apiserver"],
    },
    "dashboard": {"enabled": True, "certificateSecret": "page", "clientCASecret": "people"},
    "networkPolicy": {
        "dashboardFrom": [{"ipBlock": {"cidr": "192.0.2.0/24"}}],
        "webhooksFrom": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}],
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "watchers"}}}],
    },
    "serviceAccount": {"annotations": {"example.com/role": "nodeyard"}},
    "pod": {
        "labels": {"team": "fleet"},
        "annotations": {"example.com/scrape": "true"},
        "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
        "affinity": {"nodeAffinity": charts.required(charts.term(zone=["dc1"]))},
        "priorityClassName": "system-cluster-critical",
    },
}
"""Every value that changes what is rendered."""


def installed(chart: Path = OPERATOR, *, namespace: str = NAMESPACE, **values: Any) -> list[Object]:
    return charts.read_all(charts.run("template", "nodeyard", chart, "--namespace", namespace, values=values))


def one(objects: list[Object], kind: str, name: str = "") -> Object:
    (found,) = (each for each in objects if each["kind"] == kind and name in ("", each["metadata"]["name"]))
    return found


def container(objects: list[Object], deployment: str = "") -> Object:
    (found,) = one(objects, "Deployment", deployment)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def schema(chart: Path) -> Any:
    return json.loads((chart / "values.schema.json").read_text())
