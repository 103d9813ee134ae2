"""Validation rules of the CRDs, by field.

No field has a default: the API server would set it on the node, where it would override the value of the role. Kinds of
the OpenStack operators keep unknown fields, because these CRDs may replace theirs. CEL sees only the name in metadata,
so annotations are validated by the webhook, and by the plan if the webhook is off.
"""

from __future__ import annotations

from typing import Final

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.planning.registry import BUILT_IN, NEUTRON, NOVA, TELEMETRY
from nodeyard.capabilities.profiles.types import ConfigFormat, Progress, UpdatePolicy
from nodeyard.kube.json import Object
from nodeyard.kube.names import LABEL_VALUE_MAX, SUBDOMAIN_MAX
from nodeyard.schema.rules import CONDITIONS, KEY, KEY_MAX, LABEL, NAME, SUBDOMAIN, VALUE, checks, rule

_RENDERED_AS: Final = ("ConfigMap", "Secret")
_RESERVED_NAMES: Final = tuple(service.name for service in BUILT_IN)
_RESERVED_KEYS: Final = (names.CELL, *(service.annotation_key for service in BUILT_IN))

_CONFIG_MAX: Final = 512 * 1024
"""Half of the size of a ConfigMap; the rest is for configuration of the node and of the service object."""
_MOST_LABELS: Final = 64
_FIELD = "[A-Za-z_][A-Za-z0-9_-]*"


def _listed(values: tuple[str, ...]) -> str:
    """Render a CEL list."""
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


_OPEN: Final[Object] = {"x-kubernetes-preserve-unknown-fields": True}
_OPEN_SPEC: Final[Object] = {"nullable": True, **_OPEN}
_CONDITIONS: Final[dict[str, Object]] = {"status.conditions": CONDITIONS}
_OPEN_STATUS: Final[dict[str, Object]] = {
    "status": _OPEN,
    **_CONDITIONS,
    # Conditions of the OpenStack operators have a severity, and may have no reason.
    "status.conditions[]": {"required": ["type", "status"], **_OPEN},
}
_COUNT: Final[Object] = {"minimum": 1, "format": "int32"}
_UNAVAILABLE = checks(
    rule(
        "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
        "maxUnavailable is a number from 1 or a percentage from 1% to 100%: 0 would block every rollout; to hold "
        "changes back, set profileUpdatePolicy: Manual",
    ),
    maxLength=16,
)


def _name_of(what: str, most: int = SUBDOMAIN_MAX) -> Object:
    return checks(
        rule(
            f"self == '' || self.matches('^{SUBDOMAIN}$')",
            f"the name of a {what} has lower-case letters, digits, '-' and '.', and starts and ends with a letter or "
            "digit",
        ),
        maxLength=most,
    )


def _labelled(label: str) -> Object:
    """Return the rule for a name that becomes a label value."""
    return rule(
        f"size(self.metadata.name) <= {LABEL_VALUE_MAX}",
        f"metadata.name becomes the value of label {label}: at most {LABEL_VALUE_MAX} characters",
    )


# the data plane


def _section(path: str) -> dict[str, Object]:
    return {
        path: _OPEN,
        f"{path}.networkConfig": _OPEN,
        f"{path}.ansiblePort": {"minimum": 0, "maximum": 65535, "format": "int32"},
        f"{path}.nova": _OPEN,
    }


_POLICY: Final[Object] = {"enum": ["", *(str(policy) for policy in UpdatePolicy)]}
ROLE: Final[dict[str, Object]] = {
    "": checks(_labelled(names.ROLE_LABEL)),
    "spec": _OPEN_SPEC,
    **_section("spec.nodeTemplate"),
    "spec.deployStrategy": _OPEN,
    "spec.profileUpdatePolicy": _POLICY,
    **_OPEN_STATUS,
}
NODE: Final[dict[str, Object]] = {
    "": checks(_labelled(names.NODE_LABEL)),
    "spec": _OPEN_SPEC,
    **_section("spec.node"),
    "spec.role": _name_of(names.ROLE_KIND, LABEL_VALUE_MAX),
    "spec.deployStrategy": _OPEN,
    "spec.profileUpdatePolicy": _POLICY,
    **_OPEN_STATUS,
}


# profiles


def _profile(config: str) -> dict[str, Object]:
    return {
        "spec": {"nullable": True},
        f"spec.{config}": {"maxLength": _CONFIG_MAX},
        "spec.maxUnavailable": _UNAVAILABLE,
        "spec.progressDeadlineSeconds": _COUNT,
        "spec.progress": {"enum": ["", *(str(each) for each in Progress)]},
        "spec.renderAs": {"enum": ["", *_RENDERED_AS]},
        "spec.nodeSelector": checks(
            rule(
                f"self.all(k, size(k) <= {KEY_MAX} && k.matches('{KEY}'))",
                "a label key is a name of at most 63 letters, digits, '-', '_' and '.', after an optional DNS prefix "
                "and slash",
            ),
            rule(
                f"self.all(k, self[k].matches('{VALUE}'))",
                "a label value is at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or "
                "digit",
            ),
            maxProperties=_MOST_LABELS,
        ),
        "spec.nodeSelector.*": {"maxLength": LABEL_VALUE_MAX},
        "spec.priority": {"format": "int32"},
        **_CONDITIONS,
    }


