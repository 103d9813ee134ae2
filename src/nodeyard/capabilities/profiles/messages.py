"""Reason and facts to text, for conditions, events, `why` and the dashboard alike.

A text about something wrong names the object, the field or key, the value, and what to do. Facts that are not there
leave their part of the sentence out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nodeyard.capabilities.profiles import names
from nodeyard.capabilities.profiles.reasons import Reason
from nodeyard.capabilities.profiles.types import Source, UpdatePolicy
from nodeyard.kube.json import Object
from nodeyard.plan.reasons import text_of
from nodeyard.plan.sentences import Facts, filled, listed, says


def text(reason: str, facts: Object) -> str:
    """A sentence for a reason of ours or of the engine; any other reason is its own text."""
    return text_of(_own, reason, facts)


def _own(reason: str, facts: Object) -> str:
    render = _TEXTS.get(reason)
    return reason if render is None else render(facts)


def _if(facts: Facts, key: str, form: str) -> str:
    """A part of a sentence that is there where its fact is."""
    value = facts.get(key)
    return form.format(value) if value else ""


def _service(facts: Facts) -> str:
    return f"{facts.get('service', 'its service')} on node {facts.get('node', '')}".rstrip()


def _profile(facts: Facts) -> str:
    return f"{facts.get('kind') or 'profile'} {facts.get('profile', '')}".rstrip()


# how a choice stands


def _speaker(facts: Facts) -> str:
    """The object whose annotation is spoken of."""
    if facts.get("source") == Source.ROLE:
        return f"role {facts.get('role', '')}".rstrip()
    return f"node {facts.get('node', '')}".rstrip()


def _shadowed(facts: Facts) -> str:
    """What does not count beside the choice; an empty one is a layer that wanted none."""
    below = [_layer(each, facts) for each in facts.get("shadowed", ())]
    return f", over {listed(below)}" if below else ""


def _layer(shadowed: str, facts: Facts) -> str:
    source, _, name = shadowed.partition("=")
    if source == Source.SELECTOR:
        return f"{name} by its nodeSelector"
    return f"{name or 'none'} of role {facts.get('role', '')}".rstrip()


def _standing(sentence: str) -> Callable[[Facts], str]:
    """How a choice stands, what it shadows, and what it waits for."""

    def render(facts: Facts) -> str:
        said = filled(sentence, {**facts, "speaker": _speaker(facts)})
        return f"{said}{_shadowed(facts)}{_waiting(facts)}"

    return render


def _waiting(facts: Facts) -> str:
    waits = facts.get("waits")
    return f". {text(waits['reason'], waits['facts'])}" if waits else ""


def _none(facts: Facts) -> str:
    if facts.get("source") == Source.ROLE:
        return _standing("The annotation {key} of {speaker} is empty: no {kind}")(facts)
    return _standing("Neither node {node} nor its role has the annotation {key}: no {kind}")(facts)


# what is wrong


def _invalid(facts: Facts) -> str:
    return (
        f"The annotation {facts.get('key', '')} of {_speaker(facts)} is {facts.get('value', '')!r}, which is not the "
        f"name of one {facts.get('kind') or 'profile'}{_if(facts, 'error', ': {}')}. Write one name, or empty it to "
        f"have none; what is deployed stays as it is"
    )


def _not_found(facts: Facts) -> str:
    where = _if(facts, "namespace", " in namespace {}")
    return (
        f"{_capital(_profile(facts))} does not exist{where}, and {_speaker(facts)} chooses it by "
        f"{facts.get('key', 'an annotation')}. Create it, or choose another; what is deployed stays as it is"
    )


def _ambiguous(facts: Facts) -> str:
    return (
        f"{listed(facts.get('profiles', ()))} select node {facts.get('node', '')} with the same priority "
        f"{facts.get('priority', 0)}: give one a higher spec.priority, or annotate the node with "
        f"{facts.get('key', 'its key')}; what is deployed stays as it is"
    )


def _role_not_found(facts: Facts) -> str:
    said = (
        f"OpenStackDataPlaneRole {facts.get('role', '')}, the spec.role of node {facts.get('node', '')}, does not exist"
    )
    if facts.get("service"):
        return f"{said}: what {facts['service']} has from it is not known, and what is deployed stays as it is"
    return f"{said}: create it, or name another. The node's own annotations count meanwhile"


def _claimed_twice(facts: Facts) -> str:
    services = listed(list(facts.get("services", ())))
    return (
        f"The annotation {facts.get('key', '')} is claimed by the {names.SERVICE_KIND}s {services}, and none of them "
        "counts: give each a spec.annotationKey of its own"
    )


def _forbidden(facts: Facts) -> str:
    """A missing right, or what the server said instead of the objects."""
    said = f"{_capital(facts.get('service') or 'a service')} cannot be looked after"
    verb, resource = facts.get("verb"), facts.get("resource")
    if verb and resource:
        said += f": no right to {verb} {resource}. Grant it by a ClusterRole that is aggregated to ours"
    else:
        said += _if(facts, "error", ": {}")
    return f"{said}; what is deployed stays as it is"


def _in_use(facts: Facts) -> str:
    users = list(facts.get("users", ()))
    return (
        f"{_capital(_profile(facts))} is chosen for {_count(len(users), 'node')}: {listed(users)}. Choose another first"
    )


def _stalled(facts: Facts) -> str:
    service, profile = facts.get("service", "its service"), _if(facts, "profile", " of profile {}")
    return (
        f"The rollout{profile} for {service} has stopped: {facts.get('stalled') or 'an object'} does not report the "
        "configuration that it was told within progressDeadlineSeconds. See what its service operator says"
    )


def _budget_spent(facts: Facts) -> str:
    return (
        f"{_service(facts)} waits: {facts.get('unavailable', 0)} of {facts.get('total', 0)} with "
        f"{_profile(facts)} are being reconfigured, which is all that maxUnavailable allows"
    )


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _count(number: int, word: str) -> str:
    return f"{number} {word if number == 1 else f'{word}s'}"


# how things stand


def _rolling(facts: Facts) -> str:
    if facts.get("service"):
        return f"{_service(facts)} has been told{_if(facts, 'hash', ' configuration {}')} and does not report it yet"
    return f"{_capital(_profile(facts))} is being rolled out: {_progress(facts)}"


def _progress(facts: Facts) -> str:
    return f"{facts.get('updated', 0)} of {facts.get('total', 0)} have it"


def _followers(facts: Facts) -> str:
    """Of the nodes of a role, those that leave a choice to it."""
    nodes, followers = facts.get("nodes", 0), facts.get("followers", 0)
    return f"{followers} of its {_count(nodes, 'node')}"


def _said_nothing(facts: Facts) -> str:
    key, role = facts.get("key", "the annotation"), facts.get("role", "")
    return f"{key} of role {role} is empty" if facts.get("is_empty") else f"Role {role} does not have {key}"


def _reconciled(facts: Facts) -> str:
    return f"Node {facts['node']} gets what is chosen for it" if facts.get("node") else "Everything is as it should be"


_TEXTS: Mapping[str, Callable[[Facts], str]] = {
    # what is done
    Reason.OBJECT_CREATED: lambda facts: f"Makes the object of {_service(facts)}{_if(facts, 'profile', ', with {}')}",
    Reason.OBJECT_UPDATED: lambda facts: f"Keeps the object of {_service(facts)} as it should be",
    Reason.OBJECT_RECONFIGURED: lambda facts: (
        f"Reconfigures {_service(facts)}{_if(facts, 'profile', ', with {}')}{_if(facts, 'hash', ' ({})')}"
    ),
    Reason.OBJECT_DELETED: lambda facts: f"Deletes the object of {_service(facts)}, which nothing asks for any more",
    Reason.OBJECT_LET_GO: lambda facts: (
        f"Leaves the object of {_service(facts)}, which nothing asks for any more, to whoever made it"
    ),
    Reason.CONFIGURATION_WRITTEN: lambda facts: f"Writes the configuration of {_service(facts)}",
    Reason.CONFIGURATION_DELETED: lambda facts: f"Deletes the configuration of {_service(facts)}",
    Reason.LABELLED: says("Labels node {node} with its role {role}"),
    # how a choice stands
    Reason.FROM_NODE: _standing("{kind} {profile}, by the annotation {key} of {speaker}"),
    Reason.FROM_ROLE: _standing("{kind} {profile}, by the annotation {key} of {speaker}"),
    Reason.FROM_SELECTOR: _standing("{kind} {profile}, whose nodeSelector fits node {node}"),
    Reason.DISABLED: _standing("The annotation {key} of {speaker} is empty: no {kind}"),
    Reason.NONE: _none,
    # why something is refused or waits
    Reason.INVALID: _invalid,
    Reason.NOT_FOUND: _not_found,
    Reason.AMBIGUOUS: _ambiguous,
    Reason.ROLE_NOT_FOUND: _role_not_found,
    Reason.CLAIMED_TWICE: _claimed_twice,
    Reason.SERVICE_INVALID: says("{error}"),
    Reason.UNKNOWN_SERVICE: says(
        f"The annotation {{key}} is not ours: no {names.SERVICE_KIND} declares it, and it may be another operator's"
    ),
    Reason.CELL_CHANGED: lambda facts: (
        f"{_service(facts)} is in cell {facts.get('from', '')} and cannot move to {facts.get('to', '')}: set "
        f"{names.CELL} back, or delete the {names.COMPUTE_KIND} first"
    ),
    Reason.CELL_INVALID: lambda facts: (
        f"The annotation {names.CELL} of {_speaker(facts)} is {facts.get('cell', '')!r}, which cannot be the name of a "
        f"cell{_if(facts, 'error', ': {}')}. Write the cell's name: a compute never leaves the cell that it is made in"
    ),
    Reason.ATTACHMENTS_DIFFER: says("Node {node}: {error}"),
    Reason.VARS_INVALID: says("Node {node}: {error}"),
    Reason.CONFIG_INVALID: lambda facts: (
        f"The configuration of {_profile(facts)} is not right{_if(facts, 'error', ': {}')}. What is deployed stays"
    ),
    Reason.CONFIG_DOUBTFUL: lambda facts: (
        f"The configuration of {_profile(facts)} may not be what was meant{_if(facts, 'error', ': {}')}"
    ),
    Reason.FORBIDDEN: _forbidden,
    Reason.NOT_SERVED: lambda facts: (
        f"{facts.get('service', 'The service')} cannot be looked after"
        f"{_if(facts, 'error', ': {}') or _if(facts, 'resource', ': the server does not have {}')}. Install its CRD"
    ),
    Reason.NOT_NAMESPACED: lambda facts: (
        f"{facts.get('service', 'The service')} cannot be looked after{_if(facts, 'error', ': {}')}. Declare a "
        f"{names.SERVICE_KIND} with namespaced kinds"
    ),
    Reason.FOREIGN: lambda facts: (
        f"{facts.get('object', 'The object')} is not of node {facts.get('node', '')} and is left alone: rename or "
        "delete it"
    ),
    Reason.PINNED: lambda facts: (
        f"{_service(facts)} keeps {_profile(facts)} as it was: spec.profileUpdatePolicy is {UpdatePolicy.MANUAL.value}"
    ),
    Reason.BUDGET_SPENT: _budget_spent,
    Reason.STALLED: _stalled,
    Reason.PAUSED: says("Node {node} is paused"),
    Reason.DELETING: says("Node {node} is being deleted, and what was made for it goes with it"),
    Reason.IN_USE: _in_use,
    # how things stand
    Reason.RECONCILED: _reconciled,
    Reason.ROLLING: _rolling,
    Reason.AVAILABLE: lambda facts: f"{_capital(_profile(facts))} is rolled out: {_progress(facts)}",
    Reason.SHARED: lambda facts: (
        f"Role {facts.get('role', '')} has {_count(facts.get('nodes', 0), 'node')}, and says this for those that do "
        "not choose for themselves"
    ),
    Reason.GIVEN: lambda facts: f"{_capital(_profile(facts))}, for {_followers(facts)}",
    Reason.SILENT: lambda facts: (
        f"{_said_nothing(facts)}: each node has what it or the nodeSelector of a {facts.get('kind') or 'profile'} says"
    ),
    Reason.USED_BY_NODE: says("The node chooses it by its own annotation {key}"),
    Reason.USED_BY_ROLE: lambda facts: f"The role chooses it by {facts.get('key', '')}, for {_followers(facts)}",
    Reason.USED_BY_SELECTOR: says("Its nodeSelector fits the node, and nobody has chosen another"),
    # what would change it
    Reason.ANNOTATE_NODE: lambda facts: (
        f"Annotate the node with {_keys(facts)}: it counts for this node alone, over its role; an empty value means "
        "no profile"
    ),
    Reason.ANNOTATE_ROLE: lambda facts: (
        f"Annotate the role{_if(facts, 'role', ' {}')} with {_keys(facts)}: it counts for all its nodes that have no "
        "such annotation"
    ),
    Reason.CREATE_PROFILE: lambda facts: f"Create {_profile(facts)}{_if(facts, 'namespace', ' in namespace {}')}",
    Reason.CREATE_ROLE: says("Create the OpenStackDataPlaneRole {role}"),
    Reason.MEND_VALUE: lambda facts: f"Write one name into {facts.get('key', 'the annotation')}, without a list",
    Reason.GRANT_RIGHT: lambda facts: (
        f"Grant{_if(facts, 'verb', ' {}')}{_if(facts, 'resource', ' on {}') or ' that right'} by a ClusterRole that is "
        "aggregated to ours"
    ),
    Reason.FOLLOW_PROFILE: says(
        f"Set spec.profileUpdatePolicy of the node or its role to {UpdatePolicy.AUTOMATIC.value}"
    ),
    Reason.MEND_OPERATOR: lambda facts: f"Mend what keeps {facts.get('stalled') or 'its service operator'} from it",
    Reason.SET_PRIORITY: lambda facts: (
        f"Give one of {listed(facts.get('profiles', ())) or 'the profiles'} a higher spec.priority"
    ),
}


def _keys(facts: Facts) -> str:
    if facts.get("key"):
        return str(facts["key"])
    keys = list(facts.get("keys", ()))
    return f"one of {', '.join(keys)}" if keys else "the key of a service"
