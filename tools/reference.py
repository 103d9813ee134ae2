"""Writes the pages in docs/reference from the code. A test fails if they have drifted.

python -m tools.reference
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import yaml
from typer.core import TyperGroup
from typer.main import get_command
from typer.testing import CliRunner

from nodeyard.admission.metrics import AdmissionMetrics
from nodeyard.app.capabilities import CAPABILITIES
from nodeyard.cli.app import app
from nodeyard.client.api import Client
from nodeyard.plan.reasons import EngineReason
from nodeyard.process.clock import VirtualClock
from nodeyard.process.metrics import Metrics
from nodeyard.runtime.capability import Capability
from nodeyard.runtime.manager import Manager
from nodeyard.runtime.metrics import request_observer
from nodeyard.runtime.settings import Settings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"
REASONS = Path(__file__).with_name("reasons.yaml")
ALERTS = ROOT / "charts" / "nodeyard" / "monitoring" / "alerts.yaml"
_WIDTH = "100"


def pages() -> Iterator[tuple[str, str]]:
    """Yield name and text of every page."""
    yield "cli.md", cli()
    yield "api.md", api()
    yield "reasons.md", reasons()
    yield "metrics.md", metrics()
    yield "alerts.md", alerts()


def cli() -> str:
    """Render the help of every command."""
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    commands = ["", *command.commands]
    parts = [f"## nodeyard {name}".rstrip() + f"\n\n```text\n{help_of(name)}```\n" for name in commands]
    head = "What `--help` prints. [The command line](../cli.md) explains how the commands work together.\n"
    return f"# Commands and options\n\n{head}\n" + "\n".join(parts)


def help_of(command: str) -> str:
    runner = CliRunner(env={"COLUMNS": _WIDTH, "TERMINAL_WIDTH": _WIDTH})
    result = runner.invoke(app, [*command.split(), "--help"], prog_name="nodeyard")
    assert result.exit_code == 0, result.output
    return result.output


def api() -> str:
    """Render kinds and fields of every capability."""
    head = (
        "Kinds by capability. `kubectl explain` shows the same on a cluster. Fields without a default may be omitted "
        "unless they are required. The manifests are in `config/crd`.\n"
    )
    return f"# Kinds and fields\n\n{head}\n" + "\n".join(_capability(each) for each in CAPABILITIES)


def _capability(capability: Capability) -> str:
    text = f"## {capability.name}\n\n[About {capability.name}](../{capability.name}.md)\n"
    for definition in sorted(capability.definitions(), key=lambda each: str(each["spec"]["names"]["kind"])):
        spec = definition["spec"]
        names = spec["names"]
        text += f"\n### {names['kind']}\n\n"
        for version in spec["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            short = "".join(f", short name `{each}`" for each in names.get("shortNames", ()))
            text += f"{_sentence(schema)}\n\n`apiVersion: {spec['group']}/{version['name']}`, {spec['scope'].lower()}"
            text += "-scoped" if spec["scope"] == "Cluster" else ""
            text += f"{short}.\n"
            for part in ("spec", "status"):
                if part in schema["properties"]:
                    rows = list(_fields(schema["properties"][part], part))
                    text += _table(("field", "type", "default", "description"), rows)
    return text


def _fields(schema: Any, path: str) -> Iterator[tuple[str, ...]]:
    """Yield a row for each field below a schema."""
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        below = f"{path}.{name}"
        default = f"`{json.dumps(field['default'])}`" if "default" in field else ""
        yield f"`{below}`", _type(field), "required" if name in required else default, _sentence(field)
        if below != "status.conditions":
            yield from _fields(*_inner(field, below))


def _inner(field: Any, path: str) -> tuple[Any, str]:
    """Return the schema that has the properties of a field, an item or a value, and its path."""
    while True:
        if "items" in field:
            field, path = field["items"], f"{path}[]"
        elif isinstance(field.get("additionalProperties"), dict):
            field, path = field["additionalProperties"], f"{path}.*"
        else:
            return field, path


def _type(field: Any) -> str:
    if "enum" in field:
        return ", ".join(f"`{each or json.dumps(each)}`" for each in field["enum"])
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if isinstance(field.get("additionalProperties"), dict):
        return f"map of {_type(field['additionalProperties'])}"
    limits = [f"{sign} {field[key]}" for key, sign in (("minimum", "≥"), ("maximum", "≤")) if key in field]
    name = field.get("format") if field.get("format") in ("date-time", "duration") else field.get("type", "any")
    return " ".join([str(name), ", ".join(limits)]).strip()


def _sentence(schema: Any) -> str:
    return " ".join(schema.get("description", "").split())


def reasons() -> str:
    """Render every reason of the engine and the capabilities, in the words of reasons.yaml."""
    written = yaml.safe_load(REASONS.read_text())
    known: dict[str, type[StrEnum]] = {"engine": EngineReason}
    known |= {each.name: import_module(f"nodeyard.capabilities.{each.name}.reasons").Reason for each in CAPABILITIES}
    assert written.keys() == known.keys()
    head = (
        "Reasons of conditions, events, refusals and actions, and of what `nodeyard why` answers. The message beside a "
        "reason has the facts: names, numbers and the error. `nodeyard why` also names what would change a decision, "
        "with a reason that stands here under remedies.\n"
    )
    return f"# Reasons\n\n{head}\n" + "\n".join(reasons_of(name, written[name], known[name]) for name in known)


def reasons_of(name: str, written: dict[str, Any], known: type[StrEnum]) -> str:
    sections = {key: written[key] for key in ("actions", "states", "problems", "remedies") if key in written}
    named = [reason for section in sections.values() for reason in section]
    order = [each.value for each in known]
    if problems := sorted({*named} ^ {*order}) or [each for each in named if named.count(each) > 1]:
        raise ValueError(f"{REASONS}: {name} lacks, does not know or repeats {', '.join(problems)}")
    text = f"## {'All capabilities' if name == 'engine' else name}\n"
    for title, section in sections.items():
        rows = []
        for reason in sorted(section, key=order.index):
            cells = section[reason].split(" | ")
            if title == "problems":
                command = cells[3] if len(cells) > 3 else f"nodeyard why {written['object']}"
                cells = [*cells[:3], f"`{command}`"]
            rows.append((f"`{reason}`", *cells))
        columns = ("meaning", "cause", "remedy", "command") if title == "problems" else ("meaning",)
        text += f"\n**{title.capitalize()}**\n" + _table(("reason", *columns), rows)
    return text


async def exported() -> list[Any]:
    """Return all metrics of the operator."""
    registry = Metrics()
    registry.expose_process()
    request_observer(registry)
    Manager(cast(Client, None), (), Settings(identity="x"), metrics=registry, clock=VirtualClock())
    AdmissionMetrics(registry)
    for capability in CAPABILITIES:
        if capability.metrics is not None:
            capability.metrics(registry)
    return list(registry.described())


def metrics() -> str:
    rows = [
        (f"`{each.name}`", each.type, ", ".join(f"`{label}`" for label in each.labels), each.help)
        for each in asyncio.run(exported())
    ]
    head = "`nodeyard run` serves these metrics at `--metrics-bind` in the Prometheus text format.\n"
    return f"# Metrics\n\n{head}" + _table(("metric", "type", "labels", "meaning"), rows)


def alerts() -> str:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    rows = [
        (
            f"[{rule['alert']}](../runbooks/{rule['alert']}.md)",
            rule["labels"]["severity"],
            f"`{rule['expr']}` for {rule['for']}",
            rule["annotations"]["description"],
        )
        for rule in rules
    ]
    head = (
        "The chart installs these alerts with `metrics.prometheusRule.enabled`. Each has a runbook, which begins with "
        "the commands that name the cause.\n"
    )
    return f"# Alerts\n\n{head}" + _table(("alert", "severity", "fires on", "meaning"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages():
        (FOLDER / name).write_text(text)
