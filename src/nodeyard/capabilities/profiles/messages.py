"""Render reasons and facts as text, for conditions, events, `why` and the dashboard.

A text about a fault names the object, the field or annotation key, the value and the remedy. A missing fact leaves its
part of the sentence out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import Source, UpdatePolicy
from nodeyard.kube.json import Object
from nodeyard.plan.message_format import Facts, filled, listed, says
from nodeyard.plan.reasons import text_of
from nodeyard.runtime.rbac import grant_remedy

_NAMED = 10
_KEPT = "the deployed configuration is kept"
_GRANT = "a ClusterRole that aggregates to Nodeyard's role for profiles"


def text(reason: str, facts: Object) -> str:
    """Return the sentence for a reason of profiles or of the engine; any other reason is its own text."""
    return text_of(_render, reason, facts)


def _render(reason: str, facts: Object) -> str:
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def _if(facts: Facts, key: str, form: str) -> str:
    """Return a part of a sentence if its fact is present."""
    value = facts.get(key)
    return form.format(value) if value else ""


def _service(facts: Facts) -> str:
    return f"{facts.get('service', 'the service')} on node {facts.get('node', '')}".rstrip()


def _profile(facts: Facts) -> str:
    return f"{facts.get('kind') or 'profile'} {facts.get('profile', '')}".rstrip()


def _with_profile(facts: Facts) -> str:
    return f" with {_profile(facts)}" if facts.get("profile") else ""


def _capitalize(words: str) -> str:
    return words[:1].upper() + words[1:]


def _count(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


def count_nodes(nodes: Sequence[str]) -> str:
    """Return the number of nodes and the names of the first ones."""
    return f"{_count(len(nodes), 'node')} ({listed(nodes, _NAMED)})"


# the choice for a service


def _annotated(facts: Facts) -> str:
    """Name the object whose annotation chose the profile."""
    if facts.get("source") == Source.ROLE:
        return f"role {facts.get('role', '')}".rstrip()
    return f"node {facts.get('node', '')}".rstrip()


def _shadowed(facts: Facts) -> str:
    lower = [_shadowed_layer(each, facts) for each in facts.get("shadowed", ())]
    return f", overriding {listed(lower)}" if lower else ""


def _shadowed_layer(shadowed: str, facts: Facts) -> str:
    source, _, name = shadowed.partition("=")
    if source == Source.SELECTOR:
        return f"{name} (spec.nodeSelector)"
    return f"{name or 'no profile'} (role {facts.get('role', '')})"


def _choice(sentence: str) -> Callable[[Facts], str]:
    """Render a choice, the layers that it shadows, and the reason why it is not deployed yet."""

    def render(facts: Facts) -> str:
        chosen = filled(sentence, {**facts, "annotated": _annotated(facts)})
        waits = facts.get("waits")
        return f"{chosen}{_shadowed(facts)}" + (f". {text(waits['reason'], waits['facts'])}" if waits else "")

    return render


def _none(facts: Facts) -> str:
    if facts.get("source") == Source.ROLE:
        return _choice("Annotation {key} on {annotated} is empty: no {kind}")(facts)
    return _choice("Neither node {node} nor its role has annotation {key}: no {kind}")(facts)


# faults


def _invalid(facts: Facts) -> str:
    return (
        f"Annotation {facts.get('key', '')} on {_annotated(facts)} is {facts.get('value', '')!r}, which is not the "
        f"name of one {facts.get('kind') or 'profile'}{_if(facts, 'error', ': {}')}. Set it to one name, or to an "
        f"empty value for no profile; {_KEPT}"
    )


def _not_found(facts: Facts) -> str:
    where = _if(facts, "namespace", " in namespace {}")
    return (
        f"{_capitalize(_profile(facts))} does not exist{where}, but {facts.get('key', 'an annotation')} on "
        f"{_annotated(facts)} names it. Create the profile or name another; {_KEPT}"
    )


def _ambiguous(facts: Facts) -> str:
    return (
        f"{listed(facts.get('profiles', ()))} select node {facts.get('node', '')} with the same spec.priority "
        f"{facts.get('priority', 0)}: raise the priority of one, or annotate the node with "
        f"{facts.get('key', 'the key of the service')}; {_KEPT}"
    )


def _role_not_found(facts: Facts) -> str:
    missing = (
        f"OpenStackDataPlaneRole {facts.get('role', '')} (spec.role of node {facts.get('node', '')}) does not exist"
    )
    if facts.get("service"):
        return f"{missing}: the settings that {facts['service']} inherits from it are unknown, so {_KEPT}"
    return f"{missing}: create it, or change spec.role. Annotations on the node still apply"


def _key_conflict(facts: Facts) -> str:
    services = listed(list(facts.get("services", ())))
    return (
        f"Annotation {facts.get('key', '')} is declared by the {names.SERVICE_KIND}s {services}, so none of them is "
        "used: give each its own spec.annotationKey"
    )


def _forbidden(facts: Facts) -> str:
    verb, resource = facts.get("verb"), facts.get("resource")
    if verb and resource:
        cause = f": no permission to {verb} {resource}. Grant it with {_GRANT}"
    else:
        cause = _if(facts, "error", ": {}")
    return f"{_unmanaged(facts)}{cause}; {_KEPT}"


def _unmanaged(facts: Facts) -> str:
    return f"Nodeyard cannot manage {facts.get('service') or 'the service'}"


def _namespace_not_granted(facts: Facts) -> str:
    namespace = str(facts.get("namespace", ""))
    return (
        f"{_capitalize(_service(facts))} needs a ConfigMap for its configuration, but Nodeyard may not write "
        f"ConfigMaps in namespace {namespace}: "
        f"{grant_remedy(names.CAPABILITY, names.CONFIGURATION_GRANT, namespace)}; {_KEPT}"
    )


def _secrets_not_granted(facts: Facts) -> str:
    namespace = str(facts.get("namespace", ""))
    return (
        f"{_capitalize(_profile(facts))} has spec.renderAs: Secret, but Nodeyard may not write Secrets in namespace "
        f"{namespace}. Set spec.renderAs to ConfigMap, or "
        f"{grant_remedy(names.CAPABILITY, names.SECRETS_GRANT, namespace)}; {_KEPT}"
    )


# rollouts


def _stalled(facts: Facts) -> str:
    service, profile = facts.get("service", "the service"), _if(facts, "profile", " of profile {}")
    return (
        f"Rollout{profile} for {service} stopped: service object {facts.get('stalled', '')} did not become available "
        "(status.hash.profile, condition Ready) within progressDeadlineSeconds. Check its service operator"
    )


def _budget_spent(facts: Facts) -> str:
    """Leave the current count out: it would rewrite the status of every waiting node each time one is done."""
    return (
        f"{_capitalize(_service(facts))} waits for a rollout slot: maxUnavailable allows {facts.get('limit', 0)} of "
        f"{facts.get('total', 0)} service objects with {_profile(facts)} to be unavailable at once"
    )


def _rolling(facts: Facts) -> str:
    if not facts.get("service"):
        return f"{_capitalize(_profile(facts))} is rolling out: {_progress(facts)}"
    if facts.get("is_reported"):
        return f"Waiting for {_service(facts)} to report condition Ready=True"
    return f"Waiting for {_service(facts)} to report config hash{_if(facts, 'hash', ' {}')} in status.hash.profile"


def _available(facts: Facts) -> str:
    if "nodes" in facts:
        nodes, service = _count(facts["nodes"], "node"), facts.get("service", "the service")
        return f"{_capitalize(_profile(facts))} is chosen for {nodes}; {service} has no service objects to roll out to"
    if not facts.get("total"):
        return f"{_capitalize(_profile(facts))} is not deployed on any node"
    return f"{_capitalize(_profile(facts))} is rolled out: {_progress(facts)}"


def _progress(facts: Facts) -> str:
    pinned = "; {} keep an earlier generation (profileUpdatePolicy: Manual)"
    ignored = "; the rollout does not wait for status.hash.profile of {} (progress: Ignore)"
    count = f"{facts.get('updated', 0)} of {_count(facts.get('total', 0), 'service object')} updated"
    return f"{count}{_if(facts, 'pinned', pinned)}{_if(facts, 'ignored', ignored)}"


# roles


def _followers(facts: Facts) -> str:
    """Count the nodes of a role that use its choice."""
    nodes, followers = facts.get("nodes", 0), facts.get("followers", 0)
    return f"{followers} of its {_count(nodes, 'node')}"


def _no_profile_on_role(facts: Facts) -> str:
    key, role, kind = facts.get("key", "the annotation"), facts.get("role", ""), facts.get("kind") or "profile"
    if facts.get("is_empty"):
        return f"Annotation {key} on role {role} is empty: its nodes have no {kind} unless they set their own"
    return f"Role {role} has no annotation {key}: a node's own annotation or the nodeSelector of a {kind} decides"


def _reconciled(facts: Facts) -> str:
    return f"Node {facts['node']} has the profiles chosen for it" if facts.get("node") else "In sync with the spec"


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    # actions
    Reason.OBJECT_CREATED: lambda facts: f"Created the service object of {_service(facts)}{_with_profile(facts)}",
    Reason.OBJECT_UPDATED: lambda facts: f"Updated the service object of {_service(facts)}",
    Reason.OBJECT_RECONFIGURED: lambda facts: (
        f"Reconfigured {_service(facts)}{_with_profile(facts)}{_if(facts, 'hash', ' (config hash {})')}"
    ),
    Reason.OBJECT_DELETED: lambda facts: (
        f"Deleted the service object of {_service(facts)}: nothing requests it any more"
    ),
    Reason.OBJECT_RELEASED: lambda facts: (
        f"Removed Nodeyard's fields from the service object of {_service(facts)} and kept the object: nothing requests "
        "it any more, and Nodeyard did not create it"
    ),
    Reason.CONFIGURATION_WRITTEN: lambda facts: f"Wrote the configuration of {_service(facts)}",
    Reason.CONFIGURATION_DELETED: lambda facts: f"Deleted the configuration of {_service(facts)}",
    Reason.APPROVAL_REMOVED: says("Removed approvals from role {role}: the removals that they allowed are complete"),
    # the choice for a service
    Reason.FROM_NODE: _choice("{kind} {profile} is set by annotation {key} on {annotated}"),
    Reason.FROM_ROLE: _choice("{kind} {profile} is set by annotation {key} on {annotated}"),
    Reason.FROM_SELECTOR: _choice("{kind} {profile} selects node {node} by spec.nodeSelector"),
    Reason.DISABLED: _choice("Annotation {key} on {annotated} is empty: no {kind}"),
    Reason.NONE: _none,
    # faults and waits
    Reason.INVALID: _invalid,
    Reason.NOT_FOUND: _not_found,
    Reason.AMBIGUOUS: _ambiguous,
    Reason.ROLE_NOT_FOUND: _role_not_found,
    Reason.KEY_CONFLICT: _key_conflict,
    Reason.SERVICE_INVALID: says("{error}"),
    Reason.UNKNOWN_SERVICE: says(
        f"Annotation {{key}} is ignored: no {names.SERVICE_KIND} declares it; another operator may use it"
    ),
    Reason.CELL_CHANGED: lambda facts: (
        f"{_service(facts)} is in cell {facts.get('from', '')} and cannot move to {facts.get('to', '')}: set "
        f"{names.CELL} back. To move it, set {names.CELL} on the node to an empty value, which deletes its "
        f"{names.COMPUTE_KIND}, then set the new cell when that object is gone"
    ),
    Reason.CELL_INVALID: lambda facts: (
        f"Annotation {names.CELL} on {_annotated(facts)} is {facts.get('cell', '')!r}, which is not a valid cell "
        f"name{_if(facts, 'error', ': {}')}. Set it to the name of the cell; a compute cannot change its cell later"
    ),
    Reason.ATTACHMENTS_DIFFER: says("Node {node}: {error}"),
    Reason.VARS_INVALID: says("Node {node}: {error}"),
    Reason.CONFIG_INVALID: lambda facts: (
        f"The configuration of {_profile(facts)} is invalid{_if(facts, 'error', ': {}')}. {_capitalize(_KEPT)}"
    ),
    Reason.CONFIG_WARNING: lambda facts: (
        f"The configuration of {_profile(facts)} may be a mistake{_if(facts, 'error', ': {}')}"
    ),
    Reason.FORBIDDEN: _forbidden,
    Reason.NAMESPACE_NOT_GRANTED: _namespace_not_granted,
    Reason.SECRETS_NOT_GRANTED: _secrets_not_granted,
    Reason.NOT_SERVED: lambda facts: (
        f"{_unmanaged(facts)}"
        f"{_if(facts, 'error', ': {}') or _if(facts, 'resource', ': the API server does not serve {}')}. "
        "Install its CRD"
    ),
    Reason.NOT_NAMESPACED: lambda facts: (
        f"{_unmanaged(facts)}{_if(facts, 'error', ': {}')}. Use namespaced kinds in the {names.SERVICE_KIND}"
    ),
    Reason.OTHER_NODE: lambda facts: (
        f"{facts.get('object', 'The object')} belongs to another node than {facts.get('node', '')} and is not "
        "changed: rename or delete it"
    ),
    Reason.PINNED: lambda facts: (
        f"{_capitalize(_service(facts))} keeps an earlier generation of {_profile(facts)}: spec.profileUpdatePolicy is "
        f"{UpdatePolicy.MANUAL.value}"
    ),
    Reason.BUDGET_SPENT: _budget_spent,
    Reason.STALLED: _stalled,
    Reason.DELETING: says("Node {node} is being deleted; the objects created for it are garbage-collected"),
    # states
    Reason.RECONCILED: _reconciled,
    Reason.ROLLING: _rolling,
    Reason.AVAILABLE: _available,
    Reason.PROGRESS_IGNORED: lambda facts: (
        f"Node {facts.get('node', '')} has the profiles chosen for it. The rollout does not wait for "
        f"{listed(facts.get('services', ()))}: its operator reports no status.hash.profile, or spec.progress is Ignore"
    ),
    Reason.ROLE_HAS_NODES: lambda facts: (
        f"Role {facts.get('role', '')} has {_count(facts.get('nodes', 0), 'node')}; its annotations apply to nodes "
        "that do not set their own"
    ),
    Reason.SET_FOR_NODES: lambda facts: f"{_capitalize(_profile(facts))}, for {_followers(facts)}",
    Reason.NO_PROFILE_ON_ROLE: _no_profile_on_role,
    Reason.USED_BY_NODE: says("The node names it in its annotation {key}"),
    Reason.USED_BY_ROLE: lambda facts: f"The role names it in {facts.get('key', '')}, for {_followers(facts)}",
    Reason.USED_BY_SELECTOR: says("Its spec.nodeSelector matches the node, and no annotation overrides it"),
    # remedies
    Reason.ANNOTATE_NODE: lambda facts: (
        f"Annotate the node with {_keys(facts)}: this overrides the role for this node only; an empty value means no "
        "profile"
    ),
    Reason.ANNOTATE_ROLE: lambda facts: (
        f"Annotate the role{_if(facts, 'role', ' {}')} with {_keys(facts)}: this applies to its nodes that do not have "
        "the annotation"
    ),
    Reason.CREATE_PROFILE: lambda facts: f"Create {_profile(facts)}{_if(facts, 'namespace', ' in namespace {}')}",
    Reason.CREATE_ROLE: says("Create OpenStackDataPlaneRole {role}"),
    Reason.FIX_ANNOTATION: lambda facts: f"Set {facts.get('key', 'the annotation')} to one profile name, not a list",
    Reason.GRANT_PERMISSION: lambda facts: (
        f"Grant{_if(facts, 'verb', ' {}')}{_if(facts, 'resource', ' on {}') or ' the permission'} with {_GRANT}"
    ),
    Reason.FOLLOW_PROFILE: says(
        f"Set spec.profileUpdatePolicy of the node or its role to {UpdatePolicy.AUTOMATIC.value}"
    ),
    Reason.CHECK_OPERATOR: lambda facts: (
        f"Check why the service operator does not report{_if(facts, 'stalled', ' {}')} as available"
    ),
    Reason.SET_PRIORITY: lambda facts: (
        f"Raise spec.priority of one of {listed(facts.get('profiles', ())) or 'the profiles'}"
    ),
}


def _keys(facts: Facts) -> str:
    if facts.get("key"):
        return str(facts["key"])
    keys = list(facts.get("keys", ()))
    return f"one of {', '.join(keys)}" if keys else "the key of a service"
