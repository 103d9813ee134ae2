"""Expressions of Prometheus, compared with the metrics that the operator exports."""

from __future__ import annotations

import re

from tools.reference import exported

_NAME = re.compile(r"\b((?:nodeyard|nyallocator|process)_\w+)(?:\{([^}]*)\})?")
_GROUPED = re.compile(r"\b(?:by|on)\s*\(([^)]*)\)")
TARGET = {"job", "namespace", "pod", "instance", "le"}
"""Labels that Prometheus adds, and that of histogram buckets."""


async def faults(expression: str) -> list[str]:
    """Return the metrics and labels of an expression that the operator does not have."""
    labels: dict[str, set[str]] = {}
    for each in await exported():
        suffixes = ("_bucket", "_sum", "_count") if each.type == "histogram" else ("",)
        labels |= {f"{each.name}{suffix}": {*each.labels, *TARGET} for suffix in suffixes}
    used = _NAME.findall(expression)
    found = [name for name, _ in used if name not in labels]
    if not used:
        found.append("no metric")
    for name, selector in used:
        for label in re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", selector):
            if label not in labels.get(name, set()):
                found.append(f"{name}{{{label}}}")
    every = set().union(*(labels.get(name, set()) for name, _ in used))
    for group in _GROUPED.findall(expression):
        found += [f"by {label.strip()}" for label in group.split(",") if label.strip() not in every]
    return found
