"""The data directory: what a restarted server has, and what it refuses to start with."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from nodeyard.apiserver.durability import frames
from nodeyard.apiserver.durability.data_directory import DataDirectory
from nodeyard.apiserver.durability.frames import DataDirectoryError
from nodeyard.apiserver.errors import ApiError
from nodeyard.apiserver.server import Server
from nodeyard.apiserver.transport import User, request
from nodeyard.bundle.model import BundleError
from nodeyard.process.clock import VirtualClock
from nodeyard.sim.embedded import connect

from ...builders.bundles import copy_cluster

ADMIN = User("admin", ("system:masters",))
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = "application/merge-patch+json"


@asynccontextmanager
async def serving(path: Path, clock=None, controllers=(), **options):
    data = DataDirectory.open(path, **options)
    server = Server(clock, data=data)
    try:
        await server.start(controllers)
        try:
            yield server
        finally:
            await server.stop()
    finally:
        data.close()


async def send(server, method, url, body=None, content_type="application/json"):
    """Make a request as a client does; its answer is an acknowledgement."""
    asked = request(method, url, b"" if body is None else body, user=ADMIN, content_type=content_type)
    response = await server.handle(asked)
    text = response.payload().decode()
    answered = json.loads(text) if text.startswith("{") else {"message": text}
    if response.status >= 300:
        raise ApiError(response.status, answered.get("reason", ""), answered["message"])
    return answered


async def watch(server, url):
    response = await server.handle(request("GET", url, user=ADMIN))
    return response.stream


async def events_of(server, url, count):
    """Return type and name of the first events of a watch."""
    stream, found = await watch(server, url), []
    while len(found) < count:
        for line in (await anext(stream)).splitlines():
            event = json.loads(line)
            name = event["object"]["metadata"].get("name") or event["object"].get("code")
            found.append((event["type"], name))
    await stream.aclose()
    return found


def config_map(name, **data):
    return {"metadata": {"name": name}, "data": data}


def widgets(plural="widgets", kind="Widget", properties=None):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties or {}}}}
    names = {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.example.com"}, "spec": spec}


def widget(name, spec=None, **metadata):
    return {
        "kind": "Widget",
        "apiVersion": "example.com/v1",
        "metadata": {"name": name, **metadata},
        "spec": spec or {},
    }


def journal_of(path: Path) -> Path:
    return max(path.glob("*.journal"))


def image(path: Path, name: str) -> Path:
    """Copy the directory as a killed process would leave it now."""
    return Path(shutil.copytree(path, path.parent / name))


async def state_of(server):
    """Return every object of the server, and its revision."""
    kept = {
        (kind, stored.key): (stored.revision, stored.raw) for kind, objects in server.store.all() for stored in objects
    }
    return server.store.revision, kept


async def test_a_killed_server_has_every_object_that_it_had_acknowledged(tmp_path):
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", CONFIG_MAPS, config_map("kept"))
        await send(server, "POST", CONFIG_MAPS, config_map("changed", a="1"))
        await send(server, "PATCH", f"{CONFIG_MAPS}/changed", {"data": {"a": "2"}}, MERGE)
        await send(server, "POST", CONFIG_MAPS, config_map("deleted"))
        await send(server, "DELETE", f"{CONFIG_MAPS}/deleted")
        before, killed = await state_of(server), image(tmp_path / "a", "b")

    async with serving(killed) as server:
        assert await state_of(server) == before
        names = [each["metadata"]["name"] for each in (await send(server, "GET", CONFIG_MAPS))["items"]]
        assert names == ["changed", "kept"]
        created = await send(server, "POST", CONFIG_MAPS, config_map("next"))
        assert int(created["metadata"]["resourceVersion"]) == before[0] + 1


async def test_every_prefix_of_the_journal_is_the_state_after_some_write(tmp_path):
    states = {}
    async with serving(tmp_path / "a") as server:
        began = journal_of(tmp_path / "a").stat().st_size
        states[began] = await state_of(server)
        for number in range(6):
            await send(server, "POST", CONFIG_MAPS, config_map(f"n{number}", text="x" * 50 * number))
            states[journal_of(tmp_path / "a").stat().st_size] = await state_of(server)
    whole = journal_of(tmp_path / "a").read_bytes()

    for length in range(began, len(whole) + 1, 7):
        journal_of(tmp_path / "a").write_bytes(whole[:length])
        data = DataDirectory.open(tmp_path / "a")
        server = Server(data=data)
        await server.start(())
        expected = states[max(size for size in states if size <= length)]
        assert await state_of(server) == expected
        await server.stop()
        data.close()


async def test_a_torn_end_is_overwritten(tmp_path):
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", CONFIG_MAPS, config_map("kept"))
    journal = journal_of(tmp_path / "a")
    with journal.open("ab") as file:
        file.write(frames.encode(99, b"x" * 100)[:60])

    async with serving(tmp_path / "a") as server:
        await send(server, "POST", CONFIG_MAPS, config_map("later"))
    async with serving(tmp_path / "a") as server:
        names = [each["metadata"]["name"] for each in (await send(server, "GET", CONFIG_MAPS))["items"]]
    assert names == ["kept", "later"]


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.97])
async def test_a_damaged_file_names_itself_and_the_remedy(tmp_path, place):
    async with serving(tmp_path / "a") as server:
        for number in range(10):
            await send(server, "POST", CONFIG_MAPS, config_map(f"n{number}", text="x" * 500))
    for path in (journal_of(tmp_path / "a"), max((tmp_path / "a").glob("*.snapshot"))):
        content = path.read_bytes()
        at = int(len(content) * place)
        path.write_bytes(content[:at] + bytes([content[at] ^ 0x40]) + content[at + 1 :])
        with pytest.raises(DataDirectoryError, match=rf"{path}: corrupted: .*; restore the directory from a copy, or"):
            async with serving(tmp_path / "a"):
                pass
        path.write_bytes(content)


async def test_a_missing_journal_is_refused(tmp_path):
    async with serving(tmp_path / "a"):
        pass
    journal_of(tmp_path / "a").unlink()

    with pytest.raises(DataDirectoryError, match=r"00000001\.journal: is missing; restore"):
        async with serving(tmp_path / "a"):
            pass


def test_a_directory_is_used_by_one_process_at_a_time(tmp_path):
    held = DataDirectory.open(tmp_path / "a")

    with pytest.raises(DataDirectoryError, match=rf"is in use by process {os.getpid()}; stop it, or give another"):
        DataDirectory.open(tmp_path / "a")
    held.close()
    DataDirectory.open(tmp_path / "a").close()


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    mode = tmp_path.stat().st_mode

    with pytest.raises(DataDirectoryError, match=r"contains thesis\.tex; give a new or empty directory"):
        DataDirectory.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert tmp_path.stat().st_mode == mode


async def test_only_the_owner_can_read_the_files(tmp_path):
    (tmp_path / "a").mkdir(mode=0o755)
    async with serving(tmp_path / "a", snapshot_from=1) as server:
        await send(server, "POST", CONFIG_MAPS, config_map("a"))

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "a").iterdir()} == {0o600}


async def test_a_newer_format_is_refused(tmp_path):
    async with serving(tmp_path / "a"):
        pass
    identity = tmp_path / "a" / "identity.json"
    identity.write_text(identity.read_text().replace('"format":1', '"format":2'))

    with pytest.raises(DataDirectoryError, match=r"identity\.json: has format 2, this version of nodeyard reads 1"):
        DataDirectory.open(tmp_path / "a")


async def test_a_first_start_that_was_killed_begins_again(tmp_path):
    async with serving(tmp_path / "a"):
        pass
    for path in (tmp_path / "a").glob("*.snapshot"):
        path.rename(path.with_suffix(".snapshot.partial"))

    async with serving(tmp_path / "a") as server:
        await send(server, "POST", CONFIG_MAPS, config_map("a"))
    async with serving(tmp_path / "a") as server:
        assert (await send(server, "GET", f"{CONFIG_MAPS}/a"))["metadata"]["name"] == "a"


# watches


async def test_a_watch_resumes_where_it_was_after_a_restart(tmp_path):
    async with serving(tmp_path / "a") as server:
        since = (await send(server, "POST", CONFIG_MAPS, config_map("a")))["metadata"]["resourceVersion"]
        await send(server, "POST", CONFIG_MAPS, config_map("b"))
        await send(server, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": "1"}}, MERGE)
        await send(server, "DELETE", f"{CONFIG_MAPS}/b")

    async with serving(tmp_path / "a") as server:
        seen = await events_of(server, f"{CONFIG_MAPS}?watch=true&resourceVersion={since}", 3)
    assert seen == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


async def test_a_watch_from_before_the_last_snapshot_is_gone_after_a_restart(tmp_path):
    async with serving(tmp_path / "a", snapshot_from=20_000) as server:
        since = (await send(server, "POST", CONFIG_MAPS, config_map("a")))["metadata"]["resourceVersion"]
        for number in range(50):
            await send(server, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": f"{number}" * 500}}, MERGE)
        before = await state_of(server)

    async with serving(tmp_path / "a") as server:
        assert await state_of(server) == before
        assert await events_of(server, f"{CONFIG_MAPS}?watch=true&resourceVersion={since}", 1) == [("ERROR", 410)]


async def test_files_do_not_grow_with_the_number_of_writes(tmp_path):
    async with serving(tmp_path / "a", snapshot_from=50_000) as server:
        await send(server, "POST", CONFIG_MAPS, config_map("a"))
        for number in range(200):
            await send(server, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": f"{number:03}" * 700}}, MERGE)
        before, killed = await state_of(server), image(tmp_path / "a", "b")

    assert sum(path.stat().st_size for path in (tmp_path / "a").iterdir()) < 250_000
    async with serving(killed) as server:
        assert await state_of(server) == before


@contextmanager
def full_disk(path: Path):
    """Let no file of this process grow beyond the journal, so that the next write is cut short and fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal_of(path).stat().st_size + 20, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_that_the_disk_does_not_take_is_taken_back(tmp_path):
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", CONFIG_MAPS, config_map("kept", a="1"))
        await send(server, "POST", DEFINITIONS, widgets())
        await server.idle()
        before = await state_of(server)
        stream = await watch(server, f"{CONFIG_MAPS}?watch=true&resourceVersion={before[0]}")
        coming = asyncio.ensure_future(anext(stream))
        writes = [
            ("POST", CONFIG_MAPS, config_map("new")),
            ("PATCH", f"{CONFIG_MAPS}/kept", {"data": {"a": "2"}}),
            ("DELETE", f"{CONFIG_MAPS}/kept", None),
            ("POST", DEFINITIONS, widgets("gadgets", "Gadget")),
            ("DELETE", f"{DEFINITIONS}/widgets.example.com", None),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {"metadata": {"name": "r"}, "rules": []}),
        ]
        with full_disk(tmp_path / "a"):
            for method, url, body in writes:
                with pytest.raises(ApiError, match="File too large") as refused:
                    await send(server, method, url, body, MERGE if method == "PATCH" else "application/json")
                assert refused.value.code == 503
            assert await state_of(server) == before
            assert (await send(server, "GET", f"{CONFIG_MAPS}/kept"))["data"] == {"a": "1"}
            assert (await send(server, "GET", "/apis/example.com/v1/widgets"))["items"] == []
            with pytest.raises(ApiError, match="404 page not found"):
                await send(server, "GET", "/apis/example.com/v1/gadgets")
            killed_before = image(tmp_path / "a", "b")

        await send(server, "POST", CONFIG_MAPS, config_map("after"))
        (event,) = (await coming).splitlines()
        assert json.loads(event)["object"]["metadata"]["name"] == "after"
        after, killed_after = await state_of(server), image(tmp_path / "a", "c")

    for path, state in ((killed_before, before), (killed_after, after)):
        async with serving(path) as server:
            assert await state_of(server) == state


