"""`nodeyard run`, `plan`, `why` and `approve` as processes: output, exit codes and errors."""

import html
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.capabilities.spares import names
from nodeyard.testing import third_party_crds
from nodeyard.testing.embedded import EmbeddedServer

from ..builders.json_schema import problems

SCHEMAS = Path(__file__).parents[2] / "docs/schema"
PROGRAM = [sys.executable, "-c", "from nodeyard.cli import main; main()"]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/nodeyard-system/leases/nodeyard-spares"
TEMPLATES = f"/apis/{names.GROUP}/{names.VERSION}/nodetemplates"


def nodeyard(*arguments, piped="", **environment):
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=piped,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


@contextmanager
def operating(kubeconfig, *arguments):
    binds = ("--health-bind", "127.0.0.1:0", "--metrics-bind", "0", "--webhook-bind", "127.0.0.1:0")
    command = [*PROGRAM, "run", "--kubeconfig", str(kubeconfig), *binds, *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def template(name, nodes=1, **spec):
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.KIND,
        "metadata": {"name": name},
        "spec": {
            "nodes": nodes,
            "selector": {"matchLabels": {"for": name}},
            "template": {"metadata": {"labels": {"role": name}}},
            **spec,
        },
    }


def spare(name, for_whom):
    taint = {"key": names.SPARE_TAINT, "value": "true", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"for": for_whom}},
        "spec": {"taints": [taint]},
    }


@pytest.fixture
def server():
    with EmbeddedServer(controllers=()) as server:
        yield server


@pytest.fixture
def prepared(server):
    prepare(server)
    return server


@pytest.fixture(scope="module")
def looked_at():
    """Shared by tests that only read."""
    with EmbeddedServer(controllers=()) as server:
        prepare(server)
        yield server


def prepare(server):
    """A server with all CRDs, a template and a spare."""
    third_party_crds.install(server.rest, [definition for each in CAPABILITIES for definition in each.definitions()])
    server.rest.create(template("web"))
    server.rest.create(spare("n1", "web"))


def label_of(server, node):
    return server.rest.get(f"/api/v1/nodes/{node}")["metadata"]["labels"].get(names.TEMPLATE_LABEL)


def test_run_installs_allocates_and_on_sigterm_gives_its_lease_back(server, eventually, tmp_path):
    kubeconfig = tmp_path / "kc"
    kubeconfig.write_text(server.kubeconfig.read_text().replace("https://", "https://me:s3cret@"))
    with operating(kubeconfig, "--install-crds") as process:
        eventually(lambda: server.rest.status(TEMPLATES) == 200, "templates are served")
        server.rest.create(template("web"))
        server.rest.create(spare("n1", "web"))
        eventually(lambda: label_of(server, "n1") == "web", "the spare is claimed")
        assert server.rest.get(LEASE)["spec"]["holderIdentity"]
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=30)
    assert process.returncode == 0
    assert not server.rest.get(LEASE)["spec"].get("holderIdentity")
    assert "s3cret" not in log
    lines = [json.loads(line) for line in log.splitlines()]
    claims = [line for line in lines if line["message"] == "action sent" and line["object"] == "Node n1"]
    assert [claim["reason"] for claim in claims] == ["Claimed"]
    assert claims[0]["reconcile"]


def test_observing_changes_nothing(looked_at, eventually):
    with operating(looked_at.kubeconfig, "--observe") as process:
        seen = []
        for line in process.stderr:
            seen.append(json.loads(line))
            if seen[-1]["message"] == "action not sent":
                break
        assert seen[-1]["object"] in ("Node n1", "NodeTemplate web")
        assert label_of(looked_at, "n1") is None


