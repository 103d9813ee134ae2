"""Merge the fields of a role into those of a node, by the four rules of the data plane.

- Strings, numbers and lists: the value of the node if not empty, else that of the role; lists as a whole.
- `nova`: field by field, as above.
- `ansibleVars`: merged by top-level key, the node wins (`planning/variables.py`).
- `networkAttachments`: node and role must be equal if both are set.

A missing role contributes nothing. A fault is reported, and the value of the node is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from nodeyard.capabilities.profiles.messages.faults import AttachmentsDiffer, InheritanceFault, VariablesInvalid
from nodeyard.capabilities.profiles.planning.variables import Variables, VariablesError, check, merge
from nodeyard.capabilities.profiles.snapshot import NodeSnapshot, memoize
from nodeyard.capabilities.profiles.types import (
    DeployStrategy,
    NodeSection,
    NovaTemplate,
    OpenStackDataPlaneNode,
    OpenStackDataPlaneRole,
    RoleSpec,
    UpdatePolicy,
)
from nodeyard.kube.json import Object

StructT = TypeVar("StructT", bound=msgspec.Struct)

_NODE_VARS: Final = "spec.node.ansibleVars"
_ROLE_VARS: Final = "spec.nodeTemplate.ansibleVars"
_ATTACHMENTS: Final = "spec.networkAttachments"


@dataclass(frozen=True)
class Effective:
    section: NodeSection
    """`spec.node` with inherited values and merged `ansibleVars`."""
    deploy_strategy: DeployStrategy
    host_name: str = ""
    ansible_host: str = ""
    env: tuple[Any, ...] = ()
    network_attachments: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    """From the role only."""
    update_policy: UpdatePolicy = UpdatePolicy.AUTOMATIC
    variables: Variables = field(default_factory=Variables)
    inherited: tuple[str, ...] = ()
    """Fields of the node's spec whose value is inherited."""
    faults: tuple[InheritanceFault, ...] = ()

    def wire(self) -> Object:
        """Return the value of status.effective: names instead of possibly secret content, and no empty fields."""
        shown = {
            "hostName": self.host_name,
            "ansibleHost": self.ansible_host,
            **_shown_section(self.section),
            "ansibleVars": list(self.variables.keys),
            "env": _names(self.env),
            "deployStrategy": _plain(self.deploy_strategy),
            "networkAttachments": list(self.network_attachments),
            "services": list(self.services),
            "profileUpdatePolicy": self.update_policy.value,
            "inherited": list(self.inherited),
        }
        return _filled(shown)


@memoize
def effective_spec(snapshot: NodeSnapshot) -> Effective:
    """Return the effective spec of the node of a snapshot."""
    return inherit(snapshot.node, snapshot.role)


def inherit(node: OpenStackDataPlaneNode, role: OpenStackDataPlaneRole | None) -> Effective:
    own, template = node.wanted, role.wanted if role is not None else RoleSpec()
    notes: list[str] = []
    section = _merge(own.node, template.node_template, "node", notes)
    strategy = _merge(own.deploy_strategy, template.deploy_strategy, "deployStrategy", notes)
    variables, faults = _variables(node.name, own.node.ansible_vars, template.node_template.ansible_vars)
    return Effective(
        section=msgspec.structs.replace(section, ansible_vars=variables.text),
        deploy_strategy=strategy,
        host_name=own.host_name,
        ansible_host=own.ansible_host,
        env=_first(own.env, template.env, "env", notes),
        network_attachments=_first(own.network_attachments, template.network_attachments, "networkAttachments", notes),
        services=template.services,
        update_policy=_policy(own.profile_update_policy or template.profile_update_policy),
        variables=variables,
        inherited=tuple(sorted(notes)),
        faults=(*faults, *_attachment_faults(node, template.network_attachments)),
    )


# rules


def _is_empty(value: object) -> bool:
    """Check for a Go zero value; an explicit false is not empty, because those fields are pointers."""
    return not value and value is not False