async def test_requests_that_saw_a_write_fail_with_it(tmp_path):
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", CONFIG_MAPS, config_map("a", a="1"))
        write = send(server, "PATCH", f"{CONFIG_MAPS}/a", {"data": {"a": "2"}}, MERGE)
        reads = [send(server, "GET", f"{CONFIG_MAPS}/a"), send(server, "GET", CONFIG_MAPS)]
        with full_disk(tmp_path / "a"):
            results = await asyncio.gather(write, *reads, return_exceptions=True)

    assert [getattr(result, "code", result) for result in results] == [503, 503, 503]


# what lives beside objects


async def test_custom_kinds_and_rights_are_served_after_a_restart(tmp_path):
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"}
    subjects = [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}]
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", DEFINITIONS, widgets())
        await send(server, "POST", "/apis/example.com/v1/widgets", widget("w"))
        await server.idle()
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        await send(server, "POST", f"{rbac}/clusterroles", role)
        binding = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": subjects}
        await send(server, "POST", f"{rbac}/clusterrolebindings", binding)
        discovery = await send(server, "GET", "/apis")

    async with serving(tmp_path / "a") as server:
        found = await send(server, "GET", "/apis/example.com/v1/widgets")
        assert [each["metadata"]["name"] for each in found["items"]] == ["w"]
        assert await send(server, "GET", "/apis") == discovery
        response = await server.handle(request("GET", CONFIG_MAPS, user=User("alice")))
        assert response.status == 200


