"""Binding; the expected answers are those of kube-apiserver v1.36."""

import pytest

from nodeyard.apiserver.errors import ApiError

NAMESPACE = "/api/v1/namespaces/default"
SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def binding(name="a", node="n1", kind="", **metadata):
    target = {key: value for key, value in (("kind", kind), ("name", node)) if value}
    return {"metadata": {"name": name, **metadata}, "target": target}


async def bind(env, body, pod="a", query=""):
    return await env.call("POST", f"{NAMESPACE}/pods/{pod}/binding{query}", body)


async def refusal(awaitable):
    with pytest.raises(ApiError) as refused:
        await awaitable
    return refused.value


async def test_a_pod_is_given_its_node(env):
    await env.pod("a")
    assert await bind(env, binding(kind="Node")) == SUCCESS
    pod = await env.get(f"{NAMESPACE}/pods/a")
    assert pod["spec"]["nodeName"] == "n1"
    assert pod["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": env.moment()}
    ]


async def test_a_bound_pod_is_found_by_its_node(env):
    await env.pod("a")
    await bind(env, binding())
    found = await env.get(f"{NAMESPACE}/pods?fieldSelector=spec.nodeName%3Dn1")
    assert [pod["metadata"]["name"] for pod in found["items"]] == ["a"]


async def test_labels_and_annotations_of_the_binding_go_to_the_pod(env):
    await env.pod("a", labels={"app": "web", "zone": "old"})
    await bind(env, binding(labels={"zone": "new"}, annotations={"note": "hello"}))
    metadata = (await env.get(f"{NAMESPACE}/pods/a"))["metadata"]
    assert metadata["labels"] == {"app": "web", "zone": "new"}
    assert metadata["annotations"] == {"note": "hello"}


async def test_the_old_way_of_binding_still_works(env):
    await env.pod("a")
    assert await env.call("POST", f"{NAMESPACE}/bindings", binding()) == SUCCESS
    error = await refusal(env.call("POST", f"{NAMESPACE}/bindings", binding(name="")))
    assert (error.code, error.message) == (400, "Name parameter required.")


async def test_a_pod_is_bound_once(env):
    await env.pod("a")
    await bind(env, binding())
    error = await refusal(bind(env, binding(node="n2")))
    assert error.code == 409
    assert error.message == (
        'Operation cannot be fulfilled on pods/binding "a": pod a is already assigned to node "n1"'
    )
    assert error.details == {"name": "a", "kind": "pods/binding"}


async def test_a_pod_with_gates_or_on_its_way_out_is_not_bound(env):
    await env.pod("a", spec={"schedulingGates": [{"name": "example.com/wait"}]})
    error = await refusal(bind(env, binding()))
    assert error.message.endswith('"a": pod a has non-empty .spec.schedulingGates')
    await env.pod("b", finalizers=["example.com/held"])
    await env.delete(f"{NAMESPACE}/pods/b")
    error = await refusal(bind(env, binding("b"), "b"))
    assert error.message.endswith('"b": pod b is being deleted, cannot be assigned to a host')


async def test_a_dry_run_binds_nothing(env):
    await env.pod("a")
    assert await bind(env, binding(), query="?dryRun=All") == SUCCESS
    assert "nodeName" not in (await env.get(f"{NAMESPACE}/pods/a"))["spec"]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (binding(name="b"), 400, "name in URL does not match name in Binding object"),
        (binding(node=""), 500, "target.name: Required value"),
        (binding(kind="Foo"), 500, 'target.kind: Unsupported value: "Foo": supported values: "Node", "<empty>"'),
        (
            binding(node="", kind="Foo"),
            500,
            '[target.kind: Unsupported value: "Foo": supported values: "Node", "<empty>", target.name: Required value]',
        ),
    ],
)
async def test_an_invalid_binding_is_refused(env, body, code, message):
    await env.pod("a")
    error = await refusal(bind(env, body))
    assert (error.code, error.message) == (code, message)


async def test_a_missing_pod_is_not_found(env):
    error = await refusal(bind(env, binding("nobody"), "nobody"))
    assert (error.code, error.message) == (404, 'pods "nobody" not found')


async def test_uid_and_revision_of_the_binding_are_preconditions(env):
    metadata = (await env.pod("a"))["metadata"]
    prefix = (
        'Operation cannot be fulfilled on pods "a": StorageError: invalid object, Code: 4, Key: '
        "/registry/pods/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
    )
    error = await refusal(bind(env, binding(uid="x")))
    assert error.message == f"{prefix}UID in precondition: x, UID in object meta: {metadata['uid']}"
    error = await refusal(bind(env, binding(resourceVersion="3")))
    revision = metadata["resourceVersion"]
    assert error.message == (f"{prefix}ResourceVersion in precondition: 3, ResourceVersion in object meta: {revision}")
    assert await bind(env, binding(uid=metadata["uid"], resourceVersion=revision)) == SUCCESS
