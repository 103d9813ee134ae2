"""YAML bodies, decoded as on the real server, with its error messages."""

from __future__ import annotations

import re

import yaml

from nodeyard.kube import manifests
from nodeyard.kube.json import Json
from nodeyard.kube.manifests import ManifestError

_ALIAS = re.compile(rb"\*([\w.-]+)")


def load(body: bytes) -> tuple[Json, list[str]]:
    """Read the first document, whatever follows it, and name its repeated keys.

    Raises ValueError with the real server's message.
    """
    try:
        return manifests.load_first(body)
    except ManifestError as fault:
        raise ValueError(f"yaml: {_describe(fault.__cause__ or fault, body)}") from fault


def _describe(fault: BaseException, body: bytes) -> str:
    if not isinstance(fault, yaml.MarkedYAMLError) or not fault.problem:
        return str(fault)
    if fault.problem == "found undefined alias" and (alias := _alias(fault, body)):
        return f"unknown anchor '{alias}' referenced"
    marks = (fault.context_mark, fault.problem_mark)
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if line and isinstance(fault, yaml.scanner.ScannerError):
        line += 1  # its parser counts from zero, its scanner from one
    return f"line {line}: {fault.problem}" if line else fault.problem


def _alias(fault: yaml.MarkedYAMLError, body: bytes) -> str:
    mark = fault.problem_mark
    lines = body.splitlines()
    if mark is None or mark.line >= len(lines):
        return ""
    found = _ALIAS.match(lines[mark.line], mark.column)
    return found[1].decode() if found else ""
