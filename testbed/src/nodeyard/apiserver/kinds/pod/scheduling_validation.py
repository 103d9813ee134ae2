"""Validation of scheduling directives: tolerations, affinity, topology spread, scheduling gates."""

from __future__ import annotations

import msgspec

from nodeyard.apiserver.kinds.validation import choice_errors, duplicates, faults_at, unsupported
from nodeyard.kube.fields import FieldError, duplicate, index, invalid, required
from nodeyard.kube.json import Object
from nodeyard.kube.names import label_faults, label_value_faults, qualified_name_faults
from nodeyard.kube.node_affinity import NodeSelector, NodeSelectorTerm
from nodeyard.kube.node_affinity_errors import node_selector_errors, node_selector_term_errors
from nodeyard.kube.selectors import object_errors
from nodeyard.kube.taints import EFFECTS

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def effect_errors(path: str, effect: str) -> list[FieldError]:
    return choice_errors(path, effect, *EFFECTS) if effect else [required(path)]


def toleration_errors(tolerations: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, toleration in enumerate(tolerations):
        errors += _toleration_errors(toleration, index(path, place))
    return errors


def _toleration_errors(toleration: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        errors += faults_at(f"{path}.key", key, qualified_name_faults)
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", operator, detail))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, detail))
    errors += _operator_errors(operator, value, f"{path}.operator")
    if effect:
        errors += effect_errors(f"{path}.effect", effect)
    return errors


def _operator_errors(operator: str, value: str, path: str) -> list[FieldError]:
    if operator in ("", "Equal"):
        faults = label_value_faults(value)
        return [invalid(path, value, ";".join(faults))] if faults else []
    if operator == "Exists":
        return [invalid(path, value, "value must be empty when `operator` is 'Exists'")] if value else []
    if operator in ("Lt", "Gt"):
        return [unsupported(path, operator, "Equal", "Exists", "Lt", "Gt")]
    return [unsupported(path, operator, "Equal", "Exists")]


def gate_errors(gates: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names = [gate.get("name", "") for gate in gates]
    repeated = duplicates(names)
    for place, name in enumerate(names):
        errors += faults_at(index(path, place), name, qualified_name_faults)
        if place in repeated:
            errors.append(duplicate(index(path, place), name))
    return errors


def affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if node := affinity.get("nodeAffinity"):
        errors += _node_affinity_errors(node, f"{path}.nodeAffinity")
    for field in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(field):
            errors += _pod_affinity_errors(pods, f"{path}.{field}")
    return errors


def _node_affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    wanted = affinity.get(_REQUIRED)
    if wanted is not None:
        errors += node_selector_errors(msgspec.convert(wanted, NodeSelector), f"{path}.{_REQUIRED}")
    for place, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        where = index(f"{path}.{_PREFERRED}", place)
        errors += _weight_errors(preferred, where)
        preference = msgspec.convert(preferred.get("preference") or {}, NodeSelectorTerm)
        errors += node_selector_term_errors(preference, f"{where}.preference")
    return errors


def _weight_errors(preferred: Object, path: str) -> list[FieldError]:
    weight = preferred.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_affinity_errors(affinity: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, term in enumerate(affinity.get(_REQUIRED) or ()):
        errors += _pod_term_errors(term, index(f"{path}.{_REQUIRED}", place))
    for place, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        where = index(f"{path}.{_PREFERRED}", place)
        errors += _weight_errors(preferred, where)
        errors += _pod_term_errors(preferred.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")
    return errors


def _pod_term_errors(term: Object, path: str) -> list[FieldError]:
    errors = object_errors(term.get("labelSelector"), f"{path}.labelSelector")
    errors += object_errors(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        errors += faults_at(f"{path}.namespace", name, label_faults)
    topology = term.get("topologyKey", "")
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    return errors + faults_at(f"{path}.topologyKey", topology, qualified_name_faults)


def spread_errors(constraints: list[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    pairs = [(each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")) for each in constraints]
    for place, constraint in enumerate(constraints):
        where = index(path, place)
        errors += _constraint_errors(constraint, where)
        if pairs[place] in pairs[place + 1 :]:
            shown = "{" + ", ".join(pairs[place]) + "}"
            errors.append(duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", shown))
    return errors


def _constraint_errors(constraint: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    skew, topology = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    if skew <= 0:
        errors.append(invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
    if not topology:
        errors.append(required(f"{path}.topologyKey", "can not be empty"))
    else:
        errors += faults_at(f"{path}.topologyKey", topology, qualified_name_faults)
    choices = ("DoNotSchedule", "ScheduleAnyway")
    errors += choice_errors(f"{path}.whenUnsatisfiable", constraint.get("whenUnsatisfiable", ""), *choices)
    domains = constraint.get("minDomains")
    if domains is not None and domains <= 0:
        errors.append(invalid(f"{path}.minDomains", domains, "must be greater than zero"))
    if domains is not None and constraint.get("whenUnsatisfiable") != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not " + constraint["whenUnsatisfiable"]
        errors.append(invalid(f"{path}.minDomains", domains, detail))
    return errors + object_errors(constraint.get("labelSelector"), f"{path}.labelSelector")