COMPUTE_PROFILE: Final = _profile(NOVA.config_field)
NETWORK_PROFILE: Final = _profile(NEUTRON.config_field)
TELEMETRY_PROFILE: Final = _profile(TELEMETRY.config_field)


# service objects

COMPUTE: Final[dict[str, Object]] = {
    "": {"required": ["spec"]},
    "spec": checks(
        rule(
            "!has(oldSelf.cellName) || oldSelf.cellName == '' "
            "|| has(self.cellName) && self.cellName == oldSelf.cellName",
            "cellName cannot change: nova does not move computes between cells; delete the object and its node's "
            "instances first",
            "'cellName cannot change from ' + oldSelf.cellName + ': nova does not move computes between cells'",
        ),
        **_OPEN,
    ),
    "spec.dataplaneNodeName": _name_of(names.NODE_KIND),
    "spec.computeProfileName": _name_of(names.COMPUTE_PROFILE_KIND),
    "spec.cellName": {"maxLength": SUBDOMAIN_MAX},
    **_OPEN_STATUS,
}
AGENT: Final[dict[str, Object]] = {
    "": {"required": ["spec"]},
    "spec": _OPEN,
    "spec.dataplaneNodeName": _name_of(names.NODE_KIND),
    "spec.networkProfileName": _name_of(names.NETWORK_PROFILE_KIND),
    **_OPEN_STATUS,
}


# services


def _key(*rules: Object) -> Object:
    return checks(
        rule(
            f"self.matches('^{SUBDOMAIN}/{NAME}$')",
            "an annotation key is a DNS prefix, a slash and a name of at most 63 letters, digits, '-', '_' and '.', "
            "such as storage.example.com/storage-profile",
        ),
        *rules,
        minLength=1,
        maxLength=KEY_MAX,
    )


def _kind(path: str) -> dict[str, Object]:
    return {
        path: {"required": ["apiVersion", "kind"]},
        f"{path}.apiVersion": checks(
            rule(
                f"self.matches('^{SUBDOMAIN}/v[a-z0-9]+$')",
                "apiVersion is group and version, such as storage.example.com/v1",
            ),
            maxLength=KEY_MAX,
        ),
        f"{path}.kind": checks(
            rule("self.matches('^[A-Z][A-Za-z0-9]*$')", "a kind is written like StorageProfile"),
            maxLength=LABEL_VALUE_MAX,
        ),
    }


_FIELD_NAME = checks(
    rule(
        f"self == '' || self.matches('^{_FIELD}$')",
        "this is one field of a spec, such as profileName",
    ),
    maxLength=SUBDOMAIN_MAX,
)
_OF_OBJECT = ("nodeField", "profileField", "createWhenAnnotation")
SERVICE: Final[dict[str, Object]] = {
    "": checks(
        rule(
            f"!(self.metadata.name in {_listed(_RESERVED_NAMES)})",
            f"the services {', '.join(_RESERVED_NAMES)} are built in: choose another name",
        ),
        rule(
            f"size(self.metadata.name) <= {LABEL_VALUE_MAX} && self.metadata.name.matches('^{LABEL}$')",
            f"metadata.name becomes the value of label {names.SERVICE_LABEL} and part of other names: at most "
            f"{LABEL_VALUE_MAX} lower case letters, digits and '-'",
        ),
        required=["spec"],
    ),
    "spec": checks(
        rule(
            "!has(self.object) || has(self.nodeField) && self.nodeField != '' && has(self.profileField) "
            "&& self.profileField != ''",
            "an object needs nodeField and profileField: they hold the names of the node and of its profile",
        ),
        rule(
            "!has(self.nodeField) || !has(self.profileField) || self.nodeField == '' "
            "|| self.nodeField != self.profileField",
            "nodeField and profileField must differ: one field cannot hold both names",
        ),
        rule(
            "has(self.object) || " + " && ".join(f"(!has(self.{each}) || self.{each} == '')" for each in _OF_OBJECT),
            f"{', '.join(_OF_OBJECT)} need spec.object: set object, or remove them",
        ),
        rule(
            "!has(self.createWhenAnnotation) || self.createWhenAnnotation != self.annotationKey",
            "createWhenAnnotation must differ from annotationKey; remove it to create the object wherever a profile is "
            "chosen",
        ),
        required=["annotationKey", "profile"],
    ),
    "spec.annotationKey": _key(
        rule(
            f"!(self in {_listed(_RESERVED_KEYS)})",
            f"the annotations {', '.join(_RESERVED_KEYS)} belong to built-in services",
        )
    ),
    **_kind("spec.profile"),
    **_kind("spec.object"),
    "spec.nodeField": _FIELD_NAME,
    "spec.profileField": _FIELD_NAME,
    "spec.configField": _FIELD_NAME,
    "spec.configFormat": {"enum": ["", *(str(each) for each in ConfigFormat)]},
    "spec.createWhenAnnotation": {
        **checks(
            rule(
                f"self == '' || self.matches('^{SUBDOMAIN}/{NAME}$')",
                "an annotation key is a DNS prefix, a slash and a name of at most 63 letters, digits, '-', '_' and '.'",
            )
        ),
        "maxLength": KEY_MAX,
    },
    "spec.maxUnavailable": _UNAVAILABLE,
    "spec.progressDeadlineSeconds": _COUNT,
    "spec.progress": {"enum": ["", *(str(each) for each in Progress)]},
    **_CONDITIONS,
}
