"""Processes that shard LabelRules, for tests that kill them, and the record of their Leases and writes.

    python -m tests.builders.sharded_processes KUBECONFIG IDENTITY PREFIX

The capability plans rules whose names begin with the prefix; an annotation of each node names its writer.
"""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
from tests.builders import labels

from nodeyard.app.operator import Operation, operate
from nodeyard.client.kubeconfig import load_config
from nodeyard.kube.names import NAMESPACE
from nodeyard.runtime.settings import Settings
from nodeyard.testing.session import Session

BY = "labels.test/by"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
ROOT = Path(__file__).parents[2]


def sharded(identity, prefix):
    def plan(snapshot, now, explain):
        planned = labels.plan(snapshot, now, explain)
        return msgspec.structs.replace(
            planned, writes={name: _signed(write, identity) for name, write in planned.writes.items()}
        )

    return replace(
        labels.LABELS,
        name=f"labels-{prefix}",
        is_sharded=True,
        plan=plan,
        all_keys=lambda view: [key for key in labels.LABELS.all_keys(view) if key.startswith(prefix)],
    )


def _signed(write, identity):
    metadata = {**write.body["metadata"], "annotations": {BY: identity}}
    return msgspec.structs.replace(write, body={**write.body, "metadata": metadata})


class ShardedProcess:
    """One process of the operator."""

    def __init__(self, kubeconfig, identity, prefix):
        self.identity = identity
        command = [sys.executable, "-m", "tests.builders.sharded_processes", str(kubeconfig), identity, prefix]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        """Stop with SIGTERM."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def freeze(self):
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self._process.send_signal(signal.SIGCONT)


class Holders:
    """Record of the holder of each key and the writer of each node since its creation, in the server's order."""

    def __init__(self, api, prefix):
        self._session = Session(api.url, api.authority.pem, api.admin_token)
        self._prefix = f"nodeyard-labels-{prefix}-"
        self._since = self._session.get("/api/v1/nodes?limit=1").json["metadata"]["resourceVersion"]

    def now(self):
        """Return the holder of each held key."""
        found = self._session.get(LEASES).json["items"]
        pairs = ((self._key(each), each["spec"].get("holderIdentity")) for each in found)
        return {key: holder for key, holder in pairs if key and holder}

    def assert_each_wrote_only_for_what_it_had(self):
        """Assert that at every write the Lease of its key named the writer. Writes that change neither the team nor its
        writer come from controllers, such as the taint of an unreachable node."""
        holders, seen, writes = {}, {}, 0
        for event in sorted(self._events(LEASES) + self._events("/api/v1/nodes"), key=_version):
            obj = event["object"]
            if obj["kind"] == "Lease":
                holders[self._key(obj)] = "" if event["type"] == "DELETED" else obj["spec"].get("holderIdentity")
                continue
            metadata = obj["metadata"]
            rule, by = metadata["labels"].get(labels.RULE), metadata.get("annotations", {}).get(BY)
            said = metadata["labels"].get(labels.TEAM), by
            is_write, seen[rule] = said != seen.get(rule), said
            if rule in holders and by and is_write:
                writes += 1
                assert holders[rule] == by, f"{by} wrote {metadata['name']} while {holders[rule]!r} had {rule}"
        return writes

    def _key(self, lease):
        name = lease["metadata"]["name"]
        is_key = name.startswith(self._prefix) and not name.startswith(f"{self._prefix}replica-")
        return name.removeprefix(self._prefix) if is_key else ""

    def _events(self, path):
        query = {"resourceVersion": self._since, "timeoutSeconds": 3}
        with self._session.watch(path, query=query) as events:
            return list(events)


def _version(event):
    return int(event["object"]["metadata"]["resourceVersion"])


def main(kubeconfig, identity, prefix):
    operation = Operation(load_config(kubeconfig), [sharded(identity, prefix)], Settings(identity=identity))
    stopped = asyncio.Event()

    async def run():
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
        await operate(operation, stopped.wait)

    asyncio.run(run())


if __name__ == "__main__":
    main(*sys.argv[1:])