async def test_the_deletion_of_a_kind_is_finished_after_a_restart(tmp_path):
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", DEFINITIONS, widgets())
        await send(server, "POST", "/apis/example.com/v1/widgets", widget("w", finalizers=["example.com/held"]))
        await server.idle()
        await send(server, "DELETE", f"{DEFINITIONS}/widgets.example.com")
        await server.idle()

    async with serving(tmp_path / "a") as server:
        await server.idle()
        await send(server, "PATCH", "/apis/example.com/v1/widgets/w", {"metadata": {"finalizers": None}}, MERGE)
        await server.idle()
        assert (await send(server, "GET", DEFINITIONS))["items"] == []
        assert not any(kind.group == "example.com" for kind in server.store.resources())


async def test_a_kind_whose_names_are_taken_stays_unserved_after_a_restart(tmp_path):
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", DEFINITIONS, widgets("widgets", "Widget"))
        await server.idle()
        await send(server, "POST", DEFINITIONS, widgets("aaas", "Widget"))
        await server.idle()

    async with serving(tmp_path / "a") as server:
        await server.idle()
        await send(server, "GET", "/apis/example.com/v1/widgets")
        with pytest.raises(ApiError, match="not find|not found"):
            await send(server, "GET", "/apis/example.com/v1/aaas")


