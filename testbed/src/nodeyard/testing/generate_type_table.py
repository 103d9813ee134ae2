"""Generates the table of built-in types from a real Kubernetes: the first step of `make builtins`.

The server's OpenAPI v3 gives the fields of each type and how they merge. How Go encodes an empty field (omitted, zero
value, or kept as a pointer) comes from the struct tags in the Go modules of the server. Descriptions are left out.

The result is one line per definition, so that a new Kubernetes version shows up as a readable diff.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from nodeyard.apiserver.kinds import table
from nodeyard.kube.json import Object
from nodeyard.testing import assets, golang
from nodeyard.testing.controlplane import ControlPlane

REF = "#/components/schemas/"

# The definitions from which the table is closed over references.
ROOTS: Mapping[str, tuple[str, ...]] = {
    "api/v1": (
        "io.k8s.api.core.v1.Binding",
        "io.k8s.api.core.v1.ConfigMap",
        "io.k8s.api.core.v1.Event",
        "io.k8s.api.core.v1.Namespace",
        "io.k8s.api.core.v1.Node",
        "io.k8s.api.core.v1.Pod",
        "io.k8s.api.core.v1.PodTemplate",
        "io.k8s.api.core.v1.Secret",
        "io.k8s.api.core.v1.Service",
        "io.k8s.api.core.v1.ServiceAccount",
        "io.k8s.api.authentication.v1.TokenRequest",
        "io.k8s.api.autoscaling.v1.Scale",
        "io.k8s.api.policy.v1.Eviction",
        "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    ),
    "apis/admissionregistration.k8s.io/v1": (
        "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
        "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    ),
    "apis/apiextensions.k8s.io/v1": (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    ),
    "apis/apiregistration.k8s.io/v1": ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",),
    "apis/apps/v1": (
        "io.k8s.api.apps.v1.ControllerRevision",
        "io.k8s.api.apps.v1.DaemonSet",
        "io.k8s.api.apps.v1.Deployment",
        "io.k8s.api.apps.v1.ReplicaSet",
        "io.k8s.api.apps.v1.StatefulSet",
    ),
    "apis/authentication.k8s.io/v1": (
        "io.k8s.api.authentication.v1.SelfSubjectReview",
        "io.k8s.api.authentication.v1.TokenReview",
    ),
    "apis/authorization.k8s.io/v1": (
        "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
        "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
        "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
        "io.k8s.api.authorization.v1.SubjectAccessReview",
    ),
    "apis/batch/v1": ("io.k8s.api.batch.v1.CronJob", "io.k8s.api.batch.v1.Job"),
    "apis/coordination.k8s.io/v1": ("io.k8s.api.coordination.v1.Lease",),
    "apis/events.k8s.io/v1": ("io.k8s.api.events.v1.Event",),
    "apis/policy/v1": ("io.k8s.api.policy.v1.PodDisruptionBudget",),
    "apis/rbac.authorization.k8s.io/v1": (
        "io.k8s.api.rbac.v1.ClusterRole",
        "io.k8s.api.rbac.v1.ClusterRoleBinding",
        "io.k8s.api.rbac.v1.Role",
        "io.k8s.api.rbac.v1.RoleBinding",
    ),
}

# Where the Go package of a definition's prefix lies: module and directory.
_PACKAGES = (
    ("io.k8s.apimachinery.pkg.", "apimachinery", "pkg/"),
    ("io.k8s.apiextensions-apiserver.pkg.", "apiextensions-apiserver", "pkg/"),
    ("io.k8s.kube-aggregator.pkg.", "kube-aggregator", "pkg/"),
    ("io.k8s.api.", "api", ""),
)
# Definitions that stand for a Go type with its own JSON form: nothing in their struct is a field.
_OPAQUE = frozenset(
    (
        "FieldsV1", "IntOrString", "JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool",
        "JSONSchemaPropsOrStringArray", "MicroTime", "Quantity", "RawExtension", "Time",
    )
)  # fmt: skip

_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^\t(?:\w+\s+)?(\S+)\s+`[^`]*json:"([^"]*)"', re.MULTILINE)

# How packages are called in the sources, where that is not how Go prints them.
_PRINTED = {"metav1": "v1", "corev1": "v1"}
_BASIC = {"string", "bool", "int", "int32", "int64", "float32", "float64", "byte"}

Fetch = Callable[[str], Object]
Structs = Mapping[str, str]
"""Text between the braces of each struct, by name."""
Sources = Callable[[str], Structs]


@dataclass(frozen=True, slots=True)
class Tag:
    """A field of a Go struct, from its tag."""

    name: str
    go_type: str
    options: list[str]
    inlined: str
    """The embedded struct that the field comes from."""

    @property
    def is_pointer(self) -> bool:
        return self.go_type.startswith("*")

    @property
    def printed(self) -> str:
        """Return the type as in decoding errors: `[]v1.Container`."""
        bare = self.go_type.removeprefix("*").replace("[]byte", "[]uint8")
        element = bare.rpartition("]")[2].removeprefix("*")
        prefix = bare[: len(bare) - len(element)].removesuffix("*")
        package, dot, name = element.rpartition(".")
        if not dot:
            return prefix + (name if name in _BASIC or name == "uint8" else f"v1.{name}")
        return f"{prefix}{_PRINTED.get(package, package)}.{name}"


def derive(fetch: Fetch, sources: Sources) -> dict[str, Object]:
    """Return the table by definition; `fetch` reads /openapi/v3/..., `sources` the structs of a Go package."""
    served = published(fetch)
    return {name: facts | _go_facts(name, facts, sources) for name, facts in served.items()}


def published(fetch: Fetch) -> dict[str, Object]:
    """Return the part of the table that comes from the server."""
    served: dict[str, Object] = {}
    for path in ROOTS:
        for name, schema in fetch(f"/openapi/v3/{path}")["components"]["schemas"].items():
            # Documents differ only in the group versions they list for options and events: the first, core, is kept.
            served.setdefault(name, schema)
    roots = [name for names in ROOTS.values() for name in names]
    return {name: _facts(served[name]) for name in sorted(closure(served, roots))}


def closure(definitions: Mapping[str, Object], roots: Iterable[str]) -> set[str]:
    """Return these definitions and all that they refer to."""
    found: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending.extend(_references(definitions[name]))
    return found


def _references(schema: Any) -> Iterable[str]:
    if isinstance(schema, list):
        for entry in schema:
            yield from _references(entry)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].removeprefix(REF)
        for entry in schema.values():
            yield from _references(entry)


def _go_facts(name: str, facts: Object, sources: Sources) -> Object:
    struct = name.rpartition(".")[2]
    if "properties" not in facts or struct in _OPAQUE:
        return {}
    found: Object = {key: [] for key in ("always", "pointers")} | {key: {} for key in ("inlined", "go")}
    for tag in sorted(_tags(struct, sources(name)), key=lambda tag: tag.name):
        prop = facts["properties"].get(tag.name)
        if prop is None:
            continue
        if _is_always_written(tag, prop):
            found["always"].append(tag.name)
        if tag.is_pointer:
            found["pointers"].append(tag.name)
        if tag.inlined:
            found["inlined"][tag.name] = tag.inlined
        if tag.printed != table.go_type(prop):
            found["go"][tag.name] = tag.printed
    return {key: value for key, value in found.items() if value}


def _facts(schema: Any) -> Any:
    """Return the schema without descriptions and with short references."""
    if isinstance(schema, list):
        return [_facts(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    facts: Object = {}
    for key, value in schema.items():
        if key == "properties":
            facts[key] = {name: _facts(entry) for name, entry in sorted(value.items())}
        elif key == "allOf" and len(value) == 1 and set(value[0]) == {"$ref"}:
            facts["ref"] = value[0]["$ref"].removeprefix(REF)
        elif key == "$ref":
            facts["$ref"] = value.removeprefix(REF)
        elif key != "description":
            facts[key] = value if key == "default" else _facts(value)
    return facts


def _is_always_written(tag: Tag, prop: Object) -> bool:
    """`omitempty` has no effect on a struct that is not a pointer; `omitzero` has."""
    if "omitzero" in tag.options:
        return False
    if "omitempty" not in tag.options:
        return True
    return ("ref" in prop or "$ref" in prop) and not tag.go_type.startswith(("*", "[", "map"))


def _tags(struct: str, structs: Structs, inlined: str = "") -> Iterator[Tag]:
    for go_type, tag in _FIELD.findall(structs[struct]):
        name, *options = tag.split(",")
        if name:
            yield Tag(name, go_type, options, inlined)
        elif "TypeMeta" not in go_type:
            yield from _tags(go_type, structs, go_type)


def go_sources(folder: Callable[[str], Path]) -> Sources:
    """Reads struct bodies by package; `folder` maps a module to its source folder."""
    packages: dict[Path, Structs] = {}

    def structs(definition: str) -> Structs:
        prefix, module, below = next(entry for entry in _PACKAGES if definition.startswith(entry[0]))
        parts = definition.removeprefix(prefix).split(".")[:-1]
        package = folder(module) / below / "/".join(parts)
        if package not in packages:
            text = "".join(path.read_text() for path in sorted(package.glob("*types*.go")))
            packages[package] = dict(_STRUCT.findall(text))
        return packages[package]

    return structs


def module_folders(go: golang.Go, kubernetes: str) -> Callable[[str], Path]:
    """Return a function that downloads a published module of a Kubernetes version; v1.36.4 is v0.36.4."""
    version = kubernetes.replace("v1.", "v0.", 1)
    place = assets.root() / "modules"
    place.mkdir(parents=True, exist_ok=True)
    return cache(lambda module: Path(go.download(f"k8s.io/{module}", version, place)["Dir"]))


def render(definitions: Mapping[str, Object], version: str) -> str:
    encode = msgspec.json.Encoder(order="sorted").encode
    lines = [f'"{name}":{encode(facts).decode()}' for name, facts in definitions.items()]
    return f'{{"kubernetes":"{version}","definitions":{{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> int:
    go = golang.find(lambda text: print(text, file=sys.stderr))
    with ControlPlane() as plane:

        def fetch(path: str) -> Object:
            answer: Object = plane.rest.call("GET", path)
            return answer

        version = fetch("/version")["gitVersion"]
        text = render(derive(fetch, go_sources(module_folders(go, version))), version)
    table.PATH.write_text(text)
    print(f"{table.PATH.name}: {len(text)} bytes from Kubernetes {version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
