"""Owners and dependents."""

import pytest

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def exists(yard, name):
    return await yard.get(f"{CONFIG_MAPS}/{name}") is not None


async def owners_of(yard, name):
    found = await yard.get(f"{CONFIG_MAPS}/{name}")
    return [reference["name"] for reference in found["metadata"].get("ownerReferences", [])]


async def family(yard, *, blocks=None):
    """A mother with two children, of whom one has a child of its own."""
    more = {} if blocks is None else {"blockOwnerDeletion": blocks}
    mother = await yard.config_map("mother")
    child = await yard.config_map("child", ownerReferences=[yard.owner(mother, **more)])
    await yard.config_map("sibling", ownerReferences=[yard.owner(mother, **more)])
    await yard.config_map("grandchild", ownerReferences=[yard.owner(child, **more)])
    await yard.settle()


async def test_in_the_background_the_owner_goes_first_and_the_others_follow(yard):
    await family(yard)
    await yard.delete(f"{CONFIG_MAPS}/mother", "Background")
    assert not await exists(yard, "mother")
    assert await exists(yard, "child")
    await yard.settle()
    for name in ("child", "sibling", "grandchild"):
        assert not await exists(yard, name)


async def test_in_the_foreground_the_owner_goes_last(yard):
    await family(yard, blocks=True)
    await yard.patch(f"{CONFIG_MAPS}/grandchild", {"metadata": {"finalizers": ["example.com/held"]}})
    mother = await yard.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    assert mother["metadata"]["finalizers"] == ["foregroundDeletion"]
    await yard.settle()
    assert not await exists(yard, "sibling")
    assert await exists(yard, "child")
    assert await exists(yard, "mother")
    await yard.patch(f"{CONFIG_MAPS}/grandchild", {"metadata": {"finalizers": None}})
    await yard.settle()
    for name in ("grandchild", "child", "mother"):
        assert not await exists(yard, name)


async def test_in_the_foreground_only_dependents_that_block_are_waited_for(yard):
    mother = await yard.config_map("mother")
    held = {"finalizers": ["example.com/held"]}
    await yard.config_map("child", ownerReferences=[yard.owner(mother)], **held)
    await yard.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    await yard.settle()
    assert not await exists(yard, "mother")
    assert (await yard.get(f"{CONFIG_MAPS}/child"))["metadata"]["deletionTimestamp"]


async def test_a_dependent_that_stops_blocking_lets_the_owner_go(yard):
    mother = await yard.config_map("mother")
    reference = yard.owner(mother, blockOwnerDeletion=True)
    await yard.config_map("child", ownerReferences=[reference], finalizers=["example.com/held"])
    await yard.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    await yard.settle()
    assert await exists(yard, "mother")
    free = {"ownerReferences": [{**reference, "blockOwnerDeletion": False}]}
    await yard.patch(f"{CONFIG_MAPS}/child", {"metadata": free})
    await yard.settle()
    assert not await exists(yard, "mother")


async def test_orphans_lose_their_owner_reference_and_stay(yard):
    await family(yard)
    await yard.delete(f"{CONFIG_MAPS}/mother", "Orphan")
    await yard.settle()
    assert not await exists(yard, "mother")
    assert await owners_of(yard, "child") == []
    assert await owners_of(yard, "sibling") == []
    assert await owners_of(yard, "grandchild") == ["child"]


async def test_one_existing_owner_is_enough_and_the_missing_one_is_removed(yard):
    mother, father = await yard.config_map("mother"), await yard.config_map("father")
    await yard.config_map("child", ownerReferences=[yard.owner(mother), yard.owner(father)])
    await yard.delete(f"{CONFIG_MAPS}/mother")
    await yard.settle()
    assert await owners_of(yard, "child") == ["father"]
    await yard.delete(f"{CONFIG_MAPS}/father")
    await yard.settle()
    assert not await exists(yard, "child")


async def test_an_owner_being_deleted_in_the_foreground_is_removed_where_another_exists(yard):
    mother, father = await yard.config_map("mother"), await yard.config_map("father")
    references = [yard.owner(mother, blockOwnerDeletion=True), yard.owner(father)]
    await yard.config_map("child", ownerReferences=references)
    await yard.delete(f"{CONFIG_MAPS}/mother", "Foreground")
    await yard.settle()
    assert not await exists(yard, "mother")
    assert await owners_of(yard, "child") == ["father"]