def test_plan_shows_what_would_be_done_and_exits_2(looked_at):
    done = nodeyard("plan", "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 2, done.stderr
    assert "Patch Node n1" in done.stdout
    assert "Claimed" in done.stdout
    assert label_of(looked_at, "n1") is None


@pytest.mark.parametrize(("form", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_plans_are_printed_in_their_public_form(looked_at, form, load):
    done = nodeyard("plan", "--kubeconfig", looked_at.kubeconfig, "-o", form)
    listed = load(done.stdout)
    assert (listed["apiVersion"], listed["kind"]) == ("nodeyard.dev/v1alpha1", "PlanList")
    (plan,) = (each for each in listed["items"] if each.get("actions"))
    assert plan["capability"] == "spares"
    assert "Node n1" in [f"{each['object']['kind']} {each['object']['name']}" for each in plan["actions"]]


def test_plan_exits_0_when_there_is_nothing_to_do(prepared, eventually):
    with operating(prepared.kubeconfig):
        eventually(lambda: label_of(prepared, "n1") == "web", "the spare is claimed")
        eventually(
            lambda: prepared.rest.get(f"{TEMPLATES}/web").get("status", {}).get("currentNodes") == 1, "it is told"
        )
    done = nodeyard("plan", "--kubeconfig", prepared.kubeconfig)
    assert (done.returncode, done.stderr) == (0, "")


def test_files_are_planned_with_and_not_applied(prepared, tmp_path):
    prepared.rest.create(spare("n2", "db"))
    file = tmp_path / "db.yaml"
    file.write_text(yaml.safe_dump(template("db")))
    done = nodeyard("plan", "--kubeconfig", prepared.kubeconfig, "-f", file)
    assert done.returncode == 2, done.stderr
    assert "Patch Node n2" in done.stdout
    assert prepared.rest.status(f"{TEMPLATES}/db") == 404


def test_a_changed_file_is_planned_as_changed(looked_at, tmp_path):
    file = tmp_path / "web.yaml"
    file.write_text(yaml.safe_dump(template("web", nodes=0)))
    done = nodeyard("plan", "--kubeconfig", looked_at.kubeconfig, "-f", file)
    assert "Claimed" not in done.stdout
    assert looked_at.rest.get(f"{TEMPLATES}/web")["spec"]["nodes"] == 1


def test_a_file_that_the_server_refuses_exits_1_with_its_words(looked_at, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump(template("bad", nodes=-1)))
    done = nodeyard("plan", "--kubeconfig", looked_at.kubeconfig, "-f", file)
    assert done.returncode == 1
    assert "NodeTemplate bad" in done.stderr
    assert "spec.nodes" in done.stderr


def test_without_a_cluster_files_are_planned_alone(tmp_path):
    (tmp_path / "1.yaml").write_text(yaml.safe_dump(template("web")))
    (tmp_path / "2.yaml").write_text(yaml.safe_dump(spare("n1", "web")))
    done = nodeyard("plan", "-f", tmp_path, HOME=str(tmp_path), KUBECONFIG=str(tmp_path / "none"))
    assert done.returncode == 2, done.stderr
    assert "Patch Node n1" in done.stdout
    assert "planning for the files alone" in done.stderr


def test_standard_input_is_planned_like_a_file(tmp_path):
    piped = yaml.safe_dump_all([template("web"), spare("n1", "web")])
    done = nodeyard("plan", "-f", "-", piped=piped, HOME=str(tmp_path), KUBECONFIG=str(tmp_path / "none"))
    assert done.returncode == 2, done.stderr
    assert "Patch Node n1" in done.stdout


def test_an_unusable_kubeconfig_is_not_treated_as_missing(tmp_path):
    file, broken = tmp_path / "1.yaml", tmp_path / "kc"
    file.write_text(yaml.safe_dump(template("web")))
    broken.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "current-context": "gone"}))
    done = nodeyard("plan", "-f", file, KUBECONFIG=str(broken))
    assert done.returncode == 1, done.stdout
    assert 'context "gone" not found' in done.stderr
    assert done.stdout == ""


def test_objects_without_namespace_are_in_that_of_the_context_as_in_kubectl(prepared, tmp_path):
    file, there = tmp_path / "settings.yaml", in_namespace(prepared.kubeconfig, "team", tmp_path / "kc")
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}))
    refused = nodeyard("plan", "--kubeconfig", there, "-f", file)
    assert refused.returncode == 1
    assert 'namespaces "team" not found' in refused.stderr
    prepared.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    prepared.rest.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "team"}})
    assert "has anything to say" in nodeyard("why", "configmap/x", "--kubeconfig", there).stderr
    assert "not found" in nodeyard("why", "configmap/x", "-n", "default", "--kubeconfig", there).stderr


