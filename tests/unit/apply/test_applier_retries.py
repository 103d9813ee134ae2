"""Server and network faults: bounded retries, and lost answers resolved by a GET."""

import msgspec
import pytest

from nodeyard.apply.applier import Applier
from nodeyard.apply.outcome import Result
from nodeyard.apply.retry import RetryPolicy
from nodeyard.client.api import Client
from nodeyard.client.resources import CONFIG_MAPS, NODES, PODS, SECRETS
from nodeyard.plan.model import ObjectRef, Verb, Write

from ...builders.plans import action, config_ref, node_ref, planned, pod_ref
from .worlds import NoAnswer, patch, status

LOST = NoAnswer(after_sending=True)
NEVER_SENT = NoAnswer(after_sending=False)
NOT_CONNECTED = NoAnswer(after_sending=False, may_have_run=False)


def only(outcome):
    (result,) = outcome.results
    return result


@pytest.mark.parametrize("trouble", [status(429, retry_after=1), status(500), status(503), NOT_CONNECTED, NEVER_SENT])
async def test_rejected_requests_are_retried(world, trouble):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [trouble, trouble]
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert result.result is Result.DONE
    assert world.transport.count("PATCH") == 3


async def test_a_long_pause_holds_for_later_plans_of_the_object_too_and_for_no_other(world):
    await world.node("n1")
    await world.node("n2")
    world.transport.watch_error["PATCH"] = [status(429, retry_after=30)]
    first = only(await world.apply(planned((action("n1"), patch()))))
    await world.clock.advance(20)
    again, other = (await world.apply(planned((action("n1"), patch()), (action("n2"), patch())))).results
    assert (again.result, again.message, round(again.retry_after)) == (Result.FAILED, first.message, 10)
    assert (other.result, world.transport.count("PATCH")) == (Result.DONE, 2)
    await world.clock.advance(10)
    assert only(await world.apply(planned((action("n1"), patch())))).result is Result.DONE


async def test_a_pause_of_an_hour_is_kept_for_five_minutes(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(429, retry_after=3600)]
    await world.apply(planned((action("n1"), patch())))
    await world.clock.advance(299)
    assert only(await world.apply(planned((action("n1"), patch())))).result is Result.FAILED
    await world.clock.advance(1)
    assert only(await world.apply(planned((action("n1"), patch())))).result is Result.DONE


async def test_the_pause_the_server_asks_for_is_kept(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(429, retry_after=4)]
    begun = world.clock.monotonic()
    await world.apply(planned((action("n1"), patch())))
    assert 4 <= world.clock.monotonic() - begun <= 5


async def test_after_a_few_attempts_it_is_left_to_the_queue(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(503, retry_after=2)] * 9
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert (result.result, result.message, result.retry_after) == (Result.FAILED, "trouble", 2)
    assert world.transport.count("PATCH") == RetryPolicy().attempts


async def test_a_long_pause_is_not_waited_for_within_a_pass(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [status(429, retry_after=60)]
    begun = world.clock.monotonic()
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert (result.result, result.retry_after) == (Result.FAILED, 60)
    assert world.clock.monotonic() == begun


async def test_a_patch_that_happened_is_found_done(world):
    made = await world.node("n1")
    world.transport.watch_error["PATCH"] = [LOST]
    write = patch(resource_version=made["metadata"]["resourceVersion"])
    result = only(await world.apply(planned((action("n1"), write))))
    assert result.result is Result.DONE
    assert result.answer["metadata"]["labels"]["ours"] == "1"
    assert world.written == [result.answer]
    assert (world.transport.count("PATCH"), world.transport.count("GET")) == (1, 1)


async def test_a_patch_that_did_not_happen_is_sent_again(world):
    made = await world.node("n1")
    world.transport.watch_error["PATCH"] = [NEVER_SENT]
    write = patch(resource_version=made["metadata"]["resourceVersion"])
    result = only(await world.apply(planned((action("n1"), write))))
    assert result.result is Result.DONE
    assert world.transport.count("PATCH") == 2


async def test_a_patch_that_did_not_happen_to_an_object_that_moved_on_is_a_conflict(world):
    made = await world.node("n1")
    await world.client.patch(NODES, "n1", {"metadata": {"labels": {"theirs": "1"}}})
    world.transport.watch_error["PATCH"] = [NEVER_SENT]
    write = patch(resource_version=made["metadata"]["resourceVersion"])
    result = only(await world.apply(planned((action("n1"), write))))
    assert result.result is Result.CONFLICT
    assert world.transport.count("PATCH") == 1


async def test_a_patch_of_an_object_that_is_gone_is_a_conflict(world):
    made = await world.node("n1")
    await world.client.delete(NODES, "n1")
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [NEVER_SENT]
    result = only(await world.apply(planned((action("n1", object=node_ref("n1", made["metadata"]["uid"])), patch()))))
    assert (result.result, result.message) == (Result.CONFLICT, "the connection was cut; the object no longer exists")


@pytest.mark.parametrize("trouble", [LOST, NEVER_SENT], ids=["happened", "did not happen"])
async def test_a_create_without_an_answer_makes_one_object(world, trouble):
    world.transport.watch_error["POST"] = [trouble]
    write = Write(body={"data": {"a": "1"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, config_ref("c")), write))))
    assert result.result is Result.DONE
    assert (await world.client.get(CONFIG_MAPS, "c", "default"))["data"] == {"a": "1"}


