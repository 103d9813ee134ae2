"""On nyallocator's own definition, which has no field of ours: used as it is; what it lacks is not sent for ever."""

import pytest
from tests.builders.yards import TEMPLATES, labels

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.testing import foreign
from nodeyard.testing.rest import RestError

TEXT, NUMBER, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def some(required=(), **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def many(item):
    return {"type": "array", "items": item}


def upstream():
    """The fields that nyallocator v1 documents, and what it requires of them."""
    expression = some(["key", "operator"], key=TEXT, operator=TEXT, values=many(TEXT))
    taint = some(["effect", "key"], key=TEXT, value=TEXT, effect=TEXT, timeAdded={**TEXT, "format": "date-time"})
    template = some(metadata=some(labels=TEXTS, annotations=TEXTS), spec=some(taints=many(taint)))
    spec = some(
        ["nodes", "priority", "selector"],
        dryRun=YES,
        priority=NUMBER,
        nodes={**NUMBER, "minimum": 1},
        selector=some(matchLabels=TEXTS, matchExpressions=many(expression)),
        template=template,
    )
    condition = some(
        ["lastTransitionTime", "message", "reason", "status", "type"],
        type=TEXT, status=TEXT, reason=TEXT, message=TEXT, observedGeneration={**NUMBER, "format": "int64"},
        lastTransitionTime={**TEXT, "format": "date-time"},
    )  # fmt: skip
    reconcile_info = some(observedGeneration={**NUMBER, "format": "int64"})
    status = some(
        ["currentNodes", "reconcileInfo"],
        conditions=many(condition),
        currentNodes=NUMBER,
        reconcileInfo=reconcile_info,
    )
    definition = NODE_TEMPLATE.render()
    version = {
        "name": names.VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": some(spec=spec, status=status)},
    }
    kept = {key: value for key, value in definition["spec"].items() if key in ("group", "scope")}
    kinds = {"kind": names.KIND, "listKind": f"{names.KIND}List", "plural": names.PLURAL, "singular": "nodetemplate"}
    return {**definition, "spec": {**kept, "names": kinds, "versions": [version]}}


def knows_priority_default(rest):
    """Ours gives a priority; nyallocator's asks for one."""
    spec = {"nodes": 1, "selector": {}}
    body = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": {"name": "probe"}, "spec": spec}
    try:
        rest.call("POST", f"{TEMPLATES}?dryRun=All", body)
    except RestError as error:
        if error.status != 422:
            raise
        return False
    return True


@pytest.fixture
def upstream_definition(api, node_templates, eventually):
    foreign.install(api.rest, [upstream()])
    eventually(lambda: not knows_priority_default(api.rest), "nyallocator's definition is served")
    yield
    foreign.install(api.rest, [NODE_TEMPLATE.render()])
    eventually(lambda: knows_priority_default(api.rest), "ours is served again")


def test_templates_are_served_and_their_status_has_what_the_definition_knows(upstream_definition, yard, operator):
    yard.spares(3)
    operator("spares")
    web = yard.template("web", 2, priority=1)

    yard.until_owned(web, 2)

    status = yard.see(web)["status"]
    assert set(status) == {"conditions", "currentNodes", "reconcileInfo"}
    assert yard.condition(web, "Sufficient") == ("True", "SufficientNodes")


def test_fields_that_the_definition_drops_are_not_sent_again_and_again(upstream_definition, yard, operator, eventually):
    nodes = yard.spares(4)
    running = operator("spares")
    web = yard.template("web", 2, priority=1)
    yard.until_owned(web, 2)
    eventually(lambda: sum(names.SPARE_LABEL in labels(node) for node in yard.all()) == 2, "the others are labelled")
    yard.until_settled()
    written = at_rest(running, eventually)

    for mark in ("first", "second"):
        plans = running.metric("nodeyard_plan_seconds_count")
        yard.patch(nodes[3], {"metadata": {"labels": {"mark": mark}}})
        eventually(lambda before=plans: running.metric("nodeyard_plan_seconds_count") > before, "it is planned with")
    # What only a dropped field would tell: the nodes change, their number does not.
    (name, _) = (node["metadata"]["name"] for node in yard.owned(web))
    yard.rest.call("DELETE", f"/api/v1/nodes/{name}")
    eventually(lambda: len(yard.owned(web)) == 2, "another takes its place")
    yard.until_owned(web, 2)

    after = at_rest(running, eventually)
    statuses = f"patch {names.PLURAL}.{names.GROUP}"
    assert after[statuses] == written[statuses]


def at_rest(running, eventually):
    seen = []

    def is_at_rest():
        seen.append(running.written())
        return len(seen) >= 10 and all(each == seen[-1] for each in seen[-6:])

    eventually(is_at_rest, "nothing is written any more")
    return seen[-1]
