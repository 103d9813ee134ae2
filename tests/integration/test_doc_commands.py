"""Every command on the pages runs as it is printed, in the order of its page, and prints what the page shows.

A comment before a block names its cluster; it counts until the next such comment of the page:

    <!-- on: demo -->       the fleet that `make demo` leaves. The default
    <!-- on: server -->     an API server of the page, without an operator
    <!-- on: nothing -->    no cluster

Behind a comma: `fails` (its last command), `repeats` (until it works), `elsewhere` (its output is of another cluster).
`<!-- not run: reason -->` exempts one block. Targets of make are expanded, not made.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.request import urlopen

import pytest
import typer
from tools import doc_pages

from nodeyard.cli.app import app
from nodeyard.kube.names import NAMESPACE
from nodeyard.sim import stand_in_crds
from nodeyard.testing import clients, third_party_crds
from nodeyard.testing.embedded import EmbeddedServer
from nodeyard.testing.ports import free_port
from nodeyard.testing.wait import until

pytestmark = pytest.mark.timeout(600)

ROOT = doc_pages.ROOT
MARK = re.compile(r"on: (?P<cluster>demo|server|nothing)(?:, (?P<mode>fails|repeats|elsewhere))?")
NOT_RUN = re.compile(r"not run: \S.+")
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.M)
READS = re.compile(r"kubectl get|nodeyard (why|plan|status)\b")
STAYS = re.compile(r"(KUBECONFIG=\S+ )?nodeyard (run|apiserver|dashboard)\b")
PORT = re.compile(r"\b(?:18443|700[12])\b")
CHANGES_PENDING = 2
"""Exit code of `nodeyard plan`."""
SECONDS = 60.0
FILES = {
    "my-template.yaml": "examples/01-spares/nodetemplate.yaml",
    "my-cluster.yaml": "examples/02-pools/cluster.yaml",
    "my-profile.yaml": "examples/05-profiles/profiles.yaml",
    "my-profiles.yaml": "examples/05-profiles/profiles.yaml",
    "pool-upgrade.yaml": "docs/examples/rehearse/pool-upgrade.yaml",
    "my-crd.yaml": "config/crd/profileservices.nodeyard.dev.yaml",
}
"""Files that a reader has, and what stands for them."""
PEERS = Path(__file__).with_name("doc_peers.yaml")
"""Objects of operators that the pages on migration stop; nothing runs them."""
VARIABLE = {
    r"\d+(s|m(\d+s)?|h(\d+m)?|d(\d+h)?)": "AGE",
    r"[0-9a-f]{12}\)?": "ID",
    r"(\S+)-\d{8,10}-[a-z0-9]{5}(:?)": r"\1-RANDOM\2",
    r"(\S*)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12},?": r"\1UID",
}
"""Words that differ from run to run, and what is compared instead."""


def blocks():
    """Yield place, block, cluster and mode of all transcripts."""
    for page in doc_pages.pages():
        cluster = "demo"
        for block in doc_pages.blocks(page.read_text()):
            if block.language == "console":
                mark = MARK.fullmatch(block.comment)
                cluster = mark["cluster"] if mark else cluster
                yield f"{page.relative_to(ROOT)}:{block.line}", block, cluster, mark and mark["mode"]


BLOCKS = list(blocks())
EXEMPT = {where: block.text for where, block, *_ in BLOCKS if NOT_RUN.fullmatch(block.comment)}
RUN = [each for each in BLOCKS if each[0] not in EXEMPT]


def page_of(where):
    return where.partition(":")[0]


def order(page):
    """Return a sort key: pages that change much of the demo's fleet come late."""
    return page.startswith("examples/"), page.startswith("docs/start/"), page


PAGES = sorted({page_of(where) for where, *_ in RUN}, key=order)


def words(text):
    """Return the words of a command's output, those that vary replaced."""
    for pattern, name in VARIABLE.items():
        text = re.sub(rf"(?<!\S){pattern}(?!\S)", name, text)
    return text.split()


def missing(shown, printed):
    """Return the first word of the transcript that was not printed, with those before it. Lines may be left out."""
    left = iter(words(printed))
    before = []
    for word in words(shown):
        before.append(word)
        if word in ("...", "…") or any(word == each or ("..." in word and alike(word, each)) for each in left):
            continue
        return " ".join(before[-8:])
    return ""


def alike(word, printed):
    """Tell whether two words are equal up to what is left out of either."""
    return fnmatchcase(printed.replace("[", "("), word.replace("[", "(").replace("...", "*"))