async def test_a_secret_is_recognised_though_the_server_writes_it_otherwise(world):
    world.transport.watch_error["POST"] = [LOST]
    ref = ObjectRef(api_version="v1", kind="Secret", name="s", namespace="default")
    write = Write(body={"stringData": {"password": "hunter2"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, ref), write))))
    assert result.result is Result.DONE
    assert (await world.client.get(SECRETS, "s", "default"))["data"] == {"password": "aHVudGVyMg=="}


@pytest.mark.parametrize("trouble", [LOST, NEVER_SENT], ids=["happened", "did not happen"])
async def test_an_apply_without_an_answer_is_done_in_the_end(world, trouble):
    world.transport.watch_error["PATCH"] = [trouble]
    write = Write(body={"data": {"a": "1"}})
    result = only(await world.apply(planned((action("a", Verb.APPLY, config_ref("c")), write))))
    assert result.result is Result.DONE
    assert result.answer["data"] == {"a": "1"}


@pytest.mark.parametrize("trouble", [LOST, NEVER_SENT], ids=["happened", "did not happen"])
async def test_a_deletion_without_an_answer_is_done_in_the_end(world, trouble):
    made = await world.config("c")
    ref = config_ref("c", uid=made["metadata"]["uid"])
    world.transport.watch_error["DELETE"] = [trouble]
    result = only(await world.apply(planned((action("a", Verb.DELETE, ref), Write()))))
    assert result.result is Result.DONE
    assert world.deleted == [ref]


async def test_an_eviction_without_an_answer_is_confirmed_by_the_pod(world):
    await world.node("n1")
    await world.pod("p")
    world.transport.watch_error["POST"] = [LOST]
    result = only(await world.apply(planned((action("a", Verb.EVICT, pod_ref("p")), Write()))))
    assert result.result is Result.DONE
    assert (await world.client.get(PODS, "p", "default"))["metadata"]["deletionTimestamp"]
    assert world.transport.count("POST") == 1


async def test_a_json_patch_that_is_not_idempotent_stays_unknown(world):
    await world.node("n1", spec={"taints": [{"key": "a", "effect": "NoSchedule"}]})
    operations = [{"op": "add", "path": "/spec/taints/-", "value": {"key": "b", "effect": "NoSchedule"}}]
    world.transport.watch_error["PATCH"] = [LOST]
    result = only(await world.apply(planned((action("n1"), patch(operations, json_patch=True)))))
    assert result.result is Result.UNKNOWN
    assert world.transport.count("PATCH") == 1


async def test_a_json_patch_that_may_not_be_repeated_is_not_repeated_after_a_server_error(world):
    await world.node("n1", metadata={"name": "n1", "labels": {"a": "1"}})
    operations = [{"op": "remove", "path": "/metadata/labels/a"}]
    world.transport.watch_error["PATCH"] = [status(504)]
    result = only(await world.apply(planned((action("n1"), patch(operations, json_patch=True)))))
    assert result.result is Result.UNKNOWN
    assert world.transport.count("PATCH") == 1


async def test_a_write_that_cannot_be_confirmed_is_unknown(world):
    await world.node("n1")
    world.transport.watch_error |= {"PATCH": [LOST], "GET": [status(500)] * 9}
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert result.result is Result.UNKNOWN
    assert result.message == "the connection was cut; reading the object failed too: trouble"


async def test_reading_is_tried_more_than_once(world):
    await world.node("n1")
    world.transport.watch_error |= {"PATCH": [LOST], "GET": [status(500), NOT_CONNECTED]}
    assert only(await world.apply(planned((action("n1"), patch())))).result is Result.DONE


async def test_a_create_whose_name_the_server_chooses_cannot_be_confirmed(world):
    world.transport.watch_error["POST"] = [LOST]
    write = Write(body={"metadata": {"generateName": "c-"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, config_ref("")), write))))
    assert result.result is Result.UNKNOWN
    assert "chooses the name" in result.message


class Misfit(msgspec.Struct):
    """A type that decodes no node."""

    metadata: int


@pytest.mark.parametrize("trouble", [[], [LOST]], ids=["answered", "settled"])
async def test_an_answer_that_does_not_decode_does_not_undo_the_write(world, trouble):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = trouble
    misfit = NODES.decoded_as(Misfit)
    applier = Applier(Client(world.transport), "tests", lambda *_: misfit, clock=world.clock)
    result = only(await applier.apply(planned((action("n1"), patch())), may_write=lambda: True))
    assert (result.result, result.answer) == (Result.DONE, None)
    assert (await world.client.get(NODES, "n1"))["metadata"]["labels"]["ours"] == "1"


async def test_a_write_that_gets_no_answer_is_read_soon_and_given_more_time_when_sent_again(world):
    await world.node("n1")
    world.transport.watch_error["PATCH"] = [NEVER_SENT, NEVER_SENT]
    await world.apply(planned((action("n1"), patch())))
    assert world.transport.timeouts["PATCH"] == [10, 20, 30]
    assert world.transport.timeouts["GET"] == [10, 10]