async def test_objects_are_pruned_by_a_changed_schema_although_the_server_was_killed_before(tmp_path):
    number = {"type": "integer"}
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", DEFINITIONS, widgets(properties={"old": number, "new": number}))
        await send(server, "POST", "/apis/example.com/v1/widgets", widget("w", spec={"old": 1, "new": 2}))
        await server.idle()
        server.store.reread = lambda *_: None  # Killed before any object is pruned.
        patch = {"spec": widgets(properties={"new": number})["spec"]}
        await send(server, "PATCH", f"{DEFINITIONS}/widgets.example.com", patch, MERGE)

    for _ in range(2):
        async with serving(tmp_path / "a") as server:
            await server.idle()
            assert (await send(server, "GET", "/apis/example.com/v1/widgets/w"))["spec"] == {"new": 2}


async def test_tokens_of_service_accounts_stay_valid(tmp_path):
    account = "/api/v1/namespaces/default/serviceaccounts"
    async with serving(tmp_path / "a") as server:
        await send(server, "POST", account, {"metadata": {"name": "builder"}})
        granted = await send(server, "POST", f"{account}/builder/token", {"spec": {}})

    async with serving(tmp_path / "a") as server:
        user = server.access.tokens.identify(granted["status"]["token"])
    assert user.name == "system:serviceaccount:default:builder"


async def test_events_expire_an_hour_after_their_last_write_whatever_was_restarted(tmp_path):
    clock, url = VirtualClock(), "/api/v1/namespaces/default/events"
    about = {"kind": "Node", "name": "n", "namespace": "default"}

    async def names(server):
        return [each["metadata"]["name"] for each in (await server.call("GET", url))["items"]]

    for snapshot_from in (1 << 20, 1):
        path = tmp_path / str(snapshot_from)
        async with serving(path, clock, snapshot_from=snapshot_from) as server:
            await send(server, "POST", url, {"metadata": {"name": "old"}, "involvedObject": about})
            await clock.advance(1800)
            await send(server, "POST", url, {"metadata": {"name": "young"}, "involvedObject": about})
        async with serving(path, clock) as server:
            assert await names(server) == ["old", "young"]
            await clock.advance(1801)
            assert await names(server) == ["young"]
            await clock.advance(1800)
            assert await names(server) == []


async def test_a_bundle_is_imported_into_an_empty_directory(tmp_path):
    original = Server(VirtualClock(), seed=1)
    await original.start(())
    await send(original, "POST", CONFIG_MAPS, config_map("of-the-bundle", a="1"))
    cluster = await copy_cluster(connect(original), tmp_path / "bundle.tgz")
    data = DataDirectory.open(tmp_path / "a")
    server = Server(data=data)
    server.load(cluster)
    await server.start(())
    before = await state_of(server)
    await server.stop()
    data.close()

    async with serving(tmp_path / "a") as server:
        assert await state_of(server) == before
        assert (await send(server, "GET", f"{CONFIG_MAPS}/of-the-bundle"))["data"] == {"a": "1"}
        assert await send(server, "GET", "/version") == await send(original, "GET", "/version")
    data = DataDirectory.open(tmp_path / "a")
    with pytest.raises(BundleError, match="has a cluster already; give an empty directory"):
        Server(data=data).load(cluster)
    data.close()
    await original.stop()
