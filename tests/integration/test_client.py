"""The client on both servers."""

import itertools
from contextlib import asynccontextmanager, suppress

import pytest

from nodeyard.client import errors
from nodeyard.client.api import Client, DeleteOptions, PatchForm
from nodeyard.client.decoder import Bookmark, WatchEvent
from nodeyard.client.http_transport import HttpTransport
from nodeyard.client.kubeconfig import load_config
from nodeyard.client.resources import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS

_numbers = itertools.count(1)


@asynccontextmanager
async def connected(kubeconfig, **options):
    client = Client(HttpTransport(load_config(kubeconfig)), **options)
    try:
        yield client
    finally:
        await client.close()


@pytest.fixture
async def client(api):
    async with connected(api.kubeconfig) as client:
        yield client


@pytest.fixture
async def space(client):
    """A namespace of this test."""
    name = f"client-{next(_numbers)}"
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    with suppress(errors.NotFound, errors.Conflict):
        await client.delete(NAMESPACES, name)


def config_map(name, space, **data):
    return {"metadata": {"name": name, "namespace": space}, "data": data}


async def test_an_object_is_created_read_changed_and_deleted(client, space):
    made = await client.create(CONFIG_MAPS, config_map("a", space, x="1"))
    assert made["metadata"]["uid"]
    await client.patch(CONFIG_MAPS, "a", {"data": {"y": "2"}}, space)
    read = await client.get(CONFIG_MAPS, "a", space)
    assert read["data"] == {"x": "1", "y": "2"}
    updated = await client.update(CONFIG_MAPS, {**read, "data": {"z": "3"}})
    assert updated["data"] == {"z": "3"}
    assert (await client.delete(CONFIG_MAPS, "a", space))["status"] == "Success"
    with pytest.raises(errors.NotFound) as caught:
        await client.get(CONFIG_MAPS, "a", space)
    assert (caught.value.details.kind, caught.value.details.name) == ("configmaps", "a")


@pytest.mark.parametrize(
    ("form", "patch"),
    [
        (PatchForm.MERGE, {"data": {"y": "2"}}),
        (PatchForm.JSON, [{"op": "add", "path": "/data/y", "value": "2"}]),
        (PatchForm.STRATEGIC, {"data": {"y": "2"}}),
    ],
    ids=["merge", "json", "strategic"],
)
async def test_every_form_of_patch_is_understood(client, space, form, patch):
    await client.create(CONFIG_MAPS, config_map("a", space, x="1"))
    patched = await client.patch(CONFIG_MAPS, "a", patch, space, form=form)
    assert patched["data"] == {"x": "1", "y": "2"}


async def test_applying_makes_and_keeps_fields_of_ones_own(client, space):
    await client.managed_by("one").apply(CONFIG_MAPS, config_map("a", space, x="1"))
    with pytest.raises(errors.Conflict) as caught:
        await client.managed_by("two").apply(CONFIG_MAPS, config_map("a", space, x="2"))
    assert caught.value.has_cause("FieldManagerConflict")
    taken = await client.managed_by("two").apply(CONFIG_MAPS, config_map("a", space, x="2"), force=True)
    assert taken["data"] == {"x": "2"}


async def test_a_field_the_server_does_not_know_is_an_error_not_a_loss(client, space):
    with pytest.raises(errors.BadRequest, match='unknown field "dat"'):
        await client.create(CONFIG_MAPS, {**config_map("a", space), "dat": {}})


async def test_a_dry_run_changes_nothing(client, space):
    await client.create(CONFIG_MAPS, config_map("a", space), dry_run=True)
    assert (await client.list(CONFIG_MAPS, space, labels="!x")).items == []


async def test_a_second_create_is_already_exists(client, space):
    await client.create(CONFIG_MAPS, config_map("a", space))
    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIG_MAPS, config_map("a", space))


async def test_a_stale_update_is_a_conflict(client, space):
    stale = await client.create(CONFIG_MAPS, config_map("a", space))
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, space)
    with pytest.raises(errors.Conflict):
        await client.update(CONFIG_MAPS, stale)


async def test_a_delete_with_another_uid_is_a_conflict(client, space):
    await client.create(CONFIG_MAPS, config_map("a", space))
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIG_MAPS, "a", space, DeleteOptions(uid="00000000-0000-0000-0000-000000000000"))


async def test_an_invalid_object_names_its_fields(client, space):
    with pytest.raises(errors.Invalid) as caught:
        await client.create(PODS, {"metadata": {"name": "p", "namespace": space}, "spec": {"containers": []}})
    assert "spec.containers" in [cause.field for cause in caught.value.causes]


