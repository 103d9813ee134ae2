"""Secrets that were planted come out nowhere: in no log at debug, no plan, no answer of `why` or of a webhook, no
status, event, annotation, Lease or metric.

Planted are kubeconfigs of leaves and of workload clusters, values of applications and tenants, configurations that are
rendered as Secrets, variables of Ansible, and the certificate of the webhooks; most of them sound, some torn, since
errors like to quote. Then operators of all capabilities work on them, and what they and the command line tell of it is
searched. Specs, labels and annotations that users write are not secret; where the operator copies one, it may show.
"""

import asyncio
import base64
import json
import re
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
from tests.builders.affinity_env import application_body, class_body, definition_body, set_body, tenant_body
from tests.builders.pools import cluster_body, pool
from tests.builders.profiles import compute_profile_body, node_body, role_body
from tests.builders.rule_webhooks import SECRET, look

from nodeyard.app import dry_planner
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.app.explanations import compose_answers
from nodeyard.capabilities.affinity import names as affinity
from nodeyard.capabilities.pools import names as pools
from nodeyard.capabilities.profiles import names as profiles
from nodeyard.cli.cluster import connect, find_running, plan_dry
from nodeyard.cli.plan import render
from nodeyard.client.kubeconfig import load_config
from nodeyard.kube.names import NAMESPACE
from nodeyard.plan.brake import Limit
from nodeyard.plan.explain import render_answers
from nodeyard.runtime.annotations import ref_of
from nodeyard.sim import stand_in_crds as stand_ins
from nodeyard.testing import third_party_crds
from nodeyard.testing.controlplane import ControlPlane
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.ports import LOOPBACK, free_port
from nodeyard.testing.rest import RestError
from nodeyard.testing.session import MERGE, Session

pytestmark = pytest.mark.timeout(400)  # some fifty commands, one after the other

CLUSTER_SECONDS = 2.0
"""Seconds that the command line waits for remote clusters, none of which answers."""
PROGRAM = [
    sys.executable,
    "-c",
    f"from nodeyard.app import dry_planner; dry_planner.CLUSTER_SECONDS = {CLUSTER_SECONDS}; "
    "from nodeyard.cli import main; main()",
]
CLUSTERS = "/apis/kosmos.io/v1alpha1/clusters"
EVENTS = "/apis/events.k8s.io/v1/events"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OPENSTACK = "openstack"
MARK = "planted-s3cret"


def encodings(text):
    """Return the secret as it is, and its middle in Base64 at each of the three offsets."""
    return [text, *(base64.b64encode(b"x" * shift + text.encode())[4:-4].decode() for shift in range(3))]


MARKS = encodings(MARK)


def encoded(given):
    text = given if isinstance(given, str) else json.dumps(given)
    return base64.b64encode(text.encode()).decode()


def is_marked(text, marks=MARKS):
    return any(mark in text for mark in marks)


# kubeconfigs


def kubeconfig(server="https://127.0.0.1:1", **user):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


def proxied(url):
    config = kubeconfig()
    config["clusters"][0]["cluster"]["proxy-url"] = url
    return config


GIVEN = {
    "token": kubeconfig(token=f"{MARK}-token"),
    "lines": kubeconfig(token=f"{MARK}-a\n{MARK}-b"),
    "password": kubeconfig(username="me", password=f"{MARK}-password"),
    "login": kubeconfig(f"https://me:{MARK}-login@127.0.0.1:1"),
    "proxy": proxied(f"socks5://me:{MARK}-proxy@127.0.0.1:1"),
    "key": kubeconfig(**{"client-certificate-data": encoded("no"), "client-key-data": encoded(f"{MARK}-key")}),
    "plugin": kubeconfig(
        exec={
            "command": "x",
            "args": [f"{MARK}-argument"],
            "env": [{"name": "A", "value": f"{MARK}-variable"}],
            "apiVersion": "client.k8s.io/v1",
        }
    ),
    "provider": kubeconfig(**{"auth-provider": {"name": "oidc", "config": {"refresh-token": f"{MARK}-refresh"}}}),
    "torn": f'{{"users": [{{"user": {{"token": "{MARK}-torn',
    "text": f"{MARK}-text",
}


# what is planted


def secret(namespace, name, labels=None, **data):
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "data": {key.replace("_", "."): encoded(value) for key, value in data.items()},
    }


