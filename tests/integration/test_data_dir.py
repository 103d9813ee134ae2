"""`nodeyard apiserver --data-dir` as a process: killed at any moment, on a full disk, under an operator."""

import asyncio
import json
import resource
import signal
import ssl
import subprocess
from contextlib import asynccontextmanager, contextmanager
from random import Random

import aiohttp
import pytest
from tests.builders.bundles import write_bundle
from tests.builders.spares_env import SparesEnv
from tests.integration.test_cli_apiserver import PROGRAM

from nodeyard.bundle.model import GVR, ServedResource
from nodeyard.testing import clients
from nodeyard.testing.api_process import ApiProcess
from nodeyard.testing.operators import Operators

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
WRITERS = 8


@pytest.fixture
def server():
    with ApiProcess() as server:
        yield server


@asynccontextmanager
async def connected(server):
    trust = ssl.create_default_context(cadata=server.authority.pem.decode())
    headers = {"Authorization": f"Bearer {server.admin_token}"}
    connector = aiohttp.TCPConnector(ssl=trust, limit=0)
    async with aiohttp.ClientSession(server.url, connector=connector, headers=headers) as session:
        yield session


@contextmanager
def open_process(*arguments):
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


class Record:
    """Responses to clients: acknowledged objects by name, the write in flight of each, events, revisions."""

    def __init__(self):
        self.acknowledged = {}
        self.unanswered = {}
        self.events = []
        self.revision = 0
        self.writes = 0

    def note(self, revision):
        self.revision = max(self.revision, int(revision))


async def write(session, record, writer, random):
    """Create, change and delete objects of one's own until the server is gone."""
    for number in range(10_000):
        name = f"w{writer}-{random.randrange(12)}"
        value = f"{writer}.{number}." + "x" * random.randrange(4000)
        body = {"metadata": {"name": name}, "data": {"value": value}}
        exists = record.acknowledged.get(name) is not None
        if exists and random.random() < 0.2:
            value, request = None, session.delete(f"{CONFIG_MAPS}/{name}")
        elif exists:
            request = session.patch(f"{CONFIG_MAPS}/{name}", data=json.dumps(body), headers=MERGE)
        else:
            request = session.post(CONFIG_MAPS, json=body)
        record.unanswered[name] = value
        async with request as response:
            answer = await response.json()
        assert response.status < 300, answer
        record.acknowledged[name] = value
        del record.unanswered[name]
        record.writes += 1
        if value is not None:
            record.note(answer["metadata"]["resourceVersion"])


async def watch(session, record):
    async with session.get(CONFIG_MAPS, params={"watch": "1", "resourceVersion": str(record.revision)}) as response:
        async for line in response.content:
            event = json.loads(line)
            record.events.append(summary(event))
            record.note(event["object"]["metadata"]["resourceVersion"])


def summary(event):
    obj = event["object"]
    return event["type"], obj["metadata"]["name"], int(obj["metadata"]["resourceVersion"]), obj["data"]["value"]


async def run_until_killed(server, record, random):
    """Load the server until it is killed, at a random number of acknowledged writes."""
    record.events, record.writes = [], 0
    async with connected(server) as session:
        tasks = [asyncio.create_task(watch(session, record))]
        tasks += [asyncio.create_task(write(session, record, n, Random(random.random()))) for n in range(WRITERS)]
        limit = random.randrange(200)
        while record.writes < limit:
            await asyncio.wait(tasks, timeout=0.001, return_when=asyncio.FIRST_COMPLETED)
            assert not any(task.done() for task in tasks), [task for task in tasks if task.done()]
        server.process.signal(signal.SIGKILL)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, aiohttp.ClientError) for each in ended if each is not None), ended
    server.kill()


async def check(server, record, since):
    """Compare what the restarted server has with what clients were told before."""
    async with connected(server) as session:
        async with session.get(CONFIG_MAPS) as response:
            listed = await response.json()
        revision = int(listed["metadata"]["resourceVersion"])
        assert revision >= record.revision
        found = {each["metadata"]["name"]: each["data"]["value"] for each in listed["items"] if "data" in each}
        found.pop("kube-root-ca.crt", None)
        for name in record.acknowledged | record.unanswered | found:
            told = {record.acknowledged.get(name)} | {record.unanswered.get(name, record.acknowledged.get(name))}
            assert found.get(name) in told, name
        replayed = []
        params = {"watch": "1", "resourceVersion": str(since), "timeoutSeconds": "1"}
        async with session.get(CONFIG_MAPS, params=params) as response:
            async for line in response.content:
                replayed.append(summary(json.loads(line)))
        assert replayed[: len(record.events)] == record.events
    record.acknowledged = dict(found)
    record.unanswered = {}
    record.revision = revision


@pytest.mark.parametrize("seed", range(3))
async def test_a_server_killed_at_random_moments_has_whatever_it_acknowledged(server, seed):
    random, record = Random(seed), Record()
    async with connected(server) as session, session.get(CONFIG_MAPS) as response:
        record.note((await response.json())["metadata"]["resourceVersion"])
    for _ in range(5):
        since = record.revision
        await run_until_killed(server, record, random)
        server.start()
        await check(server, record, since)


