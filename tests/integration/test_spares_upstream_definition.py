"""nyallocator's own CRD works unchanged; status fields that it lacks are not sent again and again."""

import contextlib

import pytest
from tests.builders.spares_env import TEMPLATES, labels

from nodeyard.capabilities.spares import names
from nodeyard.capabilities.spares.definition import NODE_TEMPLATE
from nodeyard.testing import third_party_crds
from nodeyard.testing.rest import RestError
from nodeyard.testing.session import MERGE

TEXT, NUMBER, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def some(required=(), **properties):
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def many(item):
    return {"type": "array", "items": item}


def upstream():
    """Return the schema of the fields that nyallocator v1 documents."""
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
    """Nodeyard's CRD defaults the priority; nyallocator's requires it."""
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
    third_party_crds.install(api.rest, [upstream()])
    eventually(lambda: not knows_priority_default(api.rest), "nyallocator's definition is served")
    yield
    third_party_crds.install(api.rest, [NODE_TEMPLATE.render()])
    eventually(lambda: knows_priority_default(api.rest), "ours is served again")


def test_templates_of_the_upstream_crd_are_served_and_status_has_its_fields(upstream_definition, spares_env, operator):
    spares_env.spares(3)
    operator("spares")
    web = spares_env.template("web", 2, priority=1)

    spares_env.wait_for_owned(web, 2)

    status = spares_env.get_template(web)["status"]
    assert set(status) == {"conditions", "currentNodes", "reconcileInfo"}
    assert spares_env.condition(web, "Sufficient") == ("True", "SufficientNodes")


def test_fields_that_the_definition_drops_are_not_sent_again_and_again(
    upstream_definition, spares_env, operator, eventually
):
    nodes = spares_env.spares(4)
    running = operator("spares")
    web = spares_env.template("web", 2, priority=1)
    spares_env.wait_for_owned(web, 2)
    eventually(
        lambda: sum(names.SPARE_LABEL in labels(node) for node in spares_env.all()) == 2, "the others are labelled"
    )
    spares_env.wait_until_nodes_ready()
    written = at_rest(running, eventually)

    for mark in ("first", "second"):
        plans = running.metric("nodeyard_plan_seconds_count")
        spares_env.patch(nodes[3], {"metadata": {"labels": {"mark": mark}}})
        eventually(lambda before=plans: running.metric("nodeyard_plan_seconds_count") > before, "it is planned with")
    # Only a dropped field shows this: the nodes change, their number does not.
    (name, _) = (node["metadata"]["name"] for node in spares_env.owned(web))
    spares_env.rest.call("DELETE", f"/api/v1/nodes/{name}")
    eventually(lambda: len(spares_env.owned(web)) == 2, "another takes its place")
    spares_env.wait_for_owned(web, 2)

    after = at_rest(running, eventually)
    statuses = f"patch {names.PLURAL}.{names.GROUP}"
    assert after[statuses] == written[statuses]


@pytest.fixture
def original_policy(api, eventually):
    """The policy of nyallocator's default install, which admits claims only by its own account."""
    group, name = "/apis/admissionregistration.k8s.io/v1", "deny-edit-nyallocator-label"
    label = f"variables.%s.?metadata.labels['{names.TEMPLATE_LABEL}'].orValue('')"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["nodes"]}]
    policy = {
        "matchConstraints": {"resourceRules": rules},
        "variables": [{"name": "now", "expression": "object"}, {"name": "before", "expression": "oldObject"}],
        "validations": [{"expression": f"{label % 'now'} == {label % 'before'}", "message": "only nyallocator may"}],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    paths = [f"{group}/validatingadmissionpolicies", f"{group}/validatingadmissionpolicybindings"]
    for path, kind, spec in zip(paths, ("", "Binding"), (policy, binding), strict=True):
        kind = f"ValidatingAdmissionPolicy{kind}"
        body = {"apiVersion": path[6:].rpartition("/")[0], "kind": kind, "metadata": {"name": name}, "spec": spec}
        api.rest.call("POST", path, body)
    api.rest.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "policy-probe"}})
    probe = {"metadata": {"labels": {names.TEMPLATE_LABEL: "probe"}}}

    def is_on():
        try:
            api.rest.call("PATCH", "/api/v1/nodes/policy-probe?dryRun=All", probe, content_type=MERGE)
        except RestError:
            return True
        return False

    def remove():
        for path in paths:
            with contextlib.suppress(RestError):
                api.rest.call("DELETE", f"{path}/{name}")
        eventually(lambda: not is_on(), "the policy is gone")

    eventually(is_on, "the policy is enforced")
    yield remove
    remove()
    api.rest.call("DELETE", "/api/v1/nodes/policy-probe")


def test_a_claim_that_the_policy_of_nyallocator_denies_is_reported_by_its_name_and_retried_after_its_removal(
    upstream_definition, original_policy, spares_env, operator, eventually
):
    spares_env.spares(1)
    operator("spares")
    web = spares_env.template("web", 1, priority=1)

    eventually(lambda: spares_env.condition(web, "Blocked") == ("True", "AdmissionDenied"), "the denial is told")

    (blocked,) = [each for each in spares_env.get_template(web)["status"]["conditions"] if each["type"] == "Blocked"]
    assert "deny-edit-nyallocator-label" in blocked["message"]
    assert spares_env.owned(web) == []
    original_policy()
    spares_env.wait_for_owned(web, 1)
    eventually(lambda: spares_env.condition(web, "Blocked") == ("", ""), "the denial is told no more")


def at_rest(running, eventually):
    seen = []

    def is_at_rest():
        seen.append(running.write_counts())
        return len(seen) >= 10 and all(each == seen[-1] for each in seen[-6:])

    eventually(is_at_rest, "nothing is written any more")
    return seen[-1]