def with_last_applied(body):
    """Annotate the object as kubectl does, with a copy of itself."""
    annotations = {**(body["metadata"].get("annotations") or {}), LAST_APPLIED: json.dumps(body)}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def leaf_clusters():
    for name, config in GIVEN.items():
        label = {"nodeyard.dev/leaf-kubeconfig": "true"}
        yield secret(NAMESPACE, name, label, kubeconfig=config)
        for where, spec in (
            ("spec", {"kubeconfig": encoded(config)}),
            ("ref", {"kubeconfigSecretRef": {"name": name}}),
        ):
            kind = {"apiVersion": "kosmos.io/v1alpha1", "kind": "Cluster"}
            yield with_last_applied(
                {**kind, "metadata": {"name": f"{name}-{where}"}, "spec": {**spec, "clusterTreeOptions": {}}}
            )


VALUES = f"""
_cluster:
  root-host: example.com
  registry-password: {MARK}-registry
_namespace:
  host: example.com
"""
TORN_VALUES = f"_cluster: {{password: {MARK}-unclosed\n  - [{MARK}-torn-values\n"
SCHEMA = {
    "type": "object",
    "properties": {"password": {"type": "string"}},
    "x-kubernetes-preserve-unknown-fields": True,
}


def vault(name, word, **spec):
    users = [{"name": "me", "password": f"{MARK}-{word}-user"}]
    given = {"password": f"{MARK}-{word}", "users": users, "nested": {"deep": {"token": f"{MARK}-{word}-deep"}}}
    return application_body("Vault", HOME, name, **given, **spec)


HOME, LEAVING = "tenant-acme", "tenant-leaving"


def applications():
    for name in (affinity.TENANT_ROOT, affinity.PLATFORM_NAMESPACE):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield secret(affinity.PLATFORM_NAMESPACE, affinity.VALUES_SECRET, values_yaml=VALUES)
    definition = definition_body("Vault")
    definition["spec"]["application"]["openAPISchema"] = json.dumps(SCHEMA)
    yield definition
    yield class_body("here", nodeSelector={"zone": "here"})
    yield tenant_body("acme", defaultAffinityClass="here", allowedAffinityClasses=["here"])
    yield tenant_body("leaving")


RENDERED = f"[DEFAULT]\ntransport_url = rabbit://me:{MARK}-rabbit@host\n"
CONFIGURATIONS = {
    "sound": RENDERED,
    # A value that continues without indentation.
    "unindented": f"[DEFAULT]\npassword =\n{MARK}-unindented\n",
    "bracketed": f'[DEFAULT]\npasswords =\n[["{MARK}-bracketed"]]\n[{MARK}-unclosed\n',
    "headless": f"{MARK}-headless\n",
    "tabbed": f"[DEFAULT]\npassword =\n\t{MARK}-tabbed\n",
    "sets": f"[compute]\ncpu_shared_set = {MARK}-set\n",
}
TORN_VARIABLES = f"password: {MARK}-variable\nother: [{MARK}-torn-variable\n"


def data_plane():
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPENSTACK}}
    yield secret(OPENSTACK, "ansible-key", **{"ssh-privatekey": f"{MARK}-ssh"})
    section = {
        "ansibleVars": f"ansible_become_password: {MARK}-become\n",
        "ansibleSSHPrivateKeySecret": "ansible-key",
        "nova": {"customServiceConfig": f"[DEFAULT]\nmetadata_proxy_shared_secret = {MARK}-metadata\n"},
    }
    yield role_body(namespace=OPENSTACK, annotations={profiles.CELL: "nova-cell1"}, nodeTemplate=section)
    for name, config in CONFIGURATIONS.items():
        yield with_last_applied(compute_profile_body(name, config, namespace=OPENSTACK, spec={"renderAs": "Secret"}))
        yield node_body(f"n-{name}", namespace=OPENSTACK, annotations={profiles.COMPUTE_PROFILE: name})
    # A ConfigMap, until it gets a password and becomes a Secret.
    chosen = {profiles.COMPUTE_PROFILE: "late", profiles.CELL: "nova-cell1"}
    yield compute_profile_body("late", "[DEFAULT]\ndebug = true\n", namespace=OPENSTACK)
    yield node_body("n-late", namespace=OPENSTACK, role="", annotations=chosen)
    torn = {"node": {"ansibleVars": TORN_VARIABLES}}
    yield node_body("n-variables", namespace=OPENSTACK, annotations={profiles.COMPUTE_PROFILE: "sound"}, **torn)


def workload_clusters():
    for name, config in GIVEN.items():
        own_pools_env = f"lc-{name}"
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": pools.namespace(own_pools_env)}}
        yield secret(pools.namespace(own_pools_env), pools.kubeconfig(own_pools_env), value=config)
        credentials = {"credentialsSecretRef": {"name": "cloud"}}
        yield secret(pools.namespace(own_pools_env), "cloud", key=f"{MARK}-cloud")
        yield cluster_body(own_pools_env, provider=credentials, workerPools={"a": pool(1)})