async def test_a_full_disk_refuses_writes_and_loses_nothing(server):
    async with connected(server) as session:

        async def create(name):
            body = {"metadata": {"name": name}, "data": {"value": "x" * 2000}}
            async with session.post(CONFIG_MAPS, json=body) as response:
                return response.status, await response.json(), response.headers

        async def names():
            async with session.get(CONFIG_MAPS) as response:
                return {each["metadata"]["name"] for each in (await response.json())["items"]}

        assert (await create("before"))[0] == 201
        journal = max(server.data.glob("*.journal"))
        limit = (journal.stat().st_size + 8000, resource.RLIM_INFINITY)
        unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limit)
        answers = [await create(f"n{number}") for number in range(12)]
        created = {f"n{number}" for number, answer in enumerate(answers) if answer[0] == 201}
        refused = [answer for answer in answers if answer[0] != 201]
        assert created
        assert refused
        for status, body, headers in refused:
            assert (status, body["reason"], headers["Retry-After"]) == (503, "ServiceUnavailable", "1")
            assert "File too large" in body["message"]
        assert await names() == {"before", *created}

        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        assert (await create("after"))[0] == 201
    server.kill()
    server.start()
    async with connected(server) as session, session.get(CONFIG_MAPS) as response:
        found = {each["metadata"]["name"] for each in (await response.json())["items"]}
    assert found == {"before", "after", *created}


def test_kubectl_sees_the_same_after_a_restart(server):
    def kubectl(*arguments, kubeconfig=server.kubeconfig, stdin=None):
        command = [clients.find("kubectl"), "--kubeconfig", kubeconfig, "--cache-dir", server.directory / "cache"]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, input=stdin)
        return done.stdout

    kubectl("create", "namespace", "shop")
    kubectl("create", "deployment", "web", "-n", "shop", "--image=nginx", "--replicas=3")
    kubectl("create", "clusterrole", "reader", "--verb=get,list", "--resource=deployments.apps")
    kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", "--user=alice")
    kubectl("create", "serviceaccount", "robot", "-n", "shop")
    kubectl("create", "clusterrolebinding", "robot", "--clusterrole=reader", "--serviceaccount=shop:robot")
    token = kubectl("create", "token", "robot", "-n", "shop").strip()
    alice = server.user("alice")
    kinds = "namespaces,deployments,clusterroles,clusterrolebindings,serviceaccounts"
    before = kubectl("get", kinds, "-A", "-o", "json", "--show-managed-fields")

    server.kill()
    server.start()

    assert json.loads(kubectl("get", kinds, "-A", "-o", "json", "--show-managed-fields")) == json.loads(before)
    assert "web" in kubectl("get", "deployments", "-n", "shop", kubeconfig=alice)
    robot = json.loads(alice.read_text())
    robot["users"][0]["user"] = {"token": token}
    path = server.directory / "robot.kubeconfig"
    path.write_text(json.dumps(robot))
    assert "web" in kubectl("get", "deployments", "-n", "shop", kubeconfig=path)


def test_an_operator_continues_when_its_api_server_was_killed(server):
    failures = []
    operators = Operators(server, failures.append)
    env = SparesEnv(server.rest)
    try:
        operators("spares").wait_until_leading()
        env.spares(3)
        web = env.template("web", nodes=3)
        before = env.wait_for_owned(web, 3)

        server.kill()
        server.start()
        env.spares(2, start=3)
        db = env.template("db", nodes=2)
        env.wait_for_owned(db, 2, timeout=60)
        assert {node["metadata"]["uid"] for node in env.owned(web)} == {node["metadata"]["uid"] for node in before}
    finally:
        operators.close()
    assert failures == []


def test_a_directory_in_use_is_one_clear_line(server, tmp_path):
    done = subprocess.run(
        [*PROGRAM, "apiserver", "--port", "0", "--kubeconfig-out", tmp_path / "kc", "--data-dir", server.data],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    held = f"is in use by process {server.process.pid}; stop it, or give another directory"
    assert (done.returncode, done.stderr) == (1, f"nodeyard: --data-dir: {server.data}: {held}\n")


def test_a_bundle_begins_the_cluster_of_an_empty_directory_only(tmp_path):
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}
    metadata = {"name": "loaded", "namespace": "default", "uid": "u-1", "resourceVersion": "70"}
    served = ServedResource("", "v1", "configmaps", "ConfigMap", True, "configmap", ("cm",), (), ("get", "list"))
    bundle = tmp_path / "bundle.tgz"
    write_bundle(bundle, [served], {GVR("", "v1", "configmaps"): [{**config_map, "metadata": metadata}]})
    where = ("apiserver", "--port", "0", "--data-dir", tmp_path / "data", "--load", bundle)
    with open_process(*where, "--kubeconfig-out", tmp_path / "kc") as process:
        assert process.stdout.readline() == "ready\n"
        process.kill()

    with ApiProcess(tmp_path / "data") as server:
        found = server.rest.get(f"{CONFIG_MAPS}/loaded")
        assert (found["metadata"]["uid"], found["metadata"]["resourceVersion"], found["data"]) == (
            "u-1",
            "70",
            {"a": "1"},
        )
    refused = f"nodeyard: --load: {tmp_path / 'data'}: has a cluster already; give an empty directory\n"
    with open_process(*where, "--kubeconfig-out", tmp_path / "kc") as process:
        assert (process.wait(60), process.stderr.read()) == (1, refused)