def _first(own: Any, inherited: Any, path: str, notes: list[str]) -> Any:
    if not _is_empty(own) or _is_empty(inherited):
        return own
    notes.append(path)
    return inherited


def _merge(own: StructT, inherited: StructT, path: str, notes: list[str]) -> StructT:
    """Fill empty fields from the role, recursively in nested structs."""
    changes: dict[str, Any] = {}
    for name, wire_name in _fields(type(own)):
        mine, theirs = getattr(own, name), getattr(inherited, name)
        if mine is theirs:
            continue
        where = f"{path}.{wire_name}"
        if isinstance(mine, msgspec.Struct) and isinstance(theirs, msgspec.Struct):
            changes[name] = _merge(mine, theirs, where, notes)
        else:
            changes[name] = _first(mine, theirs, where, notes)
    return msgspec.structs.replace(own, **changes) if changes else own


@cache
def _fields(kind: type[msgspec.Struct]) -> tuple[tuple[str, str], ...]:
    """Return the fields of a type as attribute name and JSON name; cached per type."""
    return tuple((each.name, each.encode_name) for each in msgspec.structs.fields(kind))


def _variables(node: str, of_node: str, of_role: str) -> tuple[Variables, tuple[InheritanceFault, ...]]:
    faults = tuple(
        VariablesInvalid(node=node, error=error)
        for path, text in ((_NODE_VARS, of_node), (_ROLE_VARS, of_role))
        if (error := _variables_error(path, text))
    )
    return (Variables(of_node), faults) if faults else (merge(of_node, of_role), ())


def _variables_error(path: str, text: str) -> str:
    try:
        check(text)
    except VariablesError as error:
        return f"{path} {error}: write one variable per line, as name: value"
    return ""


def _attachment_faults(node: OpenStackDataPlaneNode, inherited: Sequence[str]) -> tuple[InheritanceFault, ...]:
    own = node.wanted.network_attachments
    if not own or not inherited or own == inherited:
        return ()
    error = (
        f"{_ATTACHMENTS} is {_quoted(own)}, but role {node.wanted.role} has {_quoted(inherited)}: set the same list on "
        "both, or remove one"
    )
    return (AttachmentsDiffer(node=node.name, error=error),)


def _quoted(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _policy(value: str) -> UpdatePolicy:
    """Parse the policy; an unknown value means Manual, which does not reconfigure nodes."""
    return UpdatePolicy.AUTOMATIC if value in ("", UpdatePolicy.AUTOMATIC) else UpdatePolicy.MANUAL


# status.effective


def _shown_section(section: NodeSection) -> Object:
    return {
        "networkConfig": _plain(section.network_config),
        "networks": list(section.networks),
        "managementNetwork": section.management_network,
        "ansibleUser": section.ansible_user,
        "ansiblePort": section.ansible_port,
        "ansibleSSHPrivateKeySecret": section.ansible_ssh_private_key_secret,
        "extraMounts": _volumes(section.extra_mounts),
        "userData": _name(section.user_data),
        "networkData": _name(section.network_data),
        "nova": _shown_nova(section.nova),
    }


def _shown_nova(nova: NovaTemplate | None) -> Object:
    """Omit the configuration of nova, which may hold passwords."""
    return {} if nova is None else _plain(msgspec.structs.replace(nova, custom_service_config=""))


def _plain(struct: msgspec.Struct) -> Object:
    return _filled(msgspec.to_builtins(struct))


def _filled(shown: Object) -> Object:
    return {name: value for name, value in shown.items() if not _is_empty(value)}


def _name(reference: Any) -> str:
    return str(reference.get("name", "")) if isinstance(reference, dict) else ""


def _names(items: Iterable[Any]) -> list[str]:
    return [name for each in items if (name := _name(each))]


def _volumes(mounts: Iterable[Any]) -> list[str]:
    return [name for each in mounts if isinstance(each, dict) for name in _names(each.get("volumes") or ())]
