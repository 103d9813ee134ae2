"""Each verb on a server, and the callback with the answer for the overlay."""

import pytest

from nodeyard.apply.outcome import Result
from nodeyard.client.errors import NotFound
from nodeyard.client.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS
from nodeyard.plan.model import ObjectRef, Verb, Write

from ...builders.plans import action, config_ref, node_ref, planned, pod_ref
from .worlds import NoAnswer, patch, status


def only(outcome):
    (result,) = outcome.results
    return result


async def test_a_created_object_has_the_name_of_its_reference(world):
    write = Write(body={"data": {"a": "1"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, config_ref("c")), write))))
    assert result.result is Result.DONE
    made = await world.client.get(CONFIG_MAPS, "c", "default")
    assert made["data"] == {"a": "1"}
    assert made["metadata"]["managedFields"][0]["manager"] == "nodeyard-tests"
    assert world.written == [result.answer] == [made]


async def test_an_object_that_exists_as_wanted_counts_as_created(world):
    await world.config("c", a="1", theirs="2")
    write = Write(body={"data": {"a": "1"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, config_ref("c")), write))))
    assert result.result is Result.DONE
    assert result.answer["data"] == {"a": "1", "theirs": "2"}


async def test_an_object_that_exists_otherwise_is_a_conflict(world):
    await world.config("c", a="2")
    write = Write(body={"data": {"a": "1"}})
    result = only(await world.apply(planned((action("a", Verb.CREATE, config_ref("c")), write))))
    assert result.result is Result.CONFLICT
    assert "already exists" in result.message


async def test_applied_fields_become_ours_and_others_stay(world):
    await world.config("c", theirs="2")
    write = Write(body={"data": {"a": "1"}})
    result = only(await world.apply(planned((action("a", Verb.APPLY, config_ref("c")), write))))
    assert result.result is Result.DONE
    assert result.answer["data"] == {"a": "1", "theirs": "2"}
    assert [each["operation"] for each in result.answer["metadata"]["managedFields"]] == ["Apply", "Update"]


async def test_an_apply_without_force_keeps_foreign_fields(world):
    mine = world.client.managed_by("they")
    await mine.apply(CONFIG_MAPS, {"metadata": {"name": "c", "namespace": "default"}, "data": {"a": "2"}})
    write = Write(body={"data": {"a": "1"}}, force=False)
    result = only(await world.apply(planned((action("a", Verb.APPLY, config_ref("c")), write))))
    assert result.result is Result.CONFLICT
    assert '"they"' in result.message


def first(**data):
    return planned((action("a", Verb.APPLY, config_ref("c")), Write(body={"data": data}, is_first=True)))


async def test_a_first_apply_creates_a_missing_object(world):
    result = only(await world.apply(first(a="1")))
    assert result.result is Result.DONE
    assert result.answer["data"] == {"a": "1"}


async def test_a_first_apply_keeps_a_foreign_object(world):
    made = await world.config("c", theirs="2")
    result = only(await world.apply(first(a="1")))
    assert result.result is Result.FAILED
    assert result.message == "exists and is not ours: rename or delete it"
    assert await world.client.get(CONFIG_MAPS, "c", "default") == made


async def test_a_first_apply_continues_with_our_own_object(world):
    await world.apply(first(a="1", b="1"))
    result = only(await world.apply(first(a="2")))
    assert result.result is Result.DONE
    assert result.answer["data"] == {"a": "2"}


async def test_a_first_apply_is_retried_while_the_existing_object_is_unreadable(world):
    await world.config("c", theirs="2")
    world.transport.watch_error["GET"] = [status(503, "ServiceUnavailable"), NoAnswer(after_sending=False)]
    result = only(await world.apply(first(a="1")))
    assert result.result is Result.FAILED
    assert "not ours" in result.message
    assert world.transport.count("PATCH") == 0


async def test_a_merge_patch_changes_only_its_fields(world):
    await world.node("n1", spec={"unschedulable": True})
    result = only(await world.apply(planned((action("n1"), patch()))))
    assert result.answer["metadata"]["labels"]["ours"] == "1"
    assert result.answer["spec"]["unschedulable"] is True