def certificate():
    """Build the Secret of the webhooks' certificate, with a key that is none."""
    key = f"-----BEGIN PRIVATE KEY-----\n{encoded(f'{MARK}-pem')}\n-----END PRIVATE KEY-----\n"
    return secret(NAMESPACE, "nodeyard-webhook-certificates", tls_key=key, tls_crt=key, ca_crt=key)


# where it is planted


@pytest.fixture(scope="module")
def server(api):
    """A server of the same make, of this file alone."""
    with ControlPlane() if api.is_real else EmbeddedServer(controllers=()) as server:
        kinds = [kind for each in CAPABILITIES for kind in each.definitions()]
        third_party_crds.install(server.rest, [*kinds, *stand_ins.definitions()])
        rest = server.rest
        rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for plant in (leaf_clusters, applications, data_plane, workload_clusters):
            for body in plant():
                rest.create(body)
        rest.create(certificate())
        yield server


@contextmanager
def operating(server, log, ports):
    binds = [word for name, port in ports.items() for word in (f"--{name}-bind", f"{LOOPBACK}:{port}")]
    options = ["--kubeconfig", str(server.kubeconfig), *binds, "--log-level", "debug"]
    with log.open("w") as stream:
        process = subprocess.Popen([*PROGRAM, "run", *options], stderr=stream)
    try:
        yield
    finally:
        process.kill()
        process.wait()