@contextmanager
def started(command, folder, environment):
    """Run a command until SIGINT stops it at the end. Yields the process and a function that returns its output."""
    path = folder / f"{len(list(folder.glob('*.log')))}.log"
    with path.open("w") as log:
        process = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        yield process, path.read_text
        os.killpg(process.pid, signal.SIGINT)
        process.wait(timeout=SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Reader:
    """Somebody who types the commands of one page."""

    def __init__(self, folder, programs, demo):
        self._folder = folder
        self._environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(folder), "COLUMNS": "100"}
        self._demo = demo
        self._cluster = self._server = None
        self._ports = {}
        self._stack = ExitStack()
        for name in ("examples", "charts"):
            (folder / name).symlink_to(ROOT / name)
        for name, source in FILES.items():
            (folder / name).write_text((ROOT / source).read_text())
        (values,) = re.findall(r"^# values\.yaml\n(?:.+\n)+(?=```)", (ROOT / "docs/install.md").read_text(), re.M)
        (folder / "values.yaml").write_text(values)

    def use(self, cluster):
        if cluster != self._cluster:
            self._cluster = cluster
            self._environment["KUBECONFIG"] = getattr(self, f"_{cluster}_kubeconfig")()

    def _demo_kubeconfig(self):
        return self._demo()

    def _nothing_kubeconfig(self):
        return ""

    def _server_kubeconfig(self):
        if self._server is None:
            self._server = self._stack.enter_context(EmbeddedServer())
            third_party_crds.install(self._server.rest, stand_in_crds.definitions())
            self._server.rest.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        return str(self._server.kubeconfig)

    def type(self, command, shown, mode, codes):
        """Run a command until it ends as the page says; one that stays runs until the reader leaves."""
        command = PORT.sub(lambda found: str(self._ports.setdefault(found[0], free_port())), command)
        if command.startswith("make "):
            command = command.replace("make", f"make -n -C {ROOT}", 1)
        if exported := re.fullmatch(r"export (\w+)=(\S+)", command):
            # The demo's folder has another name each time.
            if "nodeyard-demo-" not in exported[2]:
                self._environment[exported[1]] = exported[2]
        elif STAYS.match(command):
            self._start(re.sub(r"&?\s*(#.*)?$", "", command))
        else:
            # What only reads, or is refused, may be typed again until its output is there.
            repeats = mode == "repeats" or 1 in codes or READS.match(command) is not None
            self._run(command, "" if mode == "elsewhere" else shown, codes, repeats)

    def _run(self, command, shown, codes, repeats):
        def wrong():
            done = subprocess.run(
                ["bash", "-c", f"{command}\nexit $?"],  # Bash stays, as the shell that a command was typed in.
                cwd=self._folder,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
            )
            if done.returncode not in codes:
                return f"exit code {done.returncode}:\n{done.stdout}"
            if absent := missing(shown, done.stdout):
                return f"no word {absent.split()[-1]!r}, after {absent!r}, in:\n{done.stdout}"
            return ""

        deadline = time.monotonic() + (SECONDS if repeats else 0)
        while (problem := wrong()) and time.monotonic() < deadline:
            pass
        assert not problem, f"$ {command}\n{problem}"

    def _start(self, command):
        health, metrics, webhooks, page = (f"127.0.0.1:{free_port()}" for _ in range(4))
        options = {
            "run": f"--health-bind={health} --metrics-bind={metrics} --webhook-bind={webhooks}",
            "dashboard": f"--bind={page}",
        }
        verb = STAYS.match(command)[2]
        process, log = self._stack.enter_context(
            started(f"{command} {options.get(verb, '')}", self._folder, self._environment)
        )

        def is_ready():
            assert process.poll() is None, f"$ {command}\n{log()}"
            return answers(f"http://{health}/readyz") if verb == "run" else log().endswith("\n")

        until(is_ready, command, SECONDS)

    def leave(self):
        self._stack.close()


def answers(url):
    try:
        with urlopen(url, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bin")
    for name in ("kubectl", "helm"):
        (folder / name).symlink_to(clients.find(name))
    (folder / "nodeyard").symlink_to(Path(sys.executable).parent / "nodeyard")
    return folder


@pytest.fixture(scope="module")
def demo(programs, tmp_path_factory):
    """The kubeconfig of the demo's fleet, after the tour. Beside it is what migrations switch off."""
    environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": "/nonexistent", "COLUMNS": "200"}
    with started("exec nodeyard demo --fast", tmp_path_factory.mktemp("demo"), environment) as (process, log):

        def kubeconfig():
            assert process.poll() is None, log()
            return re.search(r"KUBECONFIG=(\S+) \S+ scale nodetemplate", log())

        path = until(kubeconfig, "the tour is over", 300)[1]
        kubectl = [programs / "kubectl", "--kubeconfig", path]
        subprocess.run([*kubectl, "apply", "-f", PEERS], check=True, capture_output=True)
        yield path


@pytest.fixture
def reader(programs, tmp_path, request):
    reader = Reader(tmp_path, programs, lambda: request.getfixturevalue("demo"))
    yield reader
    reader.leave()


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page_run(page, reader):
    for where, block, cluster, mode in RUN:
        if page_of(where) != page:
            continue
        reader.use(cluster)
        typed = COMMAND.findall(block.text)
        assert typed, where
        for number, (command, shown) in enumerate(typed, 1):
            fails = mode == "fails" and number == len(typed)
            codes = {1} if fails else {0, CHANGES_PENDING} if command.startswith("nodeyard plan") else {0}
            reader.type(command, shown, mode, codes)


@pytest.mark.parametrize("where", EXEMPT)
def test_nodeyard_has_the_verbs_and_options_of_commands_that_are_not_run(where):
    main = typer.main.get_command(app)
    for command, _ in COMMAND.findall(EXEMPT[where]):
        line = shlex.split(command, comments=True)
        if line[0] == "nodeyard":
            verb = main.commands[line[1]]
            verb.make_context(verb.name, line[2:])


def test_few_blocks_are_exempt():
    assert len(EXEMPT) * 4 < len(RUN)
