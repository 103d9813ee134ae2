"""Owners and dependents."""

import pytest

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def exists(env, name):
    return await env.get(f"{CONFIG_MAPS}/{name}") is not None


async def owners_of(env, name):
    found = await env.get(f"{CONFIG_MAPS}/{name}")
    return [reference["name"] for reference in found["metadata"].get("ownerReferences", [])]


async def family(env, *, blocks=None):
    """An owner with two dependents, one of which owns a third object."""
    more = {} if blocks is None else {"blockOwnerDeletion": blocks}
    mother = await env.config_map("mother")
    child = await env.config_map("child", ownerReferences=[env.owner(mother, **more)])
    await env.config_map("sibling", ownerReferences=[env.owner(mother, **more)])
    await env.config_map("grandchild", ownerReferences=[env.owner(child, **more)])
    await env.settle()


async def test_in_the_background_the_owner_goes_first_and_the_others_follow(env):
    await family(env)
    await env.delete(f"{CONFIG_MAPS}/mother", "Background")
    assert not await exists(env, "mother")
    assert await exists(env, "child")
    await env.settle()
    for name in ("child", "sibling", "grandchild"):
        assert not await exists(env, name)


async def test_in_the_foreground_the_owner_goes_last(env):
    await family(env, blocks=True)
    await env.patch(f"{CONFIG_MAPS}/grandchild", {"metadata": {"finalizers": ["example.com/held"]}})
    mother = await env.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    assert mother["metadata"]["finalizers"] == ["foregroundDeletion"]
    await env.settle()
    assert not await exists(env, "sibling")
    assert await exists(env, "child")
    assert await exists(env, "mother")
    await env.patch(f"{CONFIG_MAPS}/grandchild", {"metadata": {"finalizers": None}})
    await env.settle()
    for name in ("grandchild", "child", "mother"):
        assert not await exists(env, name)


async def test_in_the_foreground_only_dependents_that_block_are_waited_for(env):
    mother = await env.config_map("mother")
    held = {"finalizers": ["example.com/held"]}
    await env.config_map("child", ownerReferences=[env.owner(mother)], **held)
    await env.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    await env.settle()
    assert not await exists(env, "mother")
    assert (await env.get(f"{CONFIG_MAPS}/child"))["metadata"]["deletionTimestamp"]


async def test_a_dependent_that_stops_blocking_releases_the_owner(env):
    mother = await env.config_map("mother")
    reference = env.owner(mother, blockOwnerDeletion=True)
    await env.config_map("child", ownerReferences=[reference], finalizers=["example.com/held"])
    await env.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    await env.settle()
    assert await exists(env, "mother")
    free = {"ownerReferences": [{**reference, "blockOwnerDeletion": False}]}
    await env.patch(f"{CONFIG_MAPS}/child", {"metadata": free})
    await env.settle()
    assert not await exists(env, "mother")


async def test_orphans_lose_their_owner_reference_and_stay(env):
    await family(env)
    await env.delete(f"{CONFIG_MAPS}/mother", "Orphan")
    await env.settle()
    assert not await exists(env, "mother")
    assert await owners_of(env, "child") == []
    assert await owners_of(env, "sibling") == []
    assert await owners_of(env, "grandchild") == ["child"]


async def test_one_existing_owner_is_enough_and_the_missing_one_is_removed(env):
    mother, father = await env.config_map("mother"), await env.config_map("father")
    await env.config_map("child", ownerReferences=[env.owner(mother), env.owner(father)])
    await env.delete(f"{CONFIG_MAPS}/mother")
    await env.settle()
    assert await owners_of(env, "child") == ["father"]
    await env.delete(f"{CONFIG_MAPS}/father")
    await env.settle()
    assert not await exists(env, "child")


async def test_an_owner_being_deleted_in_the_foreground_is_removed_where_another_exists(env):
    mother, father = await env.config_map("mother"), await env.config_map("father")
    references = [env.owner(mother, blockOwnerDeletion=True), env.owner(father)]
    await env.config_map("child", ownerReferences=references)
    await env.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    await env.settle()
    assert not await exists(env, "mother")
    assert await owners_of(env, "child") == ["father"]