async def test_a_list_comes_in_pages_of_one_state(client, space):
    for number in range(5):
        await client.create(CONFIG_MAPS, config_map(f"a{number}", space))
    pages = [page async for page in client.pages(CONFIG_MAPS, space, fields="metadata.name!=kube-root-ca.crt", size=2)]
    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert len({page.resource_version for page in pages}) == 1
    whole = await client.list(CONFIG_MAPS, space, fields="metadata.name!=kube-root-ca.crt", size=2)
    assert [item["metadata"]["name"] for item in whole.items] == [f"a{number}" for number in range(5)]


async def test_a_watch_continues_where_a_list_ended(client, space):
    await client.create(CONFIG_MAPS, config_map("a", space))
    page = await client.list(CONFIG_MAPS, space)
    async with client.watch(CONFIG_MAPS, space, resource_version=page.resource_version) as events:
        await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, space)
        await client.delete(CONFIG_MAPS, "a", space)
        seen = [await anext(events), await anext(events)]
    assert [(event.type, event.object["metadata"]["name"]) for event in seen] == [("MODIFIED", "a"), ("DELETED", "a")]


async def test_a_watch_may_begin_with_the_existing_objects(client, space):
    await client.create(CONFIG_MAPS, config_map("a", space))
    names = []
    async with client.watch(CONFIG_MAPS, space, initial_events=True) as events:
        async for event in events:
            if isinstance(event, Bookmark) and event.ends_initial_events:
                break
            if isinstance(event, WatchEvent):
                names.append(event.object["metadata"]["name"])
    assert "a" in names


async def test_a_watch_ends_when_the_server_ends_it(client, space):
    page = await client.list(CONFIG_MAPS, space)
    async with client.watch(CONFIG_MAPS, space, resource_version=page.resource_version, seconds=1) as events:
        assert not [event async for event in events if isinstance(event, WatchEvent)]


async def test_an_event_larger_than_any_buffer_comes_whole(client, space):
    page = await client.list(CONFIG_MAPS, space)
    async with client.watch(CONFIG_MAPS, space, resource_version=page.resource_version) as events:
        await client.create(CONFIG_MAPS, config_map("large", space, x="x" * 900_000))
        event = await anext(events)
    assert len(event.object["data"]["x"]) == 900_000


async def test_discovery_finds_resources_by_any_of_their_names(client):
    catalog = await client.catalog()
    assert catalog.find("no").resource == NODES
    assert catalog.find("deploy").resource.api_version == "apps/v1"
    assert "status" in catalog.find("pods").subresources
    assert catalog.by_kind("policy/v1", "PodDisruptionBudget").resource.plural == "poddisruptionbudgets"


async def test_a_user_has_only_the_rights_of_its_role(api, space):
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    kubeconfig = api.user(f"reader-{space}", rules=rules)
    async with connected(kubeconfig) as reader:
        await reader.list(CONFIG_MAPS, space)
        with pytest.raises(errors.Forbidden, match="cannot create resource"):
            await reader.create(CONFIG_MAPS, config_map("a", space))


async def test_a_refusal_in_a_terminating_namespace_is_no_missing_right(api, client, space):
    await client.create(CONFIG_MAPS, {"metadata": {"name": "kept", "namespace": space, "finalizers": ["test.dev/x"]}})
    await client.delete(NAMESPACES, space)
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}]
    told = []
    async with connected(api.user("terminated", rules=rules), observe=lambda *each: told.append(each)) as user:
        with pytest.raises(errors.NamespaceTerminating, match="because it is being terminated"):
            await user.create(CONFIG_MAPS, config_map("late", space))
        with pytest.raises(errors.Forbidden) as caught:
            await user.create(EVENTS, {"metadata": {"name": "late", "namespace": space}})
    assert type(caught.value) is errors.Forbidden, "who has no right hears that first"
    assert [(code, reason) for _, _, code, _, reason in told] == [(403, "NamespaceTerminating"), (403, "Forbidden")]
    await client.patch(CONFIG_MAPS, "kept", {"metadata": {"finalizers": None}}, space)


async def test_a_wrong_token_is_unauthorized(api, tmp_path):
    text = api.kubeconfig.read_text().replace(api.admin_token, "wrong")
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    async with connected(path) as stranger:
        with pytest.raises(errors.Unauthorized):
            await stranger.list(NODES)


async def test_a_pod_is_evicted_once(client, space):
    pod = {
        "metadata": {"name": "p", "namespace": space, "labels": {"app": "x"}},
        "spec": {"nodeName": "nowhere", "containers": [{"name": "c", "image": "i"}]},
    }
    await client.create(PODS, pod)
    await client.evict("p", space, dry_run=True)
    await client.evict("p", space, grace_seconds=0)
    with pytest.raises(errors.NotFound):
        await client.evict("p", space)
