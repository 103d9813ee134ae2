"""Charts rendered by the real helm, and a reader of YAML as strict as Flux.

Flux sends helm's output through kustomize, which refuses duplicate keys; with helm alone the last one wins.
"""

from __future__ import annotations

import json
import subprocess
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from nodeyard.testing import clients

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "charts" / "nodeyard-scheduling"
EXAMPLES = ROOT / "examples" / "03-affinity" / "charts"
POSTGRES, REDIS = EXAMPLES / "postgres", EXAMPLES / "redis"

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = "topology.kubernetes.io/zone"
SELECTOR = """\
spec:
  first: 1
  {{- with include "cozy-lib.scheduling.nodeSelector" (list .Values.own $) }}
  {{- . | nindent 2 }}
  {{- end }}
  last: 1
"""
"""A template that uses the helper as its README says."""

SECONDS = 60.0


class RenderError(Exception):
    """helm failed; the text is its error."""


class _Strict(yaml.CSafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(self.construct_object(key, deep=True) for key, _ in node.value)
        if twice := [key for key, count in keys.items() if count > 1]:
            raise yaml.constructor.ConstructorError(None, None, f"stands twice: {twice}", node.start_mark)
        return super().construct_mapping(node, deep)


def read(text: str) -> dict[str, Any]:
    """Parse the only document of a text; a duplicate key is an error."""
    document: dict[str, Any] = yaml.load(text, _Strict)
    return document


def read_all(text: str) -> list[dict[str, Any]]:
    """Parse the documents of a text, without empty ones."""
    return [document for document in yaml.load_all(text, _Strict) if document]


def run(*arguments: str | Path, values: dict[str, Any] | None = None) -> str:
    """Run helm; return its output. Values are passed as JSON, so that helm does not guess their types."""
    command = [clients.find("helm"), *arguments, *(() if values is None else ("--values", "-"))]
    given = None if values is None else json.dumps(values)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise RenderError(done.stderr + done.stdout)
    return done.stdout


def render(chart: Path, values: dict[str, Any] | None = None, name: str = "main-db") -> str:
    return run("template", name, chart, values=values or {})


def chart_of(folder: Path, template: str) -> Path:
    """Write a chart with the library and one template."""
    (folder / "templates").mkdir(parents=True)
    (folder / "charts").mkdir()
    (folder / "charts" / LIBRARY.name).symlink_to(LIBRARY)
    (folder / "templates" / "object.yaml").write_text(textwrap.dedent(template))
    dependency = {"name": LIBRARY.name, "version": "*", "repository": LIBRARY.as_uri()}
    chart = {"apiVersion": "v2", "name": "probe", "version": "0.0.0", "dependencies": [dependency]}
    (folder / "Chart.yaml").write_text(json.dumps(chart))
    return folder


def term(**allowed: list[str]) -> dict[str, Any]:
    """Build a term with one `In` for each label; without labels, a term that matches no node."""
    if not allowed:
        return {}
    return {"matchExpressions": [{"key": key, "operator": "In", "values": values} for key, values in allowed.items()]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {REQUIRED: {"nodeSelectorTerms": list(terms)}}


def preferred(weight: int, preference: dict[str, Any]) -> dict[str, Any]:
    return {PREFERRED: [{"weight": weight, "preference": preference}]}