async def test_an_owner_that_never_existed_counts_as_deleted(yard):
    mother = await yard.config_map("mother")
    await yard.config_map("foundling", ownerReferences=[yard.owner(mother, uid="another")])
    await yard.settle()
    assert not await exists(yard, "foundling")
    assert await exists(yard, "mother")


async def test_an_owner_in_another_namespace_does_not_count(yard):
    await yard.namespace("elsewhere")
    mother = await yard.config_map("mother", "elsewhere")
    await yard.config_map("child", ownerReferences=[yard.owner(mother)])
    await yard.settle()
    assert not await exists(yard, "child")


async def test_a_cluster_scoped_owner_may_own_in_any_namespace(yard):
    node = await yard.node("n1", ready="True")
    await yard.config_map("of-the-node", ownerReferences=[yard.owner(node)])
    await yard.settle()
    assert await exists(yard, "of-the-node")
    await yard.delete("/api/v1/nodes/n1")
    await yard.settle()
    assert not await exists(yard, "of-the-node")


async def test_a_cluster_scoped_object_of_a_namespaced_owner_is_left_alone(yard):
    mother = await yard.config_map("mother")
    await yard.node("n1", ownerReferences=[yard.owner(mother)])
    await yard.delete(f"{CONFIG_MAPS}/mother")
    await yard.settle()
    assert await yard.get("/api/v1/nodes/n1") is not None


@pytest.mark.parametrize("api_version", ["nowhere.example.com/v1", "v7"])
async def test_an_owner_of_a_kind_that_is_not_served_is_left_to_those_who_know_it(yard, api_version):
    stranger = {"apiVersion": api_version, "kind": "ConfigMap", "name": "x", "uid": "x"}
    await yard.config_map("child", ownerReferences=[stranger])
    await yard.settle()
    assert await exists(yard, "child")


async def test_an_owner_of_a_kind_that_is_served_at_last_is_looked_for(yard):
    stranger = {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "x", "uid": "x"}
    await yard.config_map("child", ownerReferences=[stranger])
    await yard.settle()
    await yard.definition()
    await yard.settle()
    assert not await exists(yard, "child")


async def test_custom_resources_own_and_are_owned(yard):
    await yard.definition()
    fleet = await yard.custom("fleet")
    await yard.config_map("of-the-fleet", ownerReferences=[yard.owner(fleet)])
    mother = await yard.config_map("mother")
    await yard.custom("owned", metadata={"ownerReferences": [yard.owner(mother)]})
    await yard.settle()
    assert await exists(yard, "of-the-fleet")
    await yard.delete("/apis/example.com/v1/namespaces/default/fleets/fleet")
    await yard.delete(f"{CONFIG_MAPS}/mother")
    await yard.settle()
    assert not await exists(yard, "of-the-fleet")
    assert await yard.get("/apis/example.com/v1/namespaces/default/fleets/owned") is None


async def test_an_object_that_gets_a_deleted_owner_later_is_collected(yard):
    await yard.config_map("child")
    await yard.settle()
    gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "gone"}
    await yard.patch(f"{CONFIG_MAPS}/child", {"metadata": {"ownerReferences": [gone]}})
    await yard.settle()
    assert not await exists(yard, "child")


async def test_two_that_own_each_other_do_not_wait_forever(yard):
    first = await yard.config_map("first")
    second = await yard.config_map("second", ownerReferences=[yard.owner(first, blockOwnerDeletion=True)])
    references = [yard.owner(second, blockOwnerDeletion=True)]
    await yard.patch(f"{CONFIG_MAPS}/first", {"metadata": {"ownerReferences": references}})
    await yard.settle()
    await yard.delete(f"{CONFIG_MAPS}/first", "Foreground")
    await yard.pass_time(5)
    assert not await exists(yard, "first")
    assert not await exists(yard, "second")


async def test_an_orphan_from_before_the_start_is_collected_at_the_start(idle_yard):
    await family(idle_yard)
    await idle_yard.delete(f"{CONFIG_MAPS}/mother")
    await idle_yard.server.controllers.start(["garbage-collector-controller"])
    await idle_yard.settle()
    for name in ("child", "sibling", "grandchild"):
        assert not await exists(idle_yard, name)


async def test_a_finalizer_set_beforehand_decides_how_dependents_of_dependents_are_deleted(yard):
    await family(yard)
    await yard.patch(f"{CONFIG_MAPS}/child", {"metadata": {"finalizers": ["orphan"]}})
    await yard.delete(f"{CONFIG_MAPS}/mother")
    await yard.settle()
    assert not await exists(yard, "child")
    assert await owners_of(yard, "grandchild") == []
