"""Validation of CustomResourceDefinitions, in the words of kube-apiserver.

If all versions share one schema, subresources or columns, kube-apiserver keeps them once, at `spec.validation`,
`spec.subresources` and `spec.additionalPrinterColumns`; its messages name those paths, and so do these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodeyard.apiserver.cel.rules import rule_faults
from nodeyard.apiserver.crds.schema import definition_faults
from nodeyard.apiserver.jsonpath import JsonPath, JsonPathError
from nodeyard.kube import fields
from nodeyard.kube.fields import FieldError, FieldErrorType
from nodeyard.kube.json import Json, Object
from nodeyard.kube.names import dns_1035_faults, subdomain_faults

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVAL = "api-approved.kubernetes.io"


def faults(definition: Object) -> list[FieldError]:
    spec = definition.get("spec") or {}
    return [
        *_name_faults(definition, spec),
        *_group_faults(spec),
        *_scope_faults(spec),
        *_version_faults(spec),
        *_names_faults(spec.get("names") or {}),
        *_subresource_faults(spec),
        *_column_faults(spec),
        *_selectable_faults(spec),
        *_conversion_faults(spec),
        *_preserve_faults(spec),
        *_approval_faults(definition, spec),
        *_stored_faults(definition, spec),
    ]


def update_faults(new: Object, old: Object) -> list[FieldError]:
    """Validate an update: established definitions keep group, scope, kind and plural."""
    found = faults(new)
    conditions = (old.get("status") or {}).get("conditions") or ()
    if not any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        return found
    for path in (("group",), ("scope",), ("names", "kind"), ("names", "plural")):
        before, after = _at(old["spec"], path), _at(new["spec"], path)
        if before != after:
            found.append(fields.invalid(".".join(("spec", *path)), after, "field is immutable"))
    return found


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for name in path:
        value = value.get(name)
    return value


def _label_faults(path: str, value: Json, *, is_mixed_case: bool = False) -> list[FieldError]:
    if not value:
        return [fields.required(path)]
    found = ",".join(dns_1035_faults(value.lower() if is_mixed_case else value))
    if not found:
        return []
    words = f"may have mixed case, but should otherwise match: {found}" if is_mixed_case else found
    return [fields.invalid(path, value, words)]


def _name_faults(definition: Object, spec: Object) -> Iterator[FieldError]:
    name = definition["metadata"].get("name", "")
    plural, group = (spec.get("names") or {}).get("plural", ""), spec.get("group", "")
    if name != f"{plural}.{group}":
        yield fields.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _group_faults(spec: Object) -> Iterator[FieldError]:
    group = spec.get("group", "")
    if not group:
        yield fields.required("spec.group")
    elif subdomain_faults(group):
        yield fields.invalid("spec.group", group, "; ".join(subdomain_faults(group)))
    elif "." not in group:
        yield fields.invalid("spec.group", group, "should be a domain with at least one dot")


def _scope_faults(spec: Object) -> Iterator[FieldError]:
    scope = spec.get("scope", "")
    if not scope:
        yield fields.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield fields.not_supported("spec.scope", scope, ["Cluster", "Namespaced"])


def _version_faults(spec: Object) -> Iterator[FieldError]:
    versions = spec.get("versions") or []
    for position, version in enumerate(versions):
        path = f"spec.versions[{position}]"
        openapi = (version.get("schema") or {}).get("openAPIV3Schema")
        if openapi is None:
            yield fields.required(f"{path}.schema.openAPIV3Schema")
        else:
            has_status = "status" in (version.get("subresources") or {})
            yield from _schema_faults(openapi, _schema_path(spec, position), has_status=has_status)
        yield from _label_faults(f"{path}.name", version.get("name"))
        if version.get("deprecationWarning") and not version.get("deprecated"):
            yield fields.invalid(
                f"{path}.deprecationWarning", version["deprecationWarning"], "can only be set for deprecated versions"
            )
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield fields.invalid("spec.versions", versions, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        yield fields.invalid(
            "spec.versions", versions or None, "must have exactly one version marked as storage version"
        )


def _is_shared(spec: Object, name: str) -> bool:
    """True if all versions have the same value."""
    given = [version.get(name) for version in spec.get("versions") or ()]
    return all(each == given[0] for each in given)


def _schema_path(spec: Object, position: int) -> str:
    if _is_shared(spec, "schema"):
        return "spec.validation.openAPIV3Schema"
    return f"spec.versions[{position}].schema.openAPIV3Schema"


def _schema_faults(openapi: Object, path: str, *, has_status: bool) -> list[FieldError]:
    return definition_faults(openapi, path, has_status=has_status, rule_faults=rule_faults(path))


def _names_faults(names: Object) -> Iterator[FieldError]:
    yield from _label_faults("spec.names.plural", names.get("plural"))
    yield from _label_faults("spec.names.singular", names.get("singular"))
    yield from _label_faults("spec.names.kind", names.get("kind"), is_mixed_case=True)
    yield from _label_faults("spec.names.listKind", names.get("listKind"), is_mixed_case=True)
    for name in ("shortNames", "categories"):
        for position, value in enumerate(names.get(name) or ()):
            yield from _label_faults(f"spec.names.{name}[{position}]", value)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield fields.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _places(spec: Object, name: str) -> Iterator[tuple[str, Json]]:
    """Yield the path and value of a field of each version; once if all have the same."""
    versions = spec.get("versions") or []
    if versions and _is_shared(spec, name):
        yield f"spec.{name}", versions[0].get(name)
        return
    for position, version in enumerate(versions):
        yield f"spec.versions[{position}].{name}", version.get(name)


def _subresource_faults(spec: Object) -> Iterator[FieldError]:
    for path, given in _places(spec, "subresources"):
        scale = (given or {}).get("scale")
        if scale is None:
            continue
        for name, root, is_required in (
            ("specReplicasPath", ".spec.", True),
            ("statusReplicasPath", ".status.", True),
            ("labelSelectorPath", "", False),
        ):
            yield from _scale_path_faults(f"{path}.scale.{name}", scale.get(name), root, is_required)


def _scale_path_faults(path: str, value: Json, root: str, is_required: bool) -> Iterator[FieldError]:
    if not value:
        if is_required:
            yield fields.required(path)
        return
    if not re.fullmatch(r"(\.[A-Za-z_][A-Za-z0-9_-]*)+", value):
        yield fields.invalid(path, value, "must be a simple json path starting with .")
    elif root and not value.startswith(root):
        yield fields.invalid(path, value, f"should be a json path under {root.rstrip('.')}")
    elif not root and not value.startswith((".spec.", ".status.")):
        yield fields.invalid(path, value, "should be a json path under either .status or .spec")


def _column_faults(spec: Object) -> Iterator[FieldError]:
    for path, given in _places(spec, "additionalPrinterColumns"):
        for position, column in enumerate(given or ()):
            yield from _one_column_faults(f"{path}[{position}]", column)


def _one_column_faults(path: str, column: Object) -> Iterator[FieldError]:
    if not column.get("name"):
        yield fields.required(f"{path}.name")
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not column.get("type"):
        yield fields.required(f"{path}.type", types)
    elif column["type"] not in _COLUMN_TYPES:
        yield fields.invalid(f"{path}.type", column["type"], types)
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        yield fields.invalid(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not column.get("jsonPath"):
        yield fields.required(f"{path}.JSONPath")
        return
    try:
        JsonPath(column["jsonPath"])
    except JsonPathError as fault:
        yield fields.invalid(f"{path}.JSONPath", column["jsonPath"], str(fault))


def _selectable_faults(spec: Object) -> Iterator[FieldError]:
    shared = dict(_places(spec, "schema"))
    schemas = list(shared.values())
    for number, (path, given) in enumerate(_places(spec, "selectableFields")):
        openapi = (schemas[min(number, len(schemas) - 1)] or {}).get("openAPIV3Schema") or {}
        for position, entry in enumerate(given or ()):
            where, value = f"{path}[{position}].jsonPath", entry.get("jsonPath", "")
            if not value:
                yield fields.required(where)
            elif _scalar_at(openapi, value) is None:
                yield fields.invalid(where, value, "is an invalid path: does not refer to a valid field")


def _scalar_at(openapi: Object, path: str) -> Object | None:
    current: Json = openapi
    for name in path.lstrip(".").split("."):
        current = (current.get("properties") or {}).get(name)
        if current is None:
            return None
    found: Object = current
    return found if found.get("type") in ("string", "integer", "boolean") else None


def _conversion_faults(spec: Object) -> Iterator[FieldError]:
    conversion = spec.get("conversion") or {}
    strategy = conversion.get("strategy", "None")
    path = "spec.conversion.strategy"
    if strategy not in ("None", "Webhook"):
        yield fields.not_supported(path, strategy, ["None", "Webhook"])
    elif strategy == "Webhook":
        yield fields.invalid(path, strategy, "conversion by webhook is not served here: use None")


def _preserve_faults(spec: Object) -> Iterator[FieldError]:
    if spec.get("preserveUnknownFields"):
        yield fields.invalid(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )


def _approval_faults(definition: Object, spec: Object) -> Iterator[FieldError]:
    group = spec.get("group", "")
    is_protected = group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))
    if is_protected and not (definition["metadata"].get("annotations") or {}).get(_APPROVAL):
        yield fields.required(
            f"metadata.annotations[{_APPROVAL}]",
            f'protected groups must have approval annotation "{_APPROVAL}", see '
            "https://github.com/kubernetes/enhancements/pull/1111",
        )


def _stored_faults(definition: Object, spec: Object) -> Iterator[FieldError]:
    stored = (definition.get("status") or {}).get("storedVersions") or []
    path = "status.storedVersions"
    if not stored:
        yield FieldError(FieldErrorType.INVALID, path, None, "must have at least one stored version")
        return
    names = [version.get("name") for version in spec.get("versions") or ()]
    for position, name in enumerate(stored):
        if name not in names:
            yield fields.invalid(
                f"{path}[{position}]",
                name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                "spec.versions until a storage migration ensures no data remains persisted in "
                f"{name} and removes {name} from status.storedVersions",
            )