async def test_a_json_patch_is_sent_as_one(world):
    made = await world.node("n1", metadata={"name": "n1", "labels": {"a": "1"}})
    operations = [{"op": "replace", "path": "/metadata/labels/a", "value": "2"}]
    write = patch(operations, json_patch=True, resource_version=made["metadata"]["resourceVersion"])
    ref = node_ref("n1", made["metadata"]["uid"])
    result = only(await world.apply(planned((action("n1", object=ref), write))))
    assert result.result is Result.DONE
    assert result.answer["metadata"]["labels"]["a"] == "2"


async def test_status_is_patched_through_its_subresource(world):
    await world.node("n1")
    write = patch({"status": {"capacity": {"cpu": "4"}}}, subresource="status")
    result = only(await world.apply(planned((action("n1"), write))))
    assert result.answer["status"]["capacity"] == {"cpu": "4"}


async def test_another_field_manager_may_be_named(world):
    write = Write(body={"data": {"a": "1"}}, field_manager="someone")
    result = only(await world.apply(planned((action("a", Verb.APPLY, config_ref("c")), write))))
    assert result.answer["metadata"]["managedFields"][0]["manager"] == "someone"


async def test_a_deleted_object_is_gone_and_passed_to_the_cache(world):
    made = await world.config("c")
    ref = config_ref("c", uid=made["metadata"]["uid"])
    result = only(await world.apply(planned((action("a", Verb.DELETE, ref), Write()))))
    assert result.result is Result.DONE
    assert world.deleted == [ref]
    with pytest.raises(NotFound):
        await world.client.get(CONFIG_MAPS, "c", "default")


async def test_an_object_held_by_finalizers_is_passed_to_the_cache_as_written(world):
    finalizer = {"name": "c", "namespace": "default", "finalizers": ["example.com/x"]}
    await world.client.create(CONFIG_MAPS, {"metadata": finalizer})
    await world.apply(planned((action("a", Verb.DELETE, config_ref("c")), Write())))
    assert world.deleted == []
    assert world.written[0]["metadata"]["deletionTimestamp"]


async def test_a_terminating_namespace_is_passed_to_the_cache_as_written(world):
    await world.client.create(NAMESPACES, {"metadata": {"name": "crowd"}})
    ref = ObjectRef(api_version="v1", kind="Namespace", name="crowd")
    await world.apply(planned((action("a", Verb.DELETE, ref), Write())))
    assert world.deleted == []
    assert world.written[0]["metadata"]["deletionTimestamp"]


async def test_a_missing_object_needs_no_deletion(world):
    result = only(await world.apply(planned((action("a", Verb.DELETE, config_ref("c")), Write()))))
    assert (result.result, result.message) == (Result.DONE, "already deleted")


async def test_an_evicted_pod_goes(world):
    await world.node("n1")
    made = await world.pod("p")
    ref = pod_ref("p", uid=made["metadata"]["uid"])
    write = Write(body={"gracePeriodSeconds": 7})
    result = only(await world.apply(planned((action("a", Verb.EVICT, ref), write))))
    assert result.result is Result.DONE
    going = await world.client.get(PODS, "p", "default")
    assert going["metadata"]["deletionGracePeriodSeconds"] == 7


async def test_a_pod_that_is_gone_needs_no_eviction(world):
    result = only(await world.apply(planned((action("a", Verb.EVICT, pod_ref("p")), Write()))))
    assert result.result is Result.DONE


async def test_a_dry_run_is_sent_to_the_server_and_changes_nothing(world):
    await world.node("n1")
    create = action("c", Verb.CREATE, config_ref("c")), Write(body={"data": {"a": "1"}})
    outcome = await world.apply(planned((action("n1"), patch()), create), dry_run=True, may_write=lambda: False)
    assert outcome.is_complete
    assert outcome.of("n1").answer["metadata"]["labels"]["ours"] == "1"
    assert "ours" not in (await world.client.get(NODES, "n1"))["metadata"].get("labels", {})
    assert world.written == []
