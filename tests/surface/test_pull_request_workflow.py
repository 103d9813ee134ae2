"""The workflow of the docs plans a pull request's manifests and keeps one comment up to date."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nodeyard.plan.markdown import MARKER
from nodeyard.process.version import VERSION

WORKFLOW = Path(__file__).parents[2] / "docs/examples/plan-on-pull-request.yaml"
GH = """#!/bin/sh
printf '%s\\n' "$*" >> "$CALLS"
case "$*" in *--paginate*) printf '%s' "$EARLIER";; esac
"""
MANIFEST = {
    "apiVersion": "nyallocator.cybozu.io/v1",
    "kind": "NodeTemplate",
    "metadata": {"name": "web"},
    "spec": {"nodes": 1, "selector": {"matchLabels": {"for": "web"}}, "template": {}},
}


@pytest.fixture
def workflow():
    return yaml.safe_load(WORKFLOW.read_text())


@pytest.fixture
def run(workflow, tmp_path):
    """Run a step with bash as a runner does, with the real `nodeyard` and a `gh` that only records."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    main = f"#!/bin/sh\nexec {sys.executable} -c 'from nodeyard.cli import main; main()' \"$@\"\n"
    programs = {"gh": GH, "nodeyard": main}
    for name, text in programs.items():
        (binaries / name).write_text(text)
        (binaries / name).chmod(0o755)

    def run(name, **environment):
        (step,) = (each for each in workflow["jobs"]["plan"]["steps"] if each.get("name") == name)
        given = {
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "CALLS": str(tmp_path / "calls"),
            "COMMENTS": "repos/o/r/issues/7/comments",
            "COMMENT": "repos/o/r/issues/comments",
        }
        assert {*step["env"]} <= {*given, *environment, "GH_TOKEN"}
        script = ["bash", "-e", "-o", "pipefail", "-c", step["run"]]
        return subprocess.run(
            script, cwd=tmp_path, env={**given, **environment}, capture_output=True, text=True, timeout=120, check=False
        )

    return run


def test_the_step_writes_the_plan_of_the_manifests_and_removes_the_credentials(run, tmp_path):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/web.yaml").write_text(yaml.safe_dump(MANIFEST))
    done = run("Plan", KUBECONFIG_CONTENT="")
    assert done.returncode == 0, done.stderr
    told = (tmp_path / "plan.md").read_text()
    assert told.startswith(MARKER)
    assert "NodeTemplate web" in told
    assert (tmp_path / "summary.md").read_text() == told
    assert not (tmp_path / "kubeconfig").exists()


def test_the_step_fails_where_the_plan_does(run, tmp_path):
    (tmp_path / "manifests").mkdir()
    done = run("Plan", KUBECONFIG_CONTENT="")
    assert done.returncode != 0
    assert "contains no object" in done.stderr
    assert not (tmp_path / "kubeconfig").exists()


@pytest.mark.parametrize(
    ("earlier", "call"),
    [("", "POST repos/o/r/issues/7/comments"), ("11\n12\n", "PATCH repos/o/r/issues/comments/12")],
)
def test_there_is_one_comment(run, tmp_path, earlier, call):
    assert run("Comment", EARLIER=earlier).returncode == 0
    found, written = (tmp_path / "calls").read_text().splitlines()
    assert MARKER in found
    assert written == f"api --method {call} -F body=@{tmp_path}/plan.md"


def test_the_workflow_has_few_rights_and_installs_this_version(workflow):
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    job = workflow["jobs"]["plan"]
    assert "head.repo.full_name == github.repository" in job["if"]
    (install,) = (each["run"] for each in job["steps"] if each.get("name") == "Install")
    assert install.split()[-1] == f"nodeyard=={VERSION}"
