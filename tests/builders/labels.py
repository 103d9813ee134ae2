"""The sixth capability, for tests: the smallest one that uses every required field of `Capability`.

A node has the label `labels.test/rule: NAME`; the LabelRule of that name sets its label `labels.test/team`. A rule can
be disruptive, wait until a time, or make the planner fail.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.builders.plans import message

from nodeyard.apply.outcome import Result
from nodeyard.client.resources import LEASES, NODES, Resource
from nodeyard.kube.objects import Node, NullableStruct, ObjectMeta, PlainStruct
from nodeyard.plan.model import (
    Action,
    Blocked,
    Decision,
    Disruption,
    FieldChange,
    ObjectRef,
    Plan,
    Planned,
    Verb,
    Write,
)
from nodeyard.runtime.capability import (
    Aggregate,
    Capability,
    Event,
    Explain,
    Kind,
    PeerOperator,
    Report,
    Roots,
    Rule,
    StatusWrite,
    Watch,
)

GROUP = "labels.test"
API_VERSION = "labels.test/v1"
RULE = "labels.test/rule"
TEAM = "labels.test/team"
PEER = "labels-peer"


class RuleSpec(PlainStruct, frozen=True):
    team: str = ""
    disruptive: bool = False
    not_before: datetime | None = None
    unbearable: bool = False


class RuleStatus(PlainStruct, frozen=True, omit_defaults=True):
    labelled: int | None = None
    observed_generation: int | None = None
    refused: str | None = None


class LabelRule(NullableStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: RuleSpec = RuleSpec()
    status: RuleStatus = RuleStatus()


RULES = Resource(GROUP, "v1", "labelrules", "LabelRule", False, LabelRule)
_NODES = NODES.decoded_as(Node)


@dataclass(frozen=True)
class Snapshot:
    rule: LabelRule
    nodes: tuple[Node, ...]


def collect(view, key, _now):
    rule = view.get("LabelRule", key)
    return None if rule is None else Snapshot(rule, tuple(view.indexed("Node", "rule", key)))


def plan(snapshot, now, explain):
    rule = snapshot.rule
    if rule.spec.unbearable:
        raise ValueError("the planner cannot bear this rule")
    wanted, start = rule.spec.team, rule.spec.not_before
    is_waiting = start is not None and now < start
    found = [node for node in snapshot.nodes if node.metadata.labels.get(TEAM) != wanted]
    todo = () if is_waiting else found
    actions = tuple(_action(node, rule) for node in todo)
    writes = {
        node.metadata.name: Write(
            body={"metadata": {"labels": {TEAM: wanted}}}, resource_version=node.metadata.resource_version
        )
        for node in todo
    }
    blocked = (
        (Blocked(object=ref(rule), reason="TooEarly", facts=message("TooEarly", until=str(start))),)
        if is_waiting
        else ()
    )
    decisions = tuple(Decision.of(each, message("Ruled", team=wanted)) for each in explain)
    wake_at = start if is_waiting else None
    return Planned(
        plan=Plan(
            capability="labels",
            key=rule.metadata.name,
            actions=actions,
            blocked=blocked,
            decisions=decisions,
            wake_at=wake_at,
        ),
        writes=writes,
        is_final=True,
    )


def _action(node, rule):
    name = node.metadata.name
    return Action(
        id=name,
        verb=Verb.PATCH,
        object=ObjectRef(api_version="v1", kind="Node", name=name, uid=node.metadata.uid),
        reason="Labelled",
        facts=message("Labelled", team=rule.spec.team),
        diff=(FieldChange(path=f"metadata.labels[{TEAM}]", from_=node.metadata.labels.get(TEAM), to=rule.spec.team),),
        disruption=Disruption.REPLACES if rule.spec.disruptive else Disruption.NONE,
    )


def ref(rule):
    return ObjectRef(api_version=API_VERSION, kind="LabelRule", name=rule.metadata.name, uid=rule.metadata.uid)


def status(snapshot, plan, outcome, _now):
    changed = {each.action.object.name for each in outcome.results if each.result is Result.DONE}
    wanted = snapshot.rule.spec.team
    labelled = sum(node.metadata.labels.get(TEAM) == wanted or node.metadata.name in changed for node in snapshot.nodes)
    found = {"labelled": labelled, "observedGeneration": snapshot.rule.metadata.generation}
    if plan.blocked:
        found["refused"] = plan.blocked[0].reason
    return [StatusWrite(object=ref(snapshot.rule), status=found)]


def events(snapshot, _plan, outcome):
    done = sorted(each.action.object.name for each in outcome.results if each.result is Result.DONE)
    if not done:
        return []
    return [Event(ref(snapshot.rule), "Normal", "Labelled", f"{len(done)} nodes: {', '.join(done[:10])}")]


def report(snapshot, plan, outcome, now):
    return Report(status(snapshot, plan, outcome, now), events(snapshot, plan, outcome))


def _rule_keys(old, new):
    if old is not None and new is not None and _meaning(old) == _meaning(new):
        return ()
    return ((new or old).metadata.name,)


def _meaning(rule):
    return (rule.metadata.generation, rule.metadata.annotations, rule.metadata.uid)


def _node_keys(old, new):
    marks = [(node.metadata.labels.get(RULE), node.metadata.labels.get(TEAM)) for node in (old, new) if node]
    if len(marks) == 2 and marks[0] == marks[1]:
        return ()
    return {rule for rule, _ in marks if rule}


def rules_of(node):
    rule = node.metadata.labels.get(RULE)
    return (rule,) if rule else ()


def find_peer(view, now):
    for lease in view.all("Lease"):
        renewed = datetime.fromisoformat(lease["spec"]["renewTime"].replace("Z", "+00:00"))
        if now - renewed < timedelta(seconds=15):
            return PeerOperator("labels-peer", "Scale it down first.", renewed + timedelta(seconds=15))
    return None


def definition():
    text = {"type": "string"}
    spec = {
        "team": text,
        "disruptive": {"type": "boolean"},
        "notBefore": {"type": "string", "format": "date-time"},
        "unbearable": {"type": "boolean"},
    }
    found = {"labelled": {"type": "integer"}, "observedGeneration": {"type": "integer"}, "refused": text}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "labelrules.labels.test"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"kind": "LabelRule", "plural": "labelrules", "singular": "labelrule"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {"type": "object", "properties": spec},
                                "status": {"type": "object", "properties": found},
                            },
                        }
                    },
                }
            ],
        },
    }


LABELS = Capability(
    name="labels",
    kinds=(Kind(RULES, definition),),
    watches=(
        Watch(RULES, _rule_keys),
        Watch(_NODES, _node_keys, indexes={"rule": rules_of}),
        Watch(LEASES, lambda _old, _new: (), field_selector=f"metadata.name={PEER}"),
    ),
    aggregates=(
        Aggregate("nodes", "Node", lambda: 0, rules_of, lambda total, _node: total + 1, lambda total, _node: total - 1),
    ),
    all_keys=lambda view: [rule.metadata.name for rule in view.all("LabelRule")],
    collect=collect,
    plan=plan,
    report=report,
    rbac=(
        Rule(GROUP, ("labelrules",), ("get", "list", "watch")),
        Rule(GROUP, ("labelrules/status",), ("patch",)),
        Rule("", ("nodes",), ("get", "list", "watch", "patch")),
        Rule("coordination.k8s.io", ("leases",), ("list", "watch")),
    ),
    managed_nodes=lambda snapshot: len(snapshot.nodes),
    replaces=find_peer,
    roots=Roots(lambda view, key: [each for each in [view.get("LabelRule", key)] if each is not None]),
    explain=Explain(lambda view, ref: [ref.name] if ref.kind == "LabelRule" else []),
)


def rule(name, team, *, annotations=None, **spec):
    return {
        "apiVersion": API_VERSION,
        "kind": "LabelRule",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"team": team, **spec},
    }


def node(name, rule_name, **labels):
    return {"metadata": {"name": name, "labels": {RULE: rule_name, **labels}}}