def in_namespace(kubeconfig, namespace, path):
    document = yaml.safe_load(kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = namespace
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("subject", ["node/n1", "nt/web", "nodetemplates.nyallocator.cybozu.io/web"])
def test_why_explains_an_object(looked_at, subject):
    done = nodeyard("why", subject, "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "(spares)" in done.stdout


def test_why_answers_programs_and_writes_a_page(looked_at, tmp_path):
    done = nodeyard("why", "nt/web", "-o", "json", "--html", tmp_path / "w.html", "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 0, done.stderr
    assert list(problems(json.loads((SCHEMAS / "why.schema.json").read_text()), json.loads(done.stdout))) == []
    answer = json.loads(done.stdout)["answers"][0]
    assert (answer["by"], answer["object"]["name"]) == ("spares", "web")
    page = (tmp_path / "w.html").read_text()
    assert "Why NodeTemplate web" in page
    assert answer["sentence"] in html.unescape(page)

    lost = nodeyard("why", "nt/web", "--html", tmp_path / "no/w.html", "--kubeconfig", looked_at.kubeconfig)
    assert lost.returncode == 1
    assert lost.stderr.endswith("w.html: No such file or directory\n")


def completed(*words, kubeconfig):
    line = " ".join(["nodeyard", *map(str, words)])
    given = {"_NODEYARD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = nodeyard(KUBECONFIG=str(kubeconfig), **given)
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_completes_kinds_and_names(looked_at, tmp_path, eventually):
    def completes(*words, to, kubeconfig=looked_at.kubeconfig):
        # A cluster that does not answer within two seconds completes nothing, and a busy one may not.
        what = f"{words} completes to {to}"
        eventually(lambda: completed(*words, kubeconfig=kubeconfig) == to, what)

    assert {"node/", "nodetemplate/", "pool/", "leaf/"} <= set(completed("why", "", kubeconfig=looked_at.kubeconfig))
    completes("why", "nodet", to=["nodetemplate/web"])
    completes("why", "node/n", to=["node/n1"])
    assert completed("why", "node/x", kubeconfig=looked_at.kubeconfig) == []
    completes("why", "--kubeconfig", looked_at.kubeconfig, "node/n", to=["node/n1"], kubeconfig=tmp_path / "none")


def test_the_shell_completes_nothing_where_no_cluster_answers(tmp_path):
    (gone := tmp_path / "gone").write_text("clusters: [{")
    for words in (("why", "node/n"), ("approve", "6"), ("why", "unicorn/x")):
        assert completed(*words, kubeconfig=gone) == []
    assert completed("why", "nodet", kubeconfig=gone) == ["nodetemplate/"]


def test_plan_answers_programs_in_the_published_form(looked_at):
    done = nodeyard("plan", "-o", "json", "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 2, done.stderr
    assert list(problems(json.loads((SCHEMAS / "plan.schema.json").read_text()), json.loads(done.stdout))) == []


@pytest.mark.parametrize(
    ("subject", "complaint"),
    [
        ("node/nobody", 'nodes "nobody" not found'),
        ("unicorn/x", 'the server has no resource "unicorn"'),
        ("secret/x", "not found"),
        ("leaf/nowhere", "leaf/nowhere: Cluster nowhere does not exist"),
        ("pool/prod/gpu", "pool/prod/gpu: MachineDeployment capi-prod/prod-pool-gpu does not exist"),
    ],
)
def test_why_reports_unknown_objects(looked_at, subject, complaint):
    done = nodeyard("why", subject, "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 1
    assert complaint in done.stderr


@pytest.mark.parametrize(
    ("subject", "form"),
    [("pool/prod", "pool/CLUSTER/POOL"), ("application/Vault/main", "application/KIND/NAMESPACE/NAME"), ("node", "")],
)
def test_a_name_of_another_form_is_a_usage_error(looked_at, subject, form):
    done = nodeyard("why", subject, "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 64
    assert form in done.stderr
    assert done.stderr.count("\n") == 1


def test_approve_says_which_plans_there_are_when_it_finds_none(looked_at):
    done = nodeyard("approve", "0123456789ab", "--kubeconfig", looked_at.kubeconfig)
    assert done.returncode == 1
    assert "no disruptive plan has the id 0123456789ab; there are: none" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (("run", "--capabilities", "flying"), 64, 'unknown capability "flying"; choose from: spares'),
        (("run", "--max-disruption", "many"), 64, "--max-disruption: "),
        (("run", "--health-bind", "here"), 64, "--health-bind: "),
        (("run", "--webhook-bind", ":9443"), 64, "--webhook-bind :9443: also give --webhook-service or --webhook-url"),
        (("run", "--kubeconfig", "/nowhere"), 1, "/nowhere: cannot be read"),
        (("plan", "--max-disruption", "many"), 64, "--max-disruption: "),
        (("plan", "--kubeconfig", "/nowhere"), 1, "/nowhere: cannot be read"),
        (("plan", "-f", "/nowhere.yaml"), 1, "/nowhere.yaml: no such file or directory"),
        (("plan", "-f", "/dev/null"), 1, "/dev/null: contains no object"),
        (("approve", "--revoke"), 64, "--revoke: give the ID of the plan"),
        (("crds", "--output", "/dev/null/crds"), 1, "--output: /dev/null/crds: Not a directory"),
    ],
)
def test_wrong_options_are_reported_in_one_line(arguments, code, complaint):
    done = nodeyard(*arguments)
    assert done.returncode == code
    assert complaint in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("plan", "--nonsense"), ("fly",), ("why",), ("plan", "-o", "xml")])
def test_a_command_that_is_typed_wrongly_exits_64_and_not_as_if_changes_were_pending(arguments):
    done = nodeyard(*arguments)
    assert done.returncode == 64, done.stderr
    assert "Usage: " in done.stderr


@pytest.mark.parametrize("kubeconfig", ["", "/dev/null"])
def test_a_kubeconfig_of_nothing_means_no_cluster(kubeconfig, tmp_path):
    piped = yaml.safe_dump_all([template("web"), spare("n1", "web")])
    done = nodeyard("plan", "-f", "-", piped=piped, KUBECONFIG=kubeconfig, HOME=str(tmp_path))
    assert done.returncode == 2, done.stderr
    assert "planning for the files alone" in done.stderr
    alone = nodeyard("plan", KUBECONFIG=kubeconfig, HOME=str(tmp_path))
    assert alone.returncode == 1
    assert "no cluster configured" in alone.stderr
    assert alone.stderr.count("\n") == 1


def test_a_server_that_does_not_answer_is_named_in_one_line_with_what_to_do(looked_at, tmp_path):
    kubeconfig = yaml.safe_load(looked_at.kubeconfig.read_text())
    kubeconfig["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    file = tmp_path / "kc"
    file.write_text(yaml.safe_dump(kubeconfig))
    for verb in (("plan",), ("why", "node/n1"), ("approve",), ("status",)):
        done = nodeyard(*verb, "--kubeconfig", file)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert "https://127.0.0.1:1" in done.stderr
        assert "does not answer" in done.stderr
        assert "--context" in done.stderr


def test_rejected_credentials_are_reported_in_one_line_with_what_to_do(looked_at, tmp_path):
    kubeconfig = yaml.safe_load(looked_at.kubeconfig.read_text())
    kubeconfig["users"][0]["user"] = {"token": "wrong"}
    file = tmp_path / "kc"
    file.write_text(yaml.safe_dump(kubeconfig))
    done = nodeyard("plan", "--kubeconfig", file)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "refused the credentials" in done.stderr
    assert "--context" in done.stderr


def test_kinds_that_are_not_installed_are_reported_with_the_remedy(server):
    done = nodeyard("plan", "--kubeconfig", server.kubeconfig)
    assert done.returncode == 1
    assert "nodeyard crds | kubectl apply -f -" in done.stderr
    assert "spares: skipped: CRDs not installed: nodetemplates.nyallocator.cybozu.io" in done.stderr


def test_another_context_is_another_cluster(looked_at, tmp_path):
    kubeconfig = yaml.safe_load(looked_at.kubeconfig.read_text())
    good = kubeconfig["contexts"][0]
    kubeconfig["clusters"].append({"name": "dead", "cluster": {"server": "https://127.0.0.1:1"}})
    kubeconfig["contexts"].append({"name": "dead", "context": {**good["context"], "cluster": "dead"}})
    kubeconfig["current-context"] = "dead"
    file = tmp_path / "kc"
    file.write_text(yaml.safe_dump(kubeconfig))
    assert nodeyard("status", "--kubeconfig", file).returncode == 1
    done = nodeyard("status", "--kubeconfig", file, "--context", good["name"])
    assert done.returncode == 0, done.stderr


def lattice_cluster():
    provider = {"kubernetes": {"version": "v1.32.0"}, "config": {"docker": {}}}
    nodes = {"controlPlane": 1, "workerPools": {"web": {"replicas": 2}}}
    return {
        "apiVersion": "lattice.dev/v1alpha1",
        "kind": "LatticeCluster",
        "metadata": {"name": "prod"},
        "spec": {"provider": provider, "nodes": nodes},
    }


def test_without_a_cluster_a_lattice_cluster_is_planned_as_if_its_provider_were_there(tmp_path):
    piped = yaml.safe_dump(lattice_cluster())
    done = nodeyard("plan", "-f", "-", piped=piped, HOME=str(tmp_path), KUBECONFIG="")
    assert done.returncode == 2, done.stderr
    assert "as if Cluster API, its providers and Flux were installed" in done.stderr
    assert "ProviderNotServed" not in done.stdout
    for kind in ("Namespace", "Cluster"):
        assert re.search(rf"^  (Create|Apply) {kind} ", done.stdout, re.MULTILINE), done.stdout
    again = nodeyard("plan", "-f", "-", piped=piped, HOME=str(tmp_path), KUBECONFIG="")
    assert again.stdout == done.stdout


def test_the_plan_for_a_new_object_has_the_same_id_each_time(looked_at):
    piped = yaml.safe_dump(template("new", nodes=0))
    one, other = (
        nodeyard("plan", "--kubeconfig", looked_at.kubeconfig, "-f", "-", "-o", "json", piped=piped) for _ in range(2)
    )
    assert one.returncode == 2, one.stderr
    assert [each["id"] for each in json.loads(one.stdout)["items"]] == [
        each["id"] for each in json.loads(other.stdout)["items"]
    ]


# the dashboard


@contextmanager
def shown(*arguments):
    process = subprocess.Popen(
        [*PROGRAM, "dashboard", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_the_dashboard_prints_its_address_first_and_ends_on_ctrl_c(looked_at):
    with shown("--kubeconfig", looked_at.kubeconfig, "--bind", "127.0.0.1:0") as process:
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}", url)
        with urllib.request.urlopen(url.partition("?")[0]) as page:
            assert page.status == 200
        process.send_signal(signal.SIGINT)
        rest, log = process.communicate(timeout=30)
    assert (process.returncode, rest, log) == (0, "", "")


def test_two_dashboards_on_one_address_are_one_line(looked_at):
    with shown("--kubeconfig", looked_at.kubeconfig, "--bind", "127.0.0.1:0") as process:
        port = process.stdout.readline().rpartition("/")[0].rpartition(":")[2]
        done = nodeyard("dashboard", "--kubeconfig", looked_at.kubeconfig, "--bind", f"127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_dashboard_for_other_machines_is_a_usage_error(looked_at):
    done = nodeyard("dashboard", "--kubeconfig", looked_at.kubeconfig, "--bind", "0.0.0.0:0")
    assert done.returncode == 64
    assert "ssh -L" in done.stderr


def test_the_operator_serves_the_dashboard_to_bearer_tokens(looked_at):
    with operating(looked_at.kubeconfig, "--observe", "--dashboard-bind", "127.0.0.1:0") as process:
        started = next(line for line in map(json.loads, process.stderr) if line["message"] == "operator started")
        base = f"http://127.0.0.1:{started['ports']['dashboard']}"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{base}/api/v1/snapshot")
        signing_in = urllib.request.Request(
            f"{base}/api/v1/login",
            data=json.dumps({"token": looked_at.admin_token}).encode(),
            headers={"Content-Type": "application/json", "Origin": base},
        )
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(signing_in) as answer:
            assert json.load(answer) == {"name": "admin", "canApprove": True}
        with opener.open(f"{base}/api/v1/snapshot") as answer:
            assert json.load(answer)["cluster"]["server"] == looked_at.url