async def test_an_owner_that_never_existed_counts_as_deleted(env):
    mother = await env.config_map("mother")
    await env.config_map("foundling", ownerReferences=[env.owner(mother, uid="another")])
    await env.settle()
    assert not await exists(env, "foundling")
    assert await exists(env, "mother")


async def test_an_owner_in_another_namespace_does_not_count(env):
    await env.namespace("elsewhere")
    mother = await env.config_map("mother", "elsewhere")
    await env.config_map("child", ownerReferences=[env.owner(mother)])
    await env.settle()
    assert not await exists(env, "child")


async def test_a_cluster_scoped_owner_may_own_in_any_namespace(env):
    node = await env.node("n1", ready="True")
    await env.config_map("of-the-node", ownerReferences=[env.owner(node)])
    await env.settle()
    assert await exists(env, "of-the-node")
    await env.delete("/api/v1/nodes/n1")
    await env.settle()
    assert not await exists(env, "of-the-node")


async def test_a_cluster_scoped_object_of_a_namespaced_owner_is_left_alone(env):
    mother = await env.config_map("mother")
    await env.node("n1", ownerReferences=[env.owner(mother)])
    await env.delete(f"{CONFIG_MAPS}/mother")
    await env.settle()
    assert await env.get("/api/v1/nodes/n1") is not None


@pytest.mark.parametrize("api_version", ["nowhere.example.com/v1", "v7"])
async def test_an_owner_of_an_unserved_kind_is_kept(env, api_version):
    stranger = {"apiVersion": api_version, "kind": "ConfigMap", "name": "x", "uid": "x"}
    await env.config_map("child", ownerReferences=[stranger])
    await env.settle()
    assert await exists(env, "child")


async def test_an_owner_of_a_kind_that_is_served_at_last_is_looked_for(env):
    stranger = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "x", "uid": "x"}
    await env.config_map("child", ownerReferences=[stranger])
    await env.settle()
    await env.definition()
    await env.settle()
    assert not await exists(env, "child")


async def test_custom_resources_own_and_are_owned(env):
    await env.definition()
    fleet = await env.custom("fleet")
    await env.config_map("of-the-fleet", ownerReferences=[env.owner(fleet)])
    mother = await env.config_map("mother")
    await env.custom("owned", metadata={"ownerReferences": [env.owner(mother)]})
    await env.settle()
    assert await exists(env, "of-the-fleet")
    await env.delete("/apis/example.com/v1/namespaces/default/fleets/fleet")
    await env.delete(f"{CONFIG_MAPS}/mother")
    await env.settle()
    assert not await exists(env, "of-the-fleet")
    assert await env.get("/apis/example.com/v1/namespaces/default/fleets/owned") is None


async def test_an_object_that_gets_a_deleted_owner_later_is_collected(env):
    await env.config_map("child")
    await env.settle()
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}
    await env.patch(f"{CONFIG_MAPS}/child", {"metadata": {"ownerReferences": [gone]}})
    await env.settle()
    assert not await exists(env, "child")


async def test_two_that_own_each_other_do_not_wait_forever(env):
    first = await env.config_map("first")
    second = await env.config_map("second", ownerReferences=[env.owner(first, blockOwnerDeletion=True)])
    references = [env.owner(second, blockOwnerDeletion=True)]
    await env.patch(f"{CONFIG_MAPS}/first", {"metadata": {"ownerReferences": references}})
    await env.settle()
    await env.delete(f"{CONFIG_MAPS}/first", "Foreground")
    await env.pass_time(5)
    assert not await exists(env, "first")
    assert not await exists(env, "second")


async def test_an_orphan_from_before_the_start_is_collected_at_the_start(idle_env):
    await family(idle_env)
    await idle_env.delete(f"{CONFIG_MAPS}/mother")
    await idle_env.server.controllers.start(["garbage-collector-controller"])
    await idle_env.settle()
    for name in ("child", "sibling", "grandchild"):
        assert not await exists(idle_env, name)


async def test_a_finalizer_set_beforehand_decides_how_dependents_of_dependents_are_deleted(env):
    await family(env)
    await env.patch(f"{CONFIG_MAPS}/child", {"metadata": {"finalizers": ["orphan"]}})
    await env.delete(f"{CONFIG_MAPS}/mother")
    await env.settle()
    assert not await exists(env, "child")
    assert await owners_of(env, "grandchild") == []
