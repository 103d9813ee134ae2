"""Mutating webhooks: patches, order and reinvocation."""

import base64
import json
import threading
from typing import Any

import pytest

from nodeyard.apiserver.admission.attributes import Attributes
from nodeyard.apiserver.admission.namespaces import Namespaces
from nodeyard.apiserver.admission.webhooks import mutating
from nodeyard.apiserver.admission.webhooks.configurations import MUTATING, Configurations
from nodeyard.apiserver.admission.webhooks.dispatcher import Dispatcher
from nodeyard.apiserver.admission.webhooks.mutating import MutatingWebhooks
from nodeyard.kube.patch import json_patch

FAILED = 'failed calling webhook "h.example.com": '


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def adding(key: str, value: str = "y") -> dict[str, Any]:
    return patch({"op": "add", "path": f"/data/{key}", "value": value})


async def test_a_patch_changes_the_object_and_later_webhooks_see_it(cluster, server) -> None:
    cluster.hook(url=server.on("/one", adding("one")), is_mutating=True, at="one.example.com")
    cluster.hook(url=server.on("/two", adding("two")), is_mutating=True, at="two.example.com")
    cluster.hook(url=server.on("/see", {}), at="see.example.com")
    attributes = await cluster.admit()
    assert attributes.object is not None
    assert attributes.object["data"] == {"a": "b", "one": "y", "two": "y"}
    shown = {url.partition("?")[0]: review["request"]["object"]["data"] for url, _, review in server.asked}
    assert shown["/two"] == {"a": "b", "one": "y"}
    assert shown["/see"] == attributes.object["data"]


async def test_a_large_patch_is_applied_off_the_event_loop(cluster, server, monkeypatch) -> None:
    threads: list[threading.Thread] = []

    def apply(obj: Any, operations: Any) -> Any:
        threads.append(threading.current_thread())
        return json_patch(obj, operations)

    monkeypatch.setattr(mutating, "json_patch", apply)
    operations = ({"op": "add", "path": f"/data/k{number}", "value": "v"} for number in range(3000))
    cluster.hook(url=server.on("/many", patch(*operations)), is_mutating=True)

    attributes = await cluster.admit()

    assert attributes.object is not None
    assert len(attributes.object["data"]) == 3001
    assert attributes.is_large
    assert threading.main_thread() not in threads


BAD_PATCHES = {
    "a patch without type": (
        {"patch": base64.b64encode(b"[]").decode()},
        f"{FAILED}received invalid webhook response: webhook returned response.patch but not response.patchType",
    ),
    "a type without patch": (
        {"patchType": "JSONPatch"},
        f"{FAILED}received invalid webhook response: webhook returned response.patchType but not response.patch",
    ),
    "a type nobody knows": ({**adding("x"), "patchType": "Foo"}, f'{FAILED}unsupported patch type "Foo"'),
    "no base64": (
        {"patchType": "JSONPatch", "patch": "!!!"},
        f"{FAILED}failed to call webhook: illegal base64 data at input byte 0",
    ),
    "no JSON": (
        {"patchType": "JSONPatch", "patch": base64.b64encode(b"{nope").decode()},
        f"{FAILED}received undecodable patch in webhook response: ",
    ),
    "a patch that does not apply": (patch({"op": "remove", "path": "/data/nope"}), ""),
}


@pytest.mark.parametrize(("answer", "message"), BAD_PATCHES.values(), ids=BAD_PATCHES.keys())
async def test_a_patch_that_cannot_be_used_refuses_the_write(
    cluster, server, answer: dict[str, Any], message: str
) -> None:
    cluster.hook(url=server.on("/patch", answer), is_mutating=True)
    error = await cluster.refusal()
    assert error.code == 500
    assert error.message.startswith(f"Internal error occurred: {message}")


async def test_a_deletion_cannot_be_patched(cluster, server) -> None:
    cluster.hook(url=server.on("/patch", adding("x")), is_mutating=True)
    assert "attempted to modify the object" in (await cluster.refusal(operation="DELETE")).message


async def test_a_webhook_with_reinvocation_sees_later_changes(cluster, server) -> None:
    cluster.hook(url=server.on("/first", {}), is_mutating=True, at="first.example.com", reinvocationPolicy="IfNeeded")
    cluster.hook(url=server.on("/never", {}), is_mutating=True, at="never.example.com")
    cluster.hook(url=server.on("/second", adding("x")), is_mutating=True, at="second.example.com")
    await cluster.admit()
    assert [url.partition("?")[0] for url, _, _ in server.asked] == ["/first", "/never", "/second", "/first"]
    assert server.asked[-1][2]["request"]["object"]["data"] == {"a": "b", "x": "y"}


async def test_no_webhook_is_reinvoked_without_changes(cluster, server) -> None:
    cluster.hook(url=server.on("/first", adding("a", "b")), is_mutating=True, reinvocationPolicy="IfNeeded")
    await cluster.admit()
    assert len(server.asked) == 1


async def test_the_built_in_plugins_run_again_between_the_rounds(cluster, server) -> None:
    class Stamp:
        runs = 0

        async def mutate(self, attributes: Attributes) -> None:
            self.runs += 1
            assert attributes.object is not None
            data = {**attributes.object["data"], "stamp": "yes"}
            attributes.object = {**attributes.object, "data": data}

        async def validate(self, attributes: Attributes) -> None:
            return

    stamp = Stamp()
    configurations = Configurations(cluster.store, MUTATING, cluster.no_expressions)
    dispatcher = Dispatcher(Namespaces(cluster.store), cluster.client, lambda attributes, version: {})
    webhooks = MutatingWebhooks(configurations, dispatcher, before=[stamp])
    cluster.hook(
        url=server.on("/only", adding("x")), is_mutating=True, at="only.example.com", reinvocationPolicy="IfNeeded"
    )
    attributes = cluster.write()
    await webhooks.mutate(attributes)
    assert stamp.runs == 1
    assert len(server.asked) == 2, "the stamp changed the object after the webhook had seen it"
    assert server.asked[1][2]["request"]["object"]["data"] == {"a": "b", "x": "y", "stamp": "yes"}