class Story:
    """The life of objects with planted secrets, and everything that the operator says of them."""

    def __init__(self, server, directory, eventually):
        self.rest = server.rest
        self.server = server
        self.log = directory / "log"
        self.outputs = {}
        self.marks = [*MARKS, server.admin_token]
        self.ports = {name: free_port() for name in ("health", "metrics", "webhook")}
        self._session = Session(server.url, server.authority.pem, server.admin_token)
        self._vaults = f"/apis/{affinity.APPS_API_VERSION}/namespaces/{HOME}/vaults"
        self._profiles = f"/apis/{profiles.NOVA_API_VERSION}/namespaces/{OPENSTACK}/{profiles.COMPUTE_PROFILE_PLURAL}"
        self._nodes = f"/apis/{profiles.DATAPLANE_API_VERSION}/namespaces/{OPENSTACK}/{profiles.NODE_PLURAL}"
        self._pools_env = f"/apis/{pools.API_VERSION}/{pools.CLUSTER_PLURAL}"
        self._directory = directory
        self._until = eventually

    def tell(self):
        with operating(self.server, self.log, self.ports):
            self._work()
            self._fail()
            self._refuse()
            self._collect_pages()
            self._collect_commands()
            self._collect("running")
        self.outputs["log"] = self.log.read_text()
        self._change()
        self._collect("stopped")

    # what happens

    def _work(self):
        """Let the operator carry the secrets to the objects for which they are meant."""
        for name in GIVEN:
            self._initialize(f"lc-{name}")
        self._until(lambda: all(conditions(self.rest, CLUSTERS)), "every Cluster has its conditions")
        self._until(lambda: self._carries(HOME, affinity.VALUES_SECRET), "the tenant has its values")
        self._until(lambda: look(self.rest, self._vaults) is not None, "Vaults are served")
        for name in ("main", "odd"):
            self._until(lambda name=name: self._creates(with_last_applied(vault(name, name))), f"{name} is admitted")
        for name in ("main", "odd"):
            self._until(lambda name=name: look(self.rest, self._release(name)), f"{name} has a release")
        rendered = profiles.config_name("n-sound", "nova")
        self._until(lambda: self._carries(OPENSTACK, rendered), "the configuration is rendered")
        self._until(lambda: look(self.rest, self._map("n-late")), "the other one is a ConfigMap")
        key = self._until(self._private_key, "the webhooks have a certificate")
        # Its lines, the last of which may be short.
        self.marks += [line for line in key.splitlines() if len(line) > 40 and "-----" not in line]

    def _initialize(self, name):
        """Act as Cluster API does when the control plane is initialized and its kubeconfig exists."""
        path = f"/apis/{pools.CAPI_API_VERSION}/namespaces/{pools.namespace(name)}/clusters/{name}"
        self._until(lambda: look(self.rest, path), f"{name} has its Cluster")
        status = {"status": {"initialization": {"controlPlaneInitialized": True}}}
        self.rest.call("PATCH", f"{path}/status", status, content_type=MERGE)

    def _fail(self):
        """Break the inputs, so that the operator complains about them."""
        self._until(lambda: len(self._unreached()) == len(GIVEN), "no workload cluster is reached")
        values = f"/api/v1/namespaces/{affinity.PLATFORM_NAMESPACE}/secrets/{affinity.VALUES_SECRET}"
        torn = {"data": {"values.yaml": encoded(TORN_VALUES)}}
        self.rest.call("PATCH", values, torn, content_type=MERGE)
        tenant = f"/apis/{affinity.APPS_API_VERSION}/namespaces/{affinity.TENANT_ROOT}/tenants/leaving"
        self.rest.create(secret(LEAVING, "theirs", password=f"{MARK}-theirs"))
        # A workload that would be lost with its tenant.
        self.rest.create(set_body(LEAVING, "theirs"))
        self.rest.call("DELETE", tenant)
        self._until(lambda: self._is_held(tenant), "the deletion of the tenant is held")
        self._until(lambda: events(self.rest), "what is wrong is told in events")

    def _refuse(self):
        """Webhooks refuse what has secrets in it, or warn of it."""
        unindented, torn = CONFIGURATIONS["unindented"], {"ansibleVars": TORN_VARIABLES}
        for path, body in (
            (self._vaults, vault("elsewhere", "refused", affinityClass="there")),
            (self._profiles, compute_profile_body("bad", unindented, namespace=OPENSTACK, spec={"renderAs": "Secret"})),
            (self._nodes, node_body("bad", namespace=OPENSTACK, node=torn)),
        ):
            self._answered(named(body), self._session.post(path, body, query={"dryRun": "All"}))
        for name in GIVEN:
            self._answered(f"{name} deleted", self._session.delete(f"{self._pools_env}/lc-{name}"))

    def _answered(self, what, answer):
        if answer.status >= 400:
            assert "admission webhook" in answer.message
        self.outputs[f"webhook answer {what}"] = answer.message if answer.status >= 400 else "\n".join(answer.warnings)

    def _change(self):
        """With nobody at work, so that plans have something to tell."""
        self.rest.call(
            "PATCH",
            f"{self._vaults}/main",
            {"spec": {"password": f"{MARK}-changed", "users": [], "more": [f"{MARK}-listed"]}},
            content_type=MERGE,
        )
        foreign_values = {"spec": {"values": {"theirs": {"password": f"{MARK}-foreign"}, "password": f"{MARK}-else"}}}
        self.rest.call("PATCH", self._release("odd"), foreign_values, content_type=MERGE)
        as_secret = {"spec": {"renderAs": "Secret", "customComputeServiceConfig": RENDERED}}
        self.rest.call("PATCH", f"{self._profiles}/late", as_secret, content_type=MERGE)
        other = {"spec": {"customComputeServiceConfig": RENDERED.replace("-rabbit", "-hare")}}
        self.rest.call("PATCH", f"{self._profiles}/sound", other, content_type=MERGE)
        self.rest.call("DELETE", self._release("main"))

    # what there is

    def _carries(self, namespace, name):
        found = look(self.rest, f"/api/v1/namespaces/{namespace}/secrets/{name}")
        return found is not None and is_marked(json.dumps(found["data"]))

    def _creates(self, body):
        try:
            return self.rest.create(body)
        except RestError as error:
            if error.status not in (403, 404):
                raise
            return None

    def _release(self, name):
        return f"/apis/{affinity.FLUX_API_VERSION}/namespaces/{HOME}/{affinity.RELEASE_PLURAL}/vault-{name}"

    def _map(self, node):
        return f"/api/v1/namespaces/{OPENSTACK}/configmaps/{profiles.config_name(node, 'nova')}"

    def _private_key(self):
        found = base64.b64decode((look(self.rest, SECRET) or {})["data"]["tls.key"]).decode()
        return "" if is_marked(found) else found

    def _is_held(self, path):
        found = self.rest.get(path).get("status", {}).get("conditions") or ()
        return any((each["type"], each["status"]) == ("Held", "True") for each in found)

    def _unreached(self):
        lines = map(json.loads, self.log.read_text().splitlines())
        return {
            each["cluster"]
            for each in lines
            if each["message"] == "cluster disconnected" and each["cluster"].startswith("lc-")
        }

    # what is told

    def _collect_pages(self):
        for name, path in (("metrics", "/metrics"), ("health", "/healthz?verbose"), ("health", "/readyz?verbose")):
            with urllib.request.urlopen(f"http://{LOOPBACK}:{self.ports[name]}{path}") as page:
                self.outputs[path] = page.read().decode()

    def _collect_commands(self):
        file = self._directory / "applied.json"
        file.write_text(json.dumps(vault("main", "supposed")))
        for arguments in (("plan", "-o", "json"), ("plan", "-f", str(file)), ("approve",), ("status",)):
            command = [*PROGRAM, *arguments, "--kubeconfig", str(self.server.kubeconfig)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            self.outputs[" ".join(arguments[:2])] = done.stdout + done.stderr

    def _collect(self, when):
        """Return what the server stores, and what plans and `why` say of it."""
        objects = list(everything(self.rest))
        told = {named(obj): json.dumps(written(obj)) for obj in objects} | asyncio.run(said(self.server, objects))
        self.outputs |= {f"{name}, {when}": text for name, text in told.items()}


def conditions(rest, path):
    return [each.get("status", {}).get("conditions") for each in rest.get(path)["items"]]


def events(rest):
    return rest.get(EVENTS)["items"]


def everything(rest):
    """All objects of all kinds but Secrets."""
    groups = ["/api/v1"] + [
        f"/apis/{group['preferredVersion']['groupVersion']}" for group in rest.get("/apis")["groups"]
    ]
    for group in groups:
        for resource in rest.get(group)["resources"]:
            if "/" not in resource["name"] and "list" in resource["verbs"] and resource["kind"] != "Secret":
                found = rest.get(f"{group}/{resource['name']}")
                head = {"apiVersion": found["apiVersion"], "kind": resource["kind"]}
                yield from ({**head, **each} for each in found.get("items") or ())


def named(obj):
    metadata = obj["metadata"]
    return f"{obj['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


THEIRS = ("HelmRelease helm.", "Cluster kosmos.", "Vault apps.", "ComputeProfile nova.", "OpenStack")
"""Kinds whose specs hold what people have put there, or what is put there by their will."""


def written(obj):
    """Return the parts of an object that the operator may have written without being asked."""
    annotations = {key: text for key, text in (obj["metadata"].get("annotations") or {}).items() if key != LAST_APPLIED}
    shown = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
    if f"{obj['kind']} {obj['apiVersion']}".startswith(THEIRS):
        del shown["spec"]
    return shown


async def said(server, objects):
    """Return what `nodeyard plan` prints in all forms, and `nodeyard why` of each object."""
    async with connect(load_config(server.kubeconfig)) as client:
        operators, _ = await find_running(client, CAPABILITIES)
        async with plan_dry(client, CAPABILITIES) as planner:
            dry_plans = planner.plans(Limit())
            found = {f"plan {form}": render(dry_plans, form) for form in ("text", "json", "yaml")}
            for obj in objects:
                ref = ref_of(obj, obj["apiVersion"], obj["kind"])
                await planner.watch_kinds_of(ref)
                if text := render_answers(compose_answers(planner.why(ref, operators.limits()), operators, ref, obj)):
                    found[f"why {named(obj)}"] = text
            return found


@pytest.fixture(scope="module")
def story(server, tmp_path_factory, eventually):
    story = Story(server, tmp_path_factory.mktemp("secrets"), eventually)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(dry_planner, "CLUSTER_SECONDS", CLUSTER_SECONDS)
        story.tell()
    return story


def test_no_planted_secret_is_leaked(story):
    assert [name for name, text in story.outputs.items() if is_marked(text, story.marks)] == []


def test_the_searched_outputs_would_show_a_planted_secret(story):
    outputs = story.outputs
    assert all(is_marked(json.dumps(config)) for config in GIVEN.values())
    assert is_marked(encoded(GIVEN["token"]))
    assert [name for name, text in outputs.items() if not text] == []
    assert all(f"{name}-spec" in outputs["log"] and f"lc-{name}" in outputs["log"] for name in GIVEN)
    for plan in ("plan -o", "plan text, stopped", "plan json, stopped", "plan yaml, stopped"):
        assert "n-sound" in outputs[plan]
    for hashed in ("spec.values.password", "spec.values.theirs.password", "data[02-nova-profile.conf]"):
        assert re.search(rf'{re.escape(hashed)} "sha256:', outputs["plan text, stopped"])
    for kind, name in (("Vault", f"{HOME}/main"), ("Cluster", "/torn-spec"), ("LatticeCluster", "/lc-torn")):
        assert f"why {kind} {name}, running" in outputs
    assert {"/metrics", "/readyz?verbose", "approve", "status"} < outputs.keys()
    assert "affinity tenants" in outputs["approve"]
    assert "held" in outputs["Lease nodeyard-system/nodeyard-affinity, running"]
    assert any(name.startswith("Event ") for name in outputs)
